/**
 * Edits are data: strategies return them, the fold store stores them, a codec writes them into the bytes. Nothing is mutated.
 * Indices always count in the conversation as the client sent it, before any edit. Also defines which content no edit may
 * change.
 */
import { openNotes } from '../caches.ts';
import type { Conversation, Media, MediaPlace, TextPlace, Message, Part, Stays } from './conversation.ts';
import { bytesOf, mediaOf, textsOf, memoizedInSteps, messagesPerStep } from './messages.ts';
import { groupBy } from '../es2024.ts';
import { runSteps, type Steps } from './steps.ts';
import { pairInSteps, placeKey, unitsInSteps } from './turns.ts';

/** `by` names the strategy that made the edit; undefined in folds of versions that did not record it. */
export type Edit = EditOfKind & { readonly by?: string };

type EditOfKind =
  /**
   * Replaces one text by `stub`. `memory` is the id under which the original can be recalled; undefined when nothing is lost,
   * because all of the original is still there.
   */
  | {
      readonly kind: 'replace-text';
      readonly at: TextPlace;
      readonly stub: string;
      readonly memory: string | undefined;
    }
  /** Replaces the arguments of a call by others: the JSON text of an object. `memory` is the id of the original arguments. */
  | {
      readonly kind: 'replace-input';
      readonly message: number;
      readonly part: number;
      readonly input: string;
      readonly memory: string;
    }
  /** Replaces an image, document or sound by `stub`. `memory` is the id of the content part that held it. */
  | ({ readonly kind: 'replace-media'; readonly stub: string; readonly memory: string } & MediaPlace)
  /** Removes one part from its message. A message left without parts is removed too. */
  | {
      readonly kind: 'drop-part';
      readonly message: number;
      readonly part: number;
      readonly memory: string | undefined;
    }
  | { readonly kind: 'drop-message'; readonly message: number; readonly memory: string | undefined }
  /** Inserts a message ahead of message `before`. */
  | {
      readonly kind: 'insert-message';
      readonly before: number;
      readonly role: 'user';
      readonly text: string;
      /** For a log of dropped messages, and for a summary: the index behind the last one. The first one is `before`. */
      readonly upTo?: number;
      /** For a summary: whether it comes `beside` earlier summaries, or includes them and comes `instead` of them. */
      readonly summary?: 'beside' | 'instead';
      /** The finished sub-goal that the text replaces, if it is one of several. (Stored under this key.) */
      readonly stretch?: FinishedSubgoal;
    };

/** A finished sub-goal that a text replaces: its messages, or several sub-goals merged into one of a higher level. */
export type FinishedSubgoal = {
  /** 1 is a sub-goal, 2 a phase, 3 and more overviews. */
  readonly level: number;
  /** The id that recalls the original messages. */
  readonly memory: string;
  readonly calls: number;
  /** For a higher level: the texts that it replaced, in order. */
  readonly of: readonly { readonly text: string; readonly stretch: FinishedSubgoal }[];
};

/** Returns the highest message index an edit needs: it can be replayed on every prefix that is longer. */
export function lastMessageOf(edit: Edit): number {
  switch (edit.kind) {
    case 'replace-text':
      return edit.at.message;
    case 'replace-input':
    case 'replace-media':
    case 'drop-part':
    case 'drop-message':
      return edit.message;
    case 'insert-message':
      return edit.before;
  }
}

/** True for an inserted message that is a summary. */
export function isSummary(edit: Edit): edit is Edit & { readonly kind: 'insert-message' } {
  return edit.kind === 'insert-message' && edit.summary !== undefined;
}

/** Returns the edits without the summaries, sub-goals and logs that a later one includes. */
export function withoutTakenIn(edits: readonly Edit[]): readonly Edit[] {
  const newest = edits.findLastIndex((edit) => isSummary(edit) && edit.summary === 'instead');
  const takenIn = new Set<string>();
  for (const edit of edits) for (const { stretch } of subgoalOf(edit)?.of ?? []) takenIn.add(stretch.memory);
  const logs = logsTakenIn(edits);
  return edits.filter(
    (edit, at) =>
      (at >= newest || !isSummary(edit)) && !takenIn.has(subgoalOf(edit)?.memory ?? '') && !logs.has(edit),
  );
}

