/** The laws a fold must keep before it is sent: valid as the original was, and never larger. */
import type { FormatRules, Problem } from '../codecs/codec.ts';
import type { Conversation } from '../conversation/conversation.ts';
import type { Edit } from '../conversation/edit.ts';

/**
 * Rules that the second conversation breaks more often than the first. A client may send what its provider would refuse; that is
 * between the two of them, and no reason to leave its conversation alone.
 */
export function newProblems(
  rules: FormatRules,
  before: Conversation,
  after: Conversation,
): readonly Problem[] {
  const problems = rules.problems(after);
  if (problems.length === 0) return [];
  const isNew = beyond(rules.problems(before).map(({ rule }) => rule));
  return problems.filter(({ rule }) => isNew(rule));
}

/**
 * The first rule that a body breaks more often than the one it was made of, or the loss of a tool that was loaded there. Both are read
 * with `JSON.parse`, apart from all that made the one of the other. Undefined for a sound body.
 */
export function newFault(
  { faults }: Pick<FormatRules, 'faults'>,
  before: Uint8Array,
  after: Uint8Array,
): string | undefined {
  const found = faults(after);
  const fault = found.length === 0 ? undefined : found.find(beyond(faults(before)));
  if (fault !== undefined) return fault;
  const loaded = loadedTools(before);
  if (loaded.length === 0) return undefined;
  return loadedTools(after).length < loaded.length ? 'loaded-tools-stay' : undefined;
}

/** Tells which of the rules named one after another were not broken so often before. */
function beyond(rules: readonly string[]): (rule: string) => boolean {
  const allowed = new Map<string, number>();
  for (const rule of rules) allowed.set(rule, (allowed.get(rule) ?? 0) + 1);
  return (rule) => {
    const left = allowed.get(rule) ?? 0;
    allowed.set(rule, left - 1);
    return left <= 0;
  };
}

const loading =
  /"type"\s*:\s*"(?:tool_reference|tool_search_\w+|additional_tools|mcp_list_tools)"|"name"\s*:\s*"(?:tool_?search|search_tools?)"/gi;

/** Returns the loaded tools that a body names in the usual spelling. */
function loadedTools(body: Uint8Array): readonly string[] {
  return new TextDecoder().decode(body).match(loading) ?? [];
}

/** Folds whose bodies were found sound, by their edits: those go out again with every request. */
const sound = new WeakSet<readonly Edit[]>();

export function isKnownSound(edits: readonly Edit[]): boolean {
  return edits.length === 0 || sound.has(edits);
}

export function noteSound(edits: readonly Edit[]): void {
  sound.add(edits);
}
