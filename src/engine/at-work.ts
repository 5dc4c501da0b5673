/**
 * Finds content that the agent still works with: reads of files that the newest words name, steps that edit files, and results that were fetched again after
 * a fold. Pure; remembered by parts and by folds.
 */
import type { Conversation, Message, Part } from '../conversation/conversation.ts';
import { type Edit, lastMessageOf } from '../conversation/edit.ts';
import { inputOf, memoized, perMessage, textOf, textsOf } from '../conversation/messages.ts';
import { type Slices, type Steps, runInSlices } from '../conversation/steps.ts';
import {
  beginsReply,
  holdsResult,
  lastAssistant,
  pairCalls,
  type PartPlace,
  placeKey,
  repliesBegun,
  userSpeaks,
} from '../conversation/turns.ts';
import { openFixed, openNotes } from '../caches.ts';
import { filesRead, nameOf } from '../outline/files-shown.ts';
import { callWords } from '../outline/step-line.ts';
import { lineHashes } from '../arrival/line-index.ts';
import { folderOf, type ToolCallPart } from '../strategies/lib/editable-texts.ts';
import type { FoldView, Protection } from '../strategies/strategy.ts';
import type { FoldReport } from '../receipts/receipt.ts';
import type { ConversationCounter } from '../tokens/count-conversation.ts';
import { usualKeepForRequests } from '../triggers/cache-costs.ts';

// Reads that the agent is working with. An edit must quote its file byte for byte, and the file that it will change is mostly one that the user's newest
// message names, as a plan does, or the reply before it.

/** Requests for which the read of a named file counts as at work: until the file is edited, and after that. */
const atWorkFor = { unedited: 40, edited: 30 };

/** Bytes of the longest text that is searched for names. */
const maxNaming = 200_000;

/**
 * Adds the reads that the agent is working with to what is protected, where the provider caches. Only folds that save money spare them; others
 * must reach a size.
 */
export function sparingReads({
  conversation,
  protects,
  isCached = true,
}: Pick<FoldView, 'conversation' | 'protects'> & { readonly isCached?: boolean | undefined }): Protection {
  const reads = isCached ? readsAtWork(conversation) : noReads;
  if (reads.size === 0) return protects;
  const part = (message: number, at: number) =>
    protects.part(message, at) || reads.get(message)?.includes(at) === true;
  return { ...protects, part };
}

const noReads: ReturnType<typeof readsAtWork> = new Map();

/** Returns the results that show files which the user's newest message or the newest reply names: the indices of parts, by message. */
export const readsAtWork = memoized(findReadsAtWork);

function findReadsAtWork(conversation: Conversation): ReadonlyMap<number, readonly number[]> {
  const { body, messages } = conversation;
  const found = new Map<number, readonly number[]>();
  const { pairs } = pairCalls(conversation);
  /** Names of files that were edited after the calls that are still to come. */
  const edited = new Set<string>();
  let naming: readonly string[] | undefined;
  let [from, requests] = [messages.length, 0];
  for (let at = pairs.length - 1; at >= 0; at--) {
    const { call, result } = pairs[at]!;
    while (from > call.message) if (beginsReply(messages, --from)) requests++;
    // Some formats divide a reply into several messages. All are as old as the first.
    const age = requests + (beginsReply(messages, call.message) ? 0 : 1);
    if (age > atWorkFor.unedited) break;
    const message = messages[call.message]!;
    const { path, isEdit } = fileOf(body, message, message.parts[call.part]!);
    const name = nameOf(path);
    if (isEdit) edited.add(name);
    const isOld = edited.has(name) && age > atWorkFor.edited;
    if (!result || isEdit || path === '' || isOld) continue;
    naming ??= namingTexts(conversation);
    if (naming.some((text) => text.includes(name)))
      found.set(result.message, [...(found.get(result.message) ?? []), result.part]);
  }
  return found;
}

/** The file that a call reads or edits; `path` is empty for another call, and for a name too short to tell. */
type FileOfCall = { readonly path: string; readonly isEdit: boolean };

/** Files by call: bodies with the same bytes share the call. */
const filesOfCalls = openNotes<Part, FileOfCall>('part');

function fileOf(body: Uint8Array, message: Message, part: Part): FileOfCall {
  if (part.type !== 'tool-call') return { path: '', isEdit: false };
  const known = filesOfCalls.get(part);
  if (known) return known;
  const step = { tool: part.name, input: inputOf(body, message, part) };
  const [read] = filesRead(step);
  const words = read ? undefined : callWords(step);
  const path = read?.path ?? (words?.kind === 'edit' ? words.path : '');
  const file = { path: nameOf(path).length < 3 ? '' : path, isEdit: read === undefined };
  filesOfCalls.set(part, file);
  return file;
}