/** Finds the logs that a later summary or log includes: of logs that overlap, the newest stays. */
function logsTakenIn(edits: readonly Edit[]): ReadonlySet<Edit> {
  const takenIn = new Set<Edit>();
  const inOrder = edits.flatMap((log, at) => (isLog(log) ? [{ log, at }] : []));
  for (const [at, edit] of edits.entries())
    if (isSummary(edit))
      for (const { log, at: made } of inOrder)
        if (made < at && edit.before <= log.before && log.before < (edit.upTo ?? 0)) takenIn.add(log);
  let last: (typeof inOrder)[number] | undefined;
  for (const one of inOrder.toSorted((a, b) => a.log.before - b.log.before || b.at - a.at)) {
    const overlaps = last !== undefined && one.log.before < last.log.upTo;
    const older = overlaps && one.at < last!.at ? one : last;
    if (overlaps) takenIn.add(older!.log);
    if (older !== one) last = one;
  }
  return takenIn;
}

/** True for an inserted message that is a log of dropped messages. */
export function isLog(edit: Edit): edit is Edit & { readonly kind: 'insert-message'; readonly upTo: number } {
  return edit.kind === 'insert-message' && edit.upTo !== undefined && edit.summary === undefined;
}

export function subgoalOf(edit: Edit): FinishedSubgoal | undefined {
  return edit.kind === 'insert-message' ? edit.stretch : undefined;
}

// Originals: the exact JSON bytes that edits took out of a body, found by memory id. The original of a text is its string literal,
// that of arguments their literal or object, that of parts and messages a JSON array of their bytes. It is found in the body
// itself, so recall needs no store while the client resends it.

const encoder = new TextEncoder();

/** Returns the ids that can be recalled under these edits, each once. */
export function originalIdsOf(edits: readonly Edit[]): readonly string[] {
  return [...new Set(edits.flatMap((edit) => originalIdOf(edit) ?? []))];
}

/** Returns the ids of all originals of these edits, each once, including those of the levels within a sub-goal. */
export function allOriginalIdsOf(edits: readonly Edit[]): readonly string[] {
  const ids = new Set(originalIdsOf(edits));
  const add = (subgoal: FinishedSubgoal | undefined): void => {
    if (subgoal === undefined) return;
    ids.add(subgoal.memory);
    for (const one of subgoal.of) add(one.stretch);
  };
  for (const edit of edits) add(subgoalOf(edit));
  return [...ids];
}

/** True when anything can be recalled under these edits. Called several times for every request. */
export function leavesOriginals(edits: readonly Edit[]): boolean {
  return edits.some((edit) => originalIdOf(edit) !== undefined);
}

function originalIdOf(edit: Edit): string | undefined {
  return edit.kind === 'insert-message' ? edit.stretch?.memory : edit.memory;
}

/** Returns the originals of an edit set by memory id. Edits without an id are left out. */
export function originalsOf(conversation: Conversation, edits: readonly Edit[]): Originals {
  return runSteps(originalsInSteps(conversation, edits));
}

type Originals = ReadonlyMap<string, Uint8Array>;

/** Returns the same as `originalsOf`, in steps. */
export function* originalsInSteps(conversation: Conversation, edits: readonly Edit[]): Steps<Originals> {
  const originals = new Map<string, Uint8Array>();
  for (const [at, edit] of edits.entries()) {
    if (at % 64 === 63) yield;
    addSubgoals(originals, subgoalOf(edit));
    if (edit.kind === 'insert-message' || edit.memory === undefined) continue;
    switch (edit.kind) {
      case 'replace-text':
        originals.set(edit.memory, originalOfText(conversation, edit));
        break;
      case 'replace-input':
        originals.set(edit.memory, originalOfInput(conversation, edit));
        break;
      case 'replace-media':
        originals.set(edit.memory, originalOfMedia(conversation, edit));
        break;
      case 'drop-part':
        originals.set(edit.memory, originalOfPart(conversation, edit.message, edit.part));
        break;
      case 'drop-message':
        // One original can hold many messages.
        break;
    }
  }
  const drops = edits.filter((edit) => edit.kind === 'drop-message');
  for (const [memory, dropped] of groupBy(drops, (edit) => edit.memory)) {
    yield;
    const indices = dropped.map(({ message }) => message);
    if (memory !== undefined) originals.set(memory, originalOfMessages(conversation, indices));
  }
  return originals;
}

