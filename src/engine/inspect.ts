/**
 * Describes a prepared request in detail, for receipts that are read later: what became of each message and why, and each new edit with
 * its text. It runs after the response has ended, and only where receipts are kept. Counts of old messages are remembered, so it costs
 * one pass over the messages; no original is counted again.
 */
import type { Conversation, Message, Part } from '../conversation/conversation.ts';
import { type Edit, lastMessageOf } from '../conversation/edit.ts';
import { inputOf, textOf, textsOf } from '../conversation/messages.ts';
import { pairCalls, placeKey } from '../conversation/turns.ts';
import { groupBy } from '../es2024.ts';
import type { OpenedRequest } from './history.ts';
import { oneLine, wholeWords } from '../outline/outcome.ts';
import { callWords, stepLine } from '../outline/step-line.ts';
import type { Draft, PlanInput } from './plan.ts';
import { keptReason } from './shrinks.ts';
import {
  type EditDetail,
  type MessageDetail,
  type MessageState,
  type RequestDetail,
  type TriggerFigures,
  maxListed,
  maxRows,
  maxStubLength,
} from '../receipts/detail.ts';
import { titlesOf } from '../recall/read-original.ts';
import type { Demand } from '../triggers/trigger.ts';

/** A request that was prepared. */
type InspectedRequest = {
  readonly opened: OpenedRequest;
  readonly demand: Demand | undefined;
  readonly result: Draft;
  /** Edits that were not sent before. */
  readonly newEdits: readonly Edit[];
};

/** The largest number of edits that are described. */
const maxEdits = 500;

/** Describes the request. */
export function detailOf(request: InspectedRequest): RequestDetail {
  const { opened, demand, result } = request;
  const conversation = opened.fullConversation;
  const sent = new Set<Edit>([...result.edits, ...result.shrinks]);
  const newEdits = request.newEdits.filter((edit) => sent.has(edit));
  const isFolded = result !== opened.start;
  const words = createWords(conversation);
  const sizes = createSizes(opened.input);
  const edited = editedMessages(opened, result);
  const changed = new Set(newEdits.filter(({ kind }) => kind !== 'insert-message').map(lastMessageOf));
  const last = conversation.messages.length - maxRows;
  const listed = conversation.messages
    .filter(({ index }) => changed.has(index) || (isFolded && (index >= last || edited.has(index))))
    .slice(-maxListed);
  return {
    trigger: demand && figuresOf(opened, demand),
    messageCount: conversation.messages.length,
    messages: listed.map((message) => rowOf(opened, demand, { message, edited, words, sizes })),
    edits: editsOf(conversation, newEdits.slice(0, maxEdits), new Set(result.shrinks), words, sizes),
  };
}

function figuresOf({ state }: OpenedRequest, demand: Demand): TriggerFigures {
  const { tokens, messages, window, idleMs } = state;
  const { trigger, goal, atMost, force } = demand;
  return { name: trigger, tokens, messages, window, idleMs, goal, atMost, force };
}

/** The edits of each changed message, and whether they are new. */
type EditedMessage = { readonly edits: readonly Edit[]; readonly state: MessageState };

function editedMessages({ start }: OpenedRequest, result: Draft): ReadonlyMap<number, EditedMessage> {
  const replayed = new Set(start.edits);
  const edited = new Map<number, { edits: Edit[]; state: MessageState }>();
  const add = (edit: Edit, state: MessageState) => {
    if (edit.kind === 'insert-message') return;
    const index = lastMessageOf(edit);
    const known = edited.get(index);
    if (known === undefined) edited.set(index, { edits: [edit], state });
    else {
      known.edits.push(edit);
      // A message with old and new edits counts as folded now.
      if (state === 'folded') known.state = state;
    }
  };
  for (const edit of result.edits) add(edit, replayed.has(edit) ? 'replayed' : 'folded');
  for (const edit of result.shrinks) add(edit, 'shrunk');
  return edited;
}

type RowInput = {
  readonly message: Message;
  readonly edited: ReadonlyMap<number, EditedMessage>;
  readonly words: Words;
  readonly sizes: Sizes;
};