/** Returns the user's newest message and the newest reply. */
function namingTexts(conversation: Conversation): readonly string[] {
  const { messages } = conversation;
  const spoken = messages.findLast((message) => userSpeaks(conversation, message));
  const start = messages.findLastIndex(({ index }) => beginsReply(messages, index));
  const reply = messages.slice(start).filter(({ role }) => role === 'assistant');
  return [...(spoken ? [spoken] : []), ...reply].map((message) => spellMessage(conversation, message));
}

function spellMessage({ body }: Conversation, message: Message): string {
  if (message.span.end - message.span.start > maxNaming) return '';
  const texts = message.parts.flatMap((part) => {
    if (part.type === 'tool-call') return [inputOf(body, message, part)];
    return part.type === 'text' ? textsOf(part).map((span) => textOf(body, message, span)) : [];
  });
  return texts.join('\n');
}

// Steps that edit files, and steps that only run commands. A later edit quotes what an earlier one wrote, but nothing from the output of a command.

/** A step: it edits files, only runs commands or searches, does anything else with tools, only recalls, or only talks. */
export type KindOfStep = 'edits' | 'commands' | 'steps' | 'recalls' | 'replies';

/** Returns the kind of a step with these messages. */
export function kindOfStep(
  { body }: Conversation,
  messages: readonly Message[],
  protects: Pick<Protection, 'recalled'>,
): KindOfStep {
  const kinds = new Set<KindOfStep | 'results'>();
  for (const message of messages)
    for (const [at, part] of message.parts.entries()) {
      if (part.type !== 'tool-call' && part.type !== 'tool-result') continue;
      if (protects.recalled(message.index, at)) kinds.add('recalls');
      else kinds.add(part.type === 'tool-call' ? kindOfCall(body, message, part) : 'results');
    }
  if (kinds.has('edits')) return 'edits';
  if (kinds.has('commands') && !kinds.has('steps')) return 'commands';
  if (kinds.has('steps') || kinds.has('results')) return 'steps';
  return kinds.has('recalls') ? 'recalls' : 'replies';
}

/** Returns the kinds of the steps of all messages, as far as the messages up to each tell, and as if none was a recall. */
export function kindsSoFar({ body, messages }: Conversation): readonly KindOfStep[] {
  return kindsByMessage(messages, (message, before = 'replies') => {
    if (message.role !== 'assistant')
      return !holdsResult(message) ? 'replies' : before === 'replies' ? 'steps' : before;
    const start = beginsReply(messages, message.index) ? 'replies' : before;
    return message.parts.reduce((kind, part) => {
      if (part.type !== 'tool-call' || kind === 'edits') return kind;
      const own = kindOfCall(body, message, part);
      return kind === 'steps' && own === 'commands' ? kind : own;
    }, start);
  });
}

const kindsByMessage = perMessage<KindOfStep>();

/** Kinds by call: bodies with the same bytes share the call. */
const kindsOfCalls = openNotes<Part, KindOfStep>('part');

function kindOfCall(body: Uint8Array, message: Message, call: ToolCallPart): KindOfStep {
  const known = kindsOfCalls.get(call);
  if (known) return known;
  const step = { tool: call.name, input: inputOf(body, message, call) };
  const { kind } = callWords(step);
  const isCommand = kind === 'search' || (kind === 'command' && filesRead(step).length === 0);
  const found = kind === 'edit' ? 'edits' : isCommand ? 'commands' : 'steps';
  kindsOfCalls.set(call, found);
  return found;
}

// Results that were fetched again, by a tool instead of a recall. Only content ahead of one counts, so it counts in every later request, too.

/** A result that was fetched again. `strategy`: the one that folded most of its lines. */
export type FetchedAgain = PartPlace & { readonly strategy: string };

/** The share of a result's lines that were folded, and the fewest lines that tell. */
const minFoldedShare = 0.8;
const minTellingLines = 5;

/** The newest messages, which clients still change: their lines are kept once two requests had the same. */
const changingMessages = 4;

/** The lines of the first `upTo` messages, by their hash: the strategy that folded them, or '' for those that are sent. */
type LinesAhead = {
  readonly upTo: number;
  readonly last: Message | undefined;
  readonly lines: Map<number, string>;
  readonly found: readonly FetchedAgain[];
};

/**
 * The lines of the messages that a fold covers, and of those behind it: another branch has only the first ones. `newest`: the messages behind these,
 * whose lines are not kept.
 */
type LinesOfFold = {
  readonly covered: LinesAhead;
  readonly behind: LinesAhead;
  readonly newest: readonly Message[];
};

/** By the edits of a fold, whose list is the same in every request that repeats it. */
const linesOfFolds = openFixed<readonly Edit[], LinesOfFold>('lines of folds', {
  unitsOf: ({ covered, behind }) => covered.lines.size + behind.lines.size + 1,
});
const folderOfParts = memoized(folderOf);