/** Adds the originals of an edit level by level; below the lowest level are messages, which other edits removed. */
function addSubgoals(originals: Map<string, Uint8Array>, subgoal: FinishedSubgoal | undefined): void {
  if (subgoal === undefined || subgoal.of.length === 0) return;
  originals.set(subgoal.memory, originalOfTexts(subgoal.of));
  for (const one of subgoal.of) addSubgoals(originals, one.stretch);
}

/** Spells texts in the form of an original. */
export function originalOfTexts(texts: readonly { readonly text: string }[]): Uint8Array {
  return encoder.encode(JSON.stringify(texts.map(({ text }) => text).join('\n\n')));
}

/** Gives ids to the removals that have none yet. */
export function withOriginalIds(
  conversation: Conversation,
  edits: readonly Edit[],
  idOf: (original: Uint8Array) => string,
): readonly Edit[] {
  return edits.map((edit) => {
    if ((edit.kind !== 'drop-part' && edit.kind !== 'drop-message') || edit.memory !== undefined) return edit;
    const original =
      edit.kind === 'drop-part'
        ? originalOfPart(conversation, edit.message, edit.part)
        : originalOfMessages(conversation, [edit.message]);
    return { ...edit, memory: idOf(original) };
  });
}

export function originalOfMessages(conversation: Conversation, indices: readonly number[]): Uint8Array {
  const spans = indices.map((index) => conversation.messages[index]!.span);
  return arrayOf(spans.map(({ start, end }) => conversation.body.subarray(start, end)));
}

function originalOfPart(conversation: Conversation, index: number, part: number): Uint8Array {
  const message = conversation.messages[index]!;
  return arrayOf([bytesOf(conversation.body, message, message.parts[part]!.span)]);
}

function originalOfText(
  conversation: Conversation,
  edit: Edit & { readonly kind: 'replace-text' },
): Uint8Array {
  const message = conversation.messages[edit.at.message]!;
  return bytesOf(conversation.body, message, textsOf(message.parts[edit.at.part]!)[edit.at.text]!);
}

function originalOfMedia(conversation: Conversation, place: MediaPlace): Uint8Array {
  const message = conversation.messages[place.message]!;
  return bytesOf(conversation.body, message, mediaAt(conversation, place)!.span);
}

function originalOfInput(
  conversation: Conversation,
  edit: Edit & { readonly kind: 'replace-input' },
): Uint8Array {
  const message = conversation.messages[edit.message]!;
  const part = message.parts[edit.part]!;
  return bytesOf(conversation.body, message, part.type === 'tool-call' ? part.input : part.span);
}

const [OPEN_BRACKET, COMMA, CLOSE_BRACKET] = [0x5b, 0x2c, 0x5d];

function arrayOf(values: readonly Uint8Array[]): Uint8Array {
  const separators = Math.max(0, values.length - 1);
  const joined = new Uint8Array(values.reduce((sum, value) => sum + value.length, separators + 2));
  joined[0] = OPEN_BRACKET;
  let at = 1;
  for (const value of values) {
    if (at > 1) joined[at++] = COMMA;
    joined.set(value, at);
    at += value.length;
  }
  joined[at] = CLOSE_BRACKET;
  return joined;
}

// Content that no edit may change in any format, whatever the trigger: tools that the model has only from the messages (results
// of a tool search, lists of tools), and objects that two parsers may read differently. A codec's reader sets `stays` on such
// parts.

type Staying = {
  /** Messages that stay as a whole message; single parts of them may change. */
  readonly messages: ReadonlySet<number>;
  /** Keys of the parts that stay. */
  readonly parts: ReadonlySet<string>;
};

type MayEdit = (conversation: Conversation, edit: Edit) => boolean;

