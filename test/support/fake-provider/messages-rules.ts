/**
 * Finds what the Messages API refuses with a 400: the rules that an edited conversation could break, in the provider's words.
 * Neighboring messages of one role count as one turn, as they do there; `strict` refuses them, as some hosts of the API do.
 */
import { isObject, objectsIn } from './json.ts';
import { marksRefusal } from './messages-marks.ts';
import type { JsonObject, Refusal } from './script.ts';

/** Returns the first broken rule. Counting tokens needs no `max_tokens`. */
export function messagesRefusal(
  body: JsonObject,
  needs: { readonly maxTokens: boolean; readonly strictRoles: boolean },
): Refusal | undefined {
  const fields = ['model', ...(needs.maxTokens ? ['max_tokens'] : []), 'messages'];
  const missing = fields.find((field) => body[field] === undefined);
  if (missing !== undefined) return { message: `${missing}: Field required` };
  const messages = body['messages'];
  if (!Array.isArray(messages)) return { message: 'messages: Input should be a valid array' };
  if (messages.length === 0) return { message: 'messages: at least one message is required' };
  const names = objectsIn(body['tools']).map((tool) => tool['name']);
  if (new Set(names).size < names.length) return { message: 'tools: Tool names must be unique.' };
  return (
    first(messages, messageRefusal) ??
    systemRefusal(messages) ??
    (needs.strictRoles ? rolesRefusal(messages) : undefined) ??
    first(turnsOf(messages), turnRefusal) ??
    marksRefusal(body)
  );
}

function first<T>(
  list: readonly T[],
  check: (item: T, index: number, list: readonly T[]) => string | undefined,
): Refusal | undefined {
  for (const [index, item] of list.entries()) {
    const message = check(item, index, list);
    if (message !== undefined) return { message };
  }
  return undefined;
}

function messageRefusal(message: unknown, index: number, all: readonly unknown[]): string | undefined {
  const at = `messages.${index}`;
  if (!isObject(message)) return `${at}: Input should be a valid dictionary or object`;
  const { role, content } = message;
  if (role !== 'user' && role !== 'assistant' && role !== 'system') {
    return `${at}.role: Input should be 'user' or 'assistant'`;
  }
  if (typeof content !== 'string' && !Array.isArray(content)) return `${at}.content: Field required`;
  if (isSetting(message)) return undefined;
  if (content.length === 0 && role === 'system')
    return `${at}: system content must contain at least one block`;
  const isLastOfModel = role === 'assistant' && index === all.length - 1;
  if (content.length === 0 && !isLastOfModel) {
    return `${at}: all messages must have non-empty content except for the optional final assistant message`;
  }
  for (const [n, block] of objectsIn(content).entries()) {
    if (block['type'] === 'text' && block['text'] === '')
      return 'messages: text content blocks must be non-empty';
    if (block['type'] === 'thinking' && typeof block['signature'] !== 'string') {
      return `${at}.content.${n}.thinking.signature: Field required`;
    }
  }
  return undefined;
}

/** True for a system message that only carries settings for the reply. */
function isSetting({ role, content, output_config }: JsonObject): boolean {
  return role === 'system' && Array.isArray(content) && content.length === 0 && isObject(output_config);
}

/**
 * System messages come in groups: each group follows the user's words or the result of a server tool, and no user message follows
 * it.
 */
function systemRefusal(messages: readonly JsonObject[]): Refusal | undefined {
  const anywhere = 'the directive-only form (content: [] with output_config) is accepted at any position';
  const spoken = [...messages.entries()].filter(([, message]) => !isSetting(message));
  for (const [n, [index, { role }]] of spoken.entries()) {
    if (role !== 'system') continue;
    const before = spoken[n - 1]?.[1];
    const next = spoken[n + 1]?.[1];
    const complaint =
      before === undefined
        ? "use the top-level 'system' parameter for the initial system prompt"
        : before['role'] === 'assistant' && !endsInServerResult(before)
          ? "role 'system' must follow a 'user' message or an 'assistant' message ending in a server tool result"
          : next?.['role'] === 'user'
            ? "role 'system' must precede an 'assistant' message or end the array"
            : undefined;
    if (complaint !== undefined) return { message: `messages.${index}: ${complaint}; ${anywhere}` };
  }
  return undefined;
}

function endsInServerResult({ content }: JsonObject): boolean {
  const type = objectsIn(content).at(-1)?.['type'];
  return typeof type === 'string' && type.endsWith('_tool_result');
}

function rolesRefusal(messages: readonly JsonObject[]): Refusal | undefined {
  const spoken = messages.map(({ role }) => role).filter((role) => role !== 'system');
  if (spoken[0] !== 'user') return { message: 'messages: first message must use the "user" role' };
  const repeated = spoken.findIndex((role, i) => i > 0 && role === spoken[i - 1]);
  if (repeated < 0) return undefined;
  const role = spoken[repeated] === 'user' ? 'user' : 'assistant';
  return {
    message: `messages: roles must alternate between "user" and "assistant", but found multiple "${role}" roles in a row`,
  };
}

/** `at` names each block by its message. */
type Placed = { readonly at: string; readonly block: JsonObject };
type Turn = { readonly role: unknown; readonly at: string; readonly blocks: readonly Placed[] };

function turnsOf(messages: readonly JsonObject[]): readonly Turn[] {
  const turns: (Turn & { blocks: Placed[] })[] = [];
  for (const [index, { role, content }] of messages.entries()) {
    if (role === 'system') continue;
    const at = `messages.${index}`;
    const list = typeof content === 'string' ? [{ type: 'text', text: content }] : objectsIn(content);
    const blocks = list.map((block, n) => ({ at: `${at}.content.${n}`, block }));
    const last = turns.at(-1);
    if (last?.role === role) last?.blocks.push(...blocks);
    else turns.push({ role, at, blocks: [...blocks] });
  }
  return turns;
}

function turnRefusal(turn: Turn, index: number, turns: readonly Turn[]): string | undefined {
  const ids = callIds(turn);
  if (turn.role === 'assistant') {
    const repeated = ids.findIndex((id, i) => ids.indexOf(id) < i);
    if (repeated >= 0) return `${turn.at}: \`tool_use\` ids must be unique`;
    const answered = leadingResults(turns[index + 1]).map(({ block }) => block['tool_use_id']);
    const open = ids.filter((id) => !answered.includes(id));
    if (open.length === 0) return undefined;
    return `${turn.at}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${open.join(', ')}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`;
  }
  const asked = callIds(turns[index - 1]);
  const seen = new Set<unknown>();
  for (const { at, block } of turn.blocks.filter((placed) => placed.block['type'] === 'tool_result')) {
    const id = block['tool_use_id'];
    if (!asked.includes(id)) {
      return `${at}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${String(id)}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`;
    }
    if (seen.has(id)) {
      return `${at}: each tool_use must have a single result. Found multiple \`tool_result\` blocks with id: ${String(id)}`;
    }
    seen.add(id);
  }
  return undefined;
}

function callIds(turn: Turn | undefined): readonly unknown[] {
  if (turn?.role !== 'assistant') return [];
  return turn.blocks.filter(({ block }) => block['type'] === 'tool_use').map(({ block }) => block['id']);
}

/** Results count only ahead of any other content. */
function leadingResults(turn: Turn | undefined): readonly Placed[] {
  if (turn?.role !== 'user') return [];
  const end = turn.blocks.findIndex(({ block }) => block['type'] !== 'tool_result');
  return end < 0 ? turn.blocks : turn.blocks.slice(0, end);
}
