/**
 * Defines sessions as the files of agent CLIs record them: calls of a model with their usage, and conversations that can be replayed. A
 * conversation is kept in the form of Chat Completions, whatever the client's own format is. Pure.
 */
import type { Usage } from '../../conversation/conversation.ts';
import type { AgentCliName } from '../wrap/clients.ts';
import type { RecordedMessage } from '../replay/conversation-body.ts';

/** A session of a client. */
export type ClientSession = {
  readonly client: AgentCliName;
  /** The path of its file, or its id in a database. */
  readonly id: string;
  readonly conversations: readonly SessionConversation[];
};

/** A conversation of a session. A session has several if the client replaced its history by a summary. */
export type SessionConversation = {
  readonly items: readonly SessionItem[];
  readonly calls: readonly SessionCall[];
};

/** A call of a model that the client recorded. */
export type SessionCall = {
  /** The provider's id of the reply; the same id is the same call. */
  readonly id: string | undefined;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly model: string | undefined;
  readonly usage: Usage;
};

/** A message, in the order of the conversation. */
export type SessionItem =
  | { readonly type: 'user'; readonly text: string }
  | {
      readonly type: 'assistant';
      readonly text: string;
      readonly calls: readonly ToolUse[];
      /** Milliseconds since the epoch. */
      readonly at: number;
    }
  | { readonly type: 'result'; readonly call: string; readonly text: string };

export type ToolUse = { readonly id: string; readonly name: string; readonly argumentsJson: string };

/** Collects a session while its file is read. */
export type SessionBuilder = {
  user(text: string): void;
  /** Adds to the reply in progress, or begins one. `reply` is its id: equal ids are parts of one reply. */
  assistant(
    reply: string | undefined,
    at: number,
    part: { readonly text?: string; readonly use?: ToolUse },
  ): void;
  result(call: string, text: string): void;
  /** Adds a call. A call with the id of an earlier one replaces it: clients repeat the usage on each part of a reply. */
  call(call: SessionCall): void;
  /** Begins another conversation, after the client has replaced its history. */
  restart(): void;
  done(): readonly SessionConversation[];
};

export function createSession(): SessionBuilder {
  let items: SessionItem[] = [];
  let calls = new Map<string, SessionCall>();
  let reply: string | undefined;
  let unnamed = 0;
  const finished: SessionConversation[] = [];
  function finish(): void {
    if (items.length > 0 || calls.size > 0) finished.push({ items, calls: [...calls.values()] });
    items = [];
    calls = new Map();
    reply = undefined;
  }
  return {
    user(text) {
      if (text !== '') items.push({ type: 'user', text });
    },
    assistant(id, at, { text = '', use }) {
      const last = items.at(-1);
      if (last?.type === 'assistant' && id !== undefined && id === reply) {
        const joined = [last.text, text].filter((one) => one !== '').join('\n');
        items[items.length - 1] = { ...last, text: joined, calls: [...last.calls, ...(use ? [use] : [])] };
        return;
      }
      reply = id;
      items.push({ type: 'assistant', at, text, calls: use ? [use] : [] });
    },
    result(call, text) {
      items.push({ type: 'result', call, text });
    },
    call(call) {
      calls.set(call.id ?? `unnamed ${unnamed++}`, call);
    },
    restart: finish,
    done() {
      finish();
      return finished;
    },
  };
}

/** The messages of a conversation, and the indices of replies before which the provider's cache had expired. */
export type ReplayableConversation = {
  readonly messages: readonly RecordedMessage[];
  readonly coldAt: ReadonlySet<number>;
};

/**
 * Returns the messages as Chat Completions takes them: each call is followed by its result. A call without a result gets an empty one, and a
 * result without a call is left out.
 */
export function replayable(items: readonly SessionItem[], cacheKeptMs: number): ReplayableConversation {
  const results = new Map<string, string[]>();
  for (const item of items) {
    if (item.type === 'result') results.set(item.call, [...(results.get(item.call) ?? []), item.text]);
  }
  const messages: RecordedMessage[] = [];
  const coldAt = new Set<number>();
  let before: number | undefined;
  for (const item of items) {
    if (item.type === 'user') messages.push({ role: 'user', content: item.text });
    if (item.type !== 'assistant' || (item.text === '' && item.calls.length === 0)) continue;
    if (before !== undefined && item.at - before > cacheKeptMs) coldAt.add(messages.length);
    before = item.at;
    const uses = item.calls.map(({ id, name, argumentsJson }) => ({
      id,
      type: 'function',
      function: { name, arguments: argumentsJson },
    }));
    messages.push({
      role: 'assistant',
      content: item.text,
      ...(uses.length === 0 ? {} : { tool_calls: uses }),
    });
    for (const { id } of item.calls) {
      messages.push({
        role: 'tool',
        tool_call_id: id,
        content: results.get(id)?.shift() ?? '',
      } as RecordedMessage);
    }
  }
  return { messages, coldAt };
}