function rowOf(
  opened: OpenedRequest,
  demand: Demand | undefined,
  { message, edited, words, sizes }: RowInput,
): MessageDetail {
  const { input, fullConversation } = opened;
  const { index, role } = message;
  const before = input.counter.message(fullConversation, index);
  const change = edited.get(index);
  const row = { index, role, what: words.messageOf(message), before };
  if (change === undefined) {
    const kept = demand && keptReason(input, demand, message);
    return { ...row, after: before, state: 'sent', ...(kept && { kept }) };
  }
  const isDropped = change.edits.some(({ kind }) => kind === 'drop-message');
  const saved = change.edits.reduce((sum, edit) => {
    const { from, to } = sizes.of(fullConversation, edit);
    return sum + from - to;
  }, 0);
  return { ...row, after: isDropped ? 0 : Math.max(0, before - saved), state: change.state };
}

type Words = {
  /** Names what a message is. */
  messageOf(message: Message): string;
  /** Names the tool of a result or a call; undefined for other parts. */
  toolAt(message: number, part: number): string | undefined;
  labelOf(message: Message, part: number): string;
  /** Returns how many replies the model has made since a message. */
  repliesSince(index: number): number;
};

function createWords(conversation: Conversation): Words {
  const { messages } = conversation;
  const tools = new Map<string, string>();
  for (const { name, call, result } of pairCalls(conversation).pairs) {
    tools.set(placeKey(call), name);
    if (result) tools.set(placeKey(result), name);
  }
  const toolAt = (message: number, part: number) => tools.get(placeKey({ message, part }));
  const replies = repliesFrom(messages);
  function labelOf({ index, parts }: Message, at: number): string {
    const part = parts[at]!;
    if (part.type === 'tool-result') return `result of ${toolAt(index, at) ?? 'a tool'}`;
    return part.type === 'tool-call' ? `call of ${part.name}` : part.type;
  }
  return {
    toolAt,
    labelOf,
    messageOf: (message) => [...new Set(message.parts.map((_, at) => labelOf(message, at)))].join(', '),
    repliesSince: (index) => replies[index + 1] ?? 0,
  };
}

/** Returns for each index the number of replies from there on. Neighboring assistant messages are one reply. */
function repliesFrom(messages: readonly Message[]): readonly number[] {
  const counts = Array.from({ length: messages.length + 1 }, () => 0);
  for (let index = messages.length - 1; index >= 0; index--) {
    const isReply = messages[index]!.role === 'assistant' && messages[index + 1]?.role !== 'assistant';
    counts[index] = counts[index + 1]! + Number(isReply);
  }
  return counts;
}

type Sizes = {
  /** Estimates the tokens of what an edit replaces, and counts those of its text. */
  of(conversation: Conversation, edit: Edit): { readonly from: number; readonly to: number };
};

function createSizes({ counter }: PlanInput): Sizes {
  const shareOf = createShares();
  return {
    of(conversation, edit) {
      if (edit.kind === 'insert-message') return { from: 0, to: counter.text(edit.text) };
      const message = conversation.messages[lastMessageOf(edit)]!;
      if (edit.kind === 'drop-message') return { from: counter.message(conversation, message.index), to: 0 };
      const part = message.parts[edit.kind === 'replace-text' ? edit.at.part : edit.part]!;
      const whole = counter.part(conversation, message, part);
      switch (edit.kind) {
        case 'drop-part':
          return { from: whole, to: 0 };
        case 'replace-input':
          return { from: whole, to: counter.text(edit.input) };
        case 'replace-media':
          return { from: whole, to: counter.text(edit.stub) };
        case 'replace-text':
          return {
            from: Math.round(whole * shareOf(part, edit.at.text)),
            to: counter.text(edit.stub),
          };
      }
    },
  };
}

/** Returns a function for the share of a part's bytes that one of its texts takes. A part may have very many texts, so it is summed up once. */
function createShares(): (part: Part, text: number) => number {
  const sums = new Map<Part, number>();
  return (part, text) => {
    const texts = textsOf(part);
    const all = sums.get(part) ?? texts.reduce((sum, { start, end }) => sum + end - start, 0);
    sums.set(part, all);
    const span = texts[text];
    return all === 0 || span === undefined ? 0 : (span.end - span.start) / all;
  };
}