/** Applies these limits ahead of the rules of a format. */
export function exceptKept(mayEdit: MayEdit): MayEdit {
  return (conversation, edit) =>
    !touchesWhatStays(conversation, edit) && !isFixedMedia(conversation, edit) && mayEdit(conversation, edit);
}

/** Returns the image, document or sound at a place; undefined when there is none. */
export function mediaAt({ messages }: Conversation, { message, part, media }: MediaPlace): Media | undefined {
  const found = messages[message]?.parts[part];
  return found && mediaOf(found)[media];
}

/** Media of the model's own words stay, and so does everything that only the client's format knows. */
function isFixedMedia(conversation: Conversation, edit: Edit): boolean {
  if (edit.kind !== 'replace-media') return false;
  const { role } = conversation.messages[edit.message]!;
  const media = mediaAt(conversation, edit);
  return (role !== 'user' && role !== 'tool') || !media || !isReplaceable(media);
}

/** True for media that a stub may replace. Parts of unknown kinds may hold data of the client's, and short references gain nothing. */
export function isReplaceable({ kind, data, isFixed, span }: Media): boolean {
  return (
    isFixed !== true && (kind !== 'other' || data !== undefined) && span.end - span.start >= minMediaBytes
  );
}

/** Bytes of the smallest content part that is replaced: no edit may make a request longer than it was. */
const minMediaBytes = 300;

function touchesWhatStays(conversation: Conversation, edit: Edit): boolean {
  const staying = stayingIn.now(conversation);
  const message = lastMessageOf(edit);
  if (!staying?.messages.has(message) || edit.kind === 'insert-message') return false;
  if (edit.kind === 'drop-message') return true;
  const part = edit.kind === 'replace-text' ? edit.at.part : edit.part;
  return staying.parts.has(placeKey({ message, part }));
}

/** Finds the content that has to stay; undefined if there is none, as in nearly every conversation. Called for every edit that is considered. */
const stayingIn = memoizedInSteps(findStaying);
export const stayingInSteps = stayingIn.inSteps;

function* findStaying(conversation: Conversation): Steps<Staying | undefined> {
  if (!(yield* holdsStaying(conversation.messages))) return undefined;
  const messages = new Set<number>();
  const parts = new Set<string>();
  const keep = (message: number, part: number) => {
    messages.add(message);
    parts.add(placeKey({ message, part }));
  };
  const kinds = new Set<Stays>();
  for (const { index, parts: all } of conversation.messages) {
    if (index % messagesPerStep === 0) yield;
    for (const [at, part] of all.entries()) {
      const stays = staysWith(part);
      if (stays === undefined) continue;
      keep(index, at);
      kinds.add(stays);
    }
  }
  for (const { call, result } of kinds.has('pair') ? (yield* pairInSteps(conversation)).pairs : []) {
    if (!result || (!parts.has(placeKey(call)) && !parts.has(placeKey(result)))) continue;
    keep(call.message, call.part);
    keep(result.message, result.part);
  }
  for (const unit of kinds.has('step') ? yield* unitsInSteps(conversation) : []) {
    if (!unit.some((message) => message.parts.some(({ stays }) => stays === 'step'))) continue;
    for (const message of unit) message.parts.forEach((_, at) => keep(message.index, at));
  }
  return { messages, parts };
}

/** Looks only at the messages after those of an earlier request. */
function* holdsStaying(messages: readonly Message[]): Steps<boolean> {
  let from = messages.length;
  while (from > 0 && !free.has(messages[from - 1]!)) from--;
  for (let index = from; index < messages.length; index++) {
    if (index % messagesPerStep === 0) yield;
    for (const part of messages[index]!.parts) if (staysWith(part) !== undefined) return true;
  }
  for (const last of messages.slice(-1)) free.set(last, true);
  return false;
}

/** Newest messages of requests in which no part has to stay. */
const free = openNotes<Message, true>('message');

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

/** Results of `loadsTools` by name: every call of a conversation is checked in every turn. */
const loading = new Map<string, boolean>();

const loadingName =
  /^(?:mcp__\w+__)?(?:tool_?search(?:_?tool(?:_\w+)?)?|(?:search|find|load|discover)_?tools?)$/i;
