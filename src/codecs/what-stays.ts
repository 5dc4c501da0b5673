/**
 * Decides what a fold keeps in every format, whatever the trigger: tools that the model has only from the messages (results of a
 * tool search, lists of tools), and objects that two parsers may read differently. A codec's reader sets `stays` on such parts.
 */
import type { Conversation, Message, Part, Stays } from '../conversation/conversation.ts';
import { type Edit, lastMessageOf } from '../conversation/edit.ts';
import { pairCalls, placeKey, unitsOf } from '../conversation/turns.ts';
import type { FormatRules } from './codec.ts';
import { memoized } from '../conversation/incremental.ts';

type Staying = {
  /** Messages that stay as a whole message; single parts of them may change. */
  readonly messages: ReadonlySet<number>;
  /** Keys of the parts that stay. */
  readonly parts: ReadonlySet<string>;
};

/** Applies these limits ahead of the rules of a format. */
export function exceptKept(mayEdit: FormatRules['mayEdit']): FormatRules['mayEdit'] {
  return (conversation, edit) => !touchesWhatStays(conversation, edit) && mayEdit(conversation, edit);
}

function touchesWhatStays(conversation: Conversation, edit: Edit): boolean {
  const staying = stayingIn(conversation);
  if (staying === undefined || edit.kind === 'insert-message') return false;
  const { messages, parts } = staying;
  const message = lastMessageOf(edit);
  if (!messages.has(message)) return false;
  if (edit.kind === 'drop-message') return true;
  return parts.has(placeKey({ message, part: edit.kind === 'replace-text' ? edit.at.part : edit.part }));
}

/** Called for every edit that is considered. Undefined for nearly every conversation: nothing has to stay. */
const stayingIn: (conversation: Conversation) => Staying | undefined = memoized((conversation) => {
  if (!holdsStaying(conversation.messages)) return undefined;
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
      const stays = staysWith(part);
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

/** Looks only at the messages behind those of an earlier request. */
function holdsStaying(messages: readonly Message[]): boolean {
  let from = messages.length;
  while (from > 0 && !free.has(messages[from - 1]!)) from--;
  for (let index = from; index < messages.length; index++) {
    for (const part of messages[index]!.parts) if (staysWith(part) !== undefined) return true;
  }
  const last = messages.at(-1);
  if (last) free.add(last);
  return false;
}

/** Newest messages of requests in which no part has to stay. */
const free = new WeakSet<Message>();

function staysWith(part: Part): Stays | undefined {
  return part.stays ?? (part.type === 'tool-call' && loadsTools(part.name) ? 'pair' : undefined);
}

/**
 * True for the name of a tool by which a client loads other tools: agents call it ToolSearch, gateways of MCP servers
 * `search_tools`, and a provider's own is `tool_search_tool_regex` or `tool_search_tool_bm25`.
 */
export function loadsTools(name: string): boolean {
  const known = loading.get(name);
  if (known !== undefined) return known;
  const loads = loadingName.test(name);
  if (loading.size < 10_000) loading.set(name, loads);
  return loads;
}

/** Results by name: every call of a conversation is checked in every turn. */
const loading = new Map<string, boolean>();

const loadingName =
  /^(?:mcp__\w+__)?(?:tool_?search(?:_?tool(?:_\w+)?)?|(?:search|find|load|discover)_?tools?)$/i;
