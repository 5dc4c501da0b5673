/**
 * Decides what a fold leaves as it is in every format, whatever the trigger: tools that the model has only from the messages (results of a tool
 * search, lists of tools), and objects that two parsers may read differently. A codec's reader sets `stays` on such parts.
 */
import type { Conversation } from '../conversation/conversation.ts';
import { type Edit, lastMessageOf } from '../conversation/edit.ts';
import { pairCalls, placeKey } from '../conversation/pairing.ts';
import { unitsOf } from '../conversation/turns.ts';
import type { FormatRules } from './codec.ts';
import { memoized } from './memoize.ts';

type Standing = {
  /** Messages that stay as a whole message; single parts of them may change. */
  readonly messages: ReadonlySet<number>;
  /** Parts by key of place. */
  readonly parts: ReadonlySet<string>;
};

/** Puts what stays in front of the rules of a format. */
export function sparing(mayEdit: FormatRules['mayEdit']): FormatRules['mayEdit'] {
  return (conversation, edit) => !touchesWhatStays(conversation, edit) && mayEdit(conversation, edit);
}

function touchesWhatStays(conversation: Conversation, edit: Edit): boolean {
  const { messages, parts } = standing(conversation);
  if (messages.size === 0 || edit.kind === 'insert-message') return false;
  const message = lastMessageOf(edit);
  if (!messages.has(message)) return false;
  if (edit.kind === 'drop-message') return true;
  return parts.has(placeKey({ message, part: edit.kind === 'replace-text' ? edit.at.part : edit.part }));
}

/** Asked for every edit that is considered, and empty for nearly every conversation. */
const standing: (conversation: Conversation) => Standing = memoized((conversation) => {
  const messages = new Set<number>();
  const parts = new Set<string>();
  const keep = (message: number, part: number) => {
    messages.add(message);
    parts.add(placeKey({ message, part }));
  };
  let hasPair = false;
  let hasStep = false;
  for (const { index, parts: all } of conversation.messages) {
    for (const [at, part] of all.entries()) {
      const stays = part.stays ?? (part.type === 'tool-call' && loadsTools(part.name) ? 'pair' : undefined);
      if (stays === undefined) continue;
      keep(index, at);
      hasPair ||= stays === 'pair';
      hasStep ||= stays === 'step';
    }
  }
  for (const { call, result } of hasPair ? pairCalls(conversation).pairs : []) {
    if (!result || (!parts.has(placeKey(call)) && !parts.has(placeKey(result)))) continue;
    keep(call.message, call.part);
    keep(result.message, result.part);
  }
  for (const unit of hasStep ? unitsOf(conversation) : []) {
    if (!unit.some((message) => message.parts.some(({ stays }) => stays === 'step'))) continue;
    for (const message of unit) message.parts.forEach((_, at) => keep(message.index, at));
  }
  return { messages, parts };
});

/**
 * True for the name of a tool by which a client loads other tools: agents call it ToolSearch, gateways of MCP servers `search_tools`,
 * and what a provider runs itself is `tool_search_tool_regex` or `tool_search_tool_bm25`.
 */
export function loadsTools(name: string): boolean {
  const known = loading.get(name);
  if (known !== undefined) return known;
  const loads = loadingName.test(name);
  if (loading.size < 10_000) loading.set(name, loads);
  return loads;
}

/** By name: every call of a conversation is asked about in every turn. */
const loading = new Map<string, boolean>();

const loadingName =
  /^(?:mcp__\w+__)?(?:tool_?search(?:_?tool(?:_\w+)?)?|(?:search|find|load|discover)_?tools?)$/i;