/** Finds the results that were fetched again after the folds with these edits. Only messages that are new since the last call are read. */
export function* fetchedAgain(
  { body, messages }: Conversation,
  edits: readonly Edit[],
): Steps<readonly FetchedAgain[]> {
  const known = linesOfFolds.get(edits);
  const isAhead = (one: LinesAhead) => one.last === messages[one.upTo - 1];
  const none = { upTo: 0, last: undefined, found: [], lines: new Map<number, string>() };
  const { covered = none } = known && isAhead(known.covered) ? known : {};
  const rest = { ...covered, lines: new Map<number, string>() };
  const { behind = rest } = known && isAhead(known.behind) ? known : {};
  let kept = behind.upTo;
  for (const message of behind === known?.behind ? known.newest : []) if (message === messages[kept]) kept++;
  kept = Math.max(kept, messages.length - changingMessages);
  const endOfFold = (end: number, edit: Edit) => Math.min(kept, Math.max(end, lastMessageOf(edit) + 1));
  const end = behind.upTo > 0 ? covered.upTo : edits.reduce(endOfFold, 0);
  // While this run is paused, no other one may use its lines.
  linesOfFolds.delete(edits);
  const all = [...behind.found];
  const newest = new Map<number, string>();
  const goneBy = (line: number) => newest.get(line) ?? behind.lines.get(line) ?? covered.lines.get(line);
  for (const message of messages.slice(behind.upTo)) {
    const into = message.index < end ? covered.lines : message.index < kept ? behind.lines : newest;
    for (const [at, part] of message.parts.entries()) {
      yield;
      const own = yield* lineHashes(body, message, part);
      const strategy = folderOfParts(edits)(message, at);
      if (strategy === '' && part.type === 'tool-result' && own.length >= minTellingLines) {
        const fewest = own.length * minFoldedShare;
        const by: string[] = [];
        for (let line = 0; line < own.length && own.length - line + by.length >= fewest; line++) {
          const one = goneBy(own[line]!);
          if (one) by.push(one);
        }
        // The strategy of most lines stands in the middle.
        if (by.length >= fewest)
          all.push({ message: message.index, part: at, strategy: by.toSorted()[by.length >> 1]! });
      }
      // Nothing follows the newest message, so its lines are not looked up. A line that is sent anywhere is not folded.
      if (message.index === messages.length - 1 && into === newest) continue;
      for (const line of own) if (strategy === '' || goneBy(line) === undefined) into.set(line, strategy);
    }
  }
  const linesUpTo = (upTo: number, { lines }: LinesAhead): LinesAhead => {
    const found = all.filter(({ message }) => message < upTo);
    return { upTo, last: messages[upTo - 1], lines, found };
  };
  const ahead = { covered: linesUpTo(end, covered), behind: linesUpTo(kept, behind) };
  linesOfFolds.set(edits, { ...ahead, newest: messages.slice(kept) });
  return all;
}

/** The requests for which a result that was fetched again is protected: only a fold without which the request would not fit takes it. */
const keepFetchedAgain = 4 * usualKeepForRequests;

type InputOfFold = Pick<FoldView, 'conversation' | 'protects'> & {
  readonly slices?: Slices | undefined;
  readonly fetchedAgain?: readonly FetchedAgain[] | undefined;
};

/** Adds to the input of a fold which results were fetched again, and protects them while they are new. */
export async function withFetchedAgain<Input extends InputOfFold>(
  input: Input,
  edits: readonly Edit[],
): Promise<Input> {
  const { conversation, protects, slices } = input;
  const all = await runInSlices(fetchedAgain(conversation, edits), slices);
  const again = all.filter(({ message, part }) => !protects.recalled(message, part));
  if (again.length === 0) return input;
  const from = arrivedWithin(conversation, keepFetchedAgain);
  const kept = new Set(again.filter(({ message }) => message >= from).map(placeKey));
  const part = (message: number, at: number) =>
    protects.part(message, at) || kept.has(placeKey({ message, part: at }));
  return { ...input, fetchedAgain: again, protects: { ...protects, part } };
}

/** Reports the results after the newest reply that were fetched again. `fold`: the id of the fold that was found. */
export function newlyFetched(
  fullConversation: Conversation,
  {
    fetchedAgain: all = [],
    counter,
  }: Pick<InputOfFold, 'fetchedAgain'> & { readonly counter: ConversationCounter },
  fold: string | undefined,
): Pick<FoldReport, 'fetchedAgain'> {
  const last = lastAssistant(fullConversation) ?? -1;
  const again = all.filter(({ message }) => message > last);
  if (again.length === 0 || fold === undefined) return {};
  const { messages } = fullConversation;
  return {
    fetchedAgain: again.map(({ message, part, strategy }) => ({
      fold,
      strategy,
      tokens: counter.part(fullConversation, messages[message]!, messages[message]!.parts[part]!),
    })),
  };
}

/** Returns the index of the first message that arrived within so many requests: that has no more replies from it on. */
function arrivedWithin({ messages }: Conversation, requests: number): number {
  const begins = repliesBegun(messages);
  let from = messages.length;
  for (let count = 0; from > 0; from--) if (begins[from - 1] && ++count > requests) break;
  return from;
}