/** Describes edits. Messages that were dropped under one id are one entry, with the text that was inserted for them. */
function editsOf(
  conversation: Conversation,
  edits: readonly Edit[],
  shrinks: ReadonlySet<Edit>,
  words: Words,
  sizes: Sizes,
): readonly EditDetail[] {
  const titles = titlesOf(conversation, edits);
  const inserted = edits.filter((edit) => edit.kind === 'insert-message');
  const shown = new Set<Edit>();
  const groups = new Map<string, EditDetail>();
  const dropped = new Map<string, Message[]>();
  const details: EditDetail[] = [];
  for (const edit of edits) {
    if (edit.kind === 'insert-message') continue;
    const message = lastMessageOf(edit);
    const { from, to } = sizes.of(conversation, edit);
    if (edit.kind === 'drop-message') {
      const key = edit.memory ?? `message ${message}`;
      const known = groups.get(key);
      if (!known) dropped.set(key, []);
      dropped.get(key)!.push(conversation.messages[message]!);
      const log = known ? undefined : inserted.find((one) => covers(one, message) && !shown.has(one));
      if (log) shown.add(log);
      const stub = known?.stub ?? log?.text ?? '';
      const first = known?.message ?? message;
      groups.set(key, {
        by: 'fold',
        message: first,
        messages: (known?.messages ?? 0) + 1,
        tool: undefined,
        title: '',
        memory: edit.memory,
        stub: stub.slice(0, maxStubLength),
        before: (known?.before ?? 0) + from,
        after: known?.after ?? (log ? sizes.of(conversation, log).to : 0),
        requests: known?.requests ?? words.repliesSince(first),
      });
      continue;
    }
    const part = edit.kind === 'replace-text' ? edit.at.part : edit.part;
    const title = edit.memory === undefined ? undefined : titles.get(edit.memory)?.text;
    const stub = edit.kind === 'replace-input' ? edit.input : edit.kind === 'drop-part' ? '' : edit.stub;
    details.push({
      by: shrinks.has(edit) ? 'shrink' : 'fold',
      message,
      messages: 1,
      tool: words.toolAt(message, part),
      title: title ?? words.labelOf(conversation.messages[message]!, part),
      memory: edit.memory,
      stub: stub.slice(0, maxStubLength),
      before: from,
      after: to,
      requests: words.repliesSince(message),
    });
  }
  const others = inserted
    .filter((edit) => !shown.has(edit))
    .map((edit) => insertedDetail(edit, sizes, conversation));
  const named = Array.from(groups, ([key, group]) => ({
    ...group,
    title: titleOf(conversation, dropped.get(key)!),
  }));
  return [...named, ...others, ...details].toSorted((a, b) => a.message - b.message);
}

/** The most tools that a title names. */
const maxNamed = 5;

/** Names messages that were dropped: one call as the log names it, several calls by their tools, other messages by their first words. */
function titleOf({ body }: Conversation, messages: readonly Message[]): string {
  const calls = messages.flatMap((message) =>
    message.parts.flatMap((part) =>
      part.type === 'tool-call' ? callWords({ tool: part.name, input: inputOf(body, message, part) }) : [],
    ),
  );
  const [call] = calls;
  if (call && calls.length === 1) {
    const line = stepLine({ ...call, outcome: '', hasFailed: false, user: undefined });
    return line === `${call.tool}: ok` ? call.tool : line;
  }
  if (call) {
    const named = Array.from(
      groupBy(calls, ({ tool }) => tool),
      ([tool, { length }]) => (length === 1 ? tool : `${tool} ×${length}`),
    );
    const more = named.length > maxNamed ? ' and more' : '';
    return `${messages.length} messages: ${named.slice(0, maxNamed).join(', ')}${more}`;
  }
  const [message] = messages;
  const span = message && message.parts.flatMap(textsOf)[0];
  if (messages.length > 1) return `${messages.length} messages`;
  if (!span) return 'a message';
  return `${message.role}: ${wholeWords(oneLine(textOf(body, message, span)), 60)}`;
}

type InsertedMessage = Extract<Edit, { kind: 'insert-message' }>;

/** True when an inserted text stands for a message that was dropped. */
function covers({ before, upTo }: InsertedMessage, message: number): boolean {
  return before <= message && (upTo === undefined || message < upTo);
}

function insertedDetail(edit: InsertedMessage, sizes: Sizes, conversation: Conversation): EditDetail {
  return {
    by: 'fold',
    message: edit.before,
    messages: 0,
    tool: undefined,
    title: edit.summary === undefined ? 'inserted text' : 'summary',
    memory: edit.stretch?.memory,
    stub: edit.text.slice(0, maxStubLength),
    before: 0,
    after: sizes.of(conversation, edit).to,
    requests: 0,
  };
}
