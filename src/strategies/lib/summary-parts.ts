/**
 * Divides a summary where messages stay between those that it tells of, so that everything stands where it happened: each part has its place, and the ids
 * of its messages. Pure; each part looks at all messages once.
 */
import type { Message } from '../../conversation/conversation.ts';
import { type Edit, isLog, originalOfMessages } from '../../conversation/edit.ts';
import { groupBy } from '../../es2024.ts';
import { questionBefore, typedText } from '../../outline/lib/typed-text.ts';
import type { FoldView } from '../strategy.ts';
import { placesEdited } from './editable-texts.ts';
import {
  isFoldedHistory,
  type PlacedSummary,
  replyBefore,
  spellRecord,
  type SummaryRecord,
  summarySteps,
  textBefore,
  userText,
} from './summaries.ts';

/** A place between the messages of a summary where others stay: from `from` on, and the summary goes on at `upTo`. */
export type Gap = {
  readonly from: number;
  readonly upTo: number;
  /** True if words of the user stay there: the reply ahead of them ended a turn. */
  readonly isTurn: boolean;
  /** The question in that reply that a short answer among these words answers; empty if there is none. */
  readonly question: string;
};

/**
 * Finds the places between messages of a summary where others stay, in order. Recalls may stand anywhere. `covered` has the indices of the messages
 * that it tells of.
 */
function gapsIn(view: FoldView, covered: ReadonlySet<number>): readonly Gap[] {
  const { conversation, edits } = view;
  const gone = placesEdited(edits).messages;
  const gaps: Gap[] = [];
  let hasBegun = false;
  let open: Gap | undefined;
  for (const message of conversation.messages) {
    const { index, role } = message;
    if (covered.has(index)) {
      hasBegun = true;
      if (open) gaps.push({ ...open, upTo: index });
      open = undefined;
    } else if (hasBegun && !gone.has(index) && role !== 'system' && !isRecall(view, message)) {
      const isSaid = role === 'user' && !isFoldedHistory(conversation, message);
      const { words } = isSaid
        ? typedText(userText(conversation, message), textBefore(conversation, message, 0))
        : { words: '' };
      const question = words === '' || open ? '' : questionBefore(replyBefore(conversation, message), words);
      open ??= { from: index, upTo: index, isTurn: false, question };
      if (words !== '') open = { ...open, isTurn: true };
    }
  }
  return gaps;
}

/** Returns the question whose short answer stays right behind what a summary tells of; empty if there is none. */
export function questionBehind({ conversation, edits }: FoldView, dropped: readonly Message[]): string {
  const gone = placesEdited(edits).messages;
  const last = dropped.at(-1)?.index ?? -1;
  const answer = conversation.messages.find(({ index }) => index > last && !gone.has(index));
  if (answer?.role !== 'user' || isFoldedHistory(conversation, answer)) return '';
  const { words } = typedText(userText(conversation, answer), textBefore(conversation, answer, 0));
  return questionBefore(replyBefore(conversation, answer), words);
}

/** True for a message that only recalls something, and for one that has only what was recalled. */
function isRecall({ protects, recallTool }: FoldView, { index, parts }: Message): boolean {
  return parts.every(
    (part, at) =>
      part.type === 'reasoning' ||
      (part.type === 'tool-call' && part.name === recallTool) ||
      (part.type === 'tool-result' && protects.recalled(index, at)),
  );
}

/** Returns the newest id of each dropped message. */
export function originalIds(edits: readonly Edit[]): Map<number, string> {
  const ids = new Map<number, string>();
  for (const edit of edits)
    if (edit.kind === 'drop-message' && edit.memory !== undefined) ids.set(edit.message, edit.memory);
  return ids;
}

/** Finds the messages that logs of earlier folds stand for, if these stand between what a summary tells of, with the tokens of these logs. */
export function loggedBetween(
  { conversation, edits, measure }: FoldView,
  dropped: readonly Message[],
  told: readonly PlacedSummary[],
): { readonly messages: readonly Message[]; readonly tokens: number } {
  const covered = [...dropped.map(({ index }) => index), ...told.map(({ before }) => before)].toSorted(
    (a, b) => a - b,
  );
  const logs = edits.filter(isLog).filter(({ before }) => covered[0]! <= before && before < covered.at(-1)!);
  const messages = [...(logs.length === 0 ? [] : originalIds(edits).keys())]
    .filter((index) => logs.some((log) => log.before <= index && index < log.upTo))
    .map((index) => conversation.messages[index]!);
  return { messages, tokens: logs.reduce((sum, { text }) => sum + measure.text(text), 0) };
}

/** A part of a summary, which stands between messages that stay. */
export type SummaryPart = {
  /** The messages that it tells of, without those of the earlier summaries that it includes as texts. */
  readonly messages: readonly Message[];
  readonly told: readonly PlacedSummary[];
  /** Their originals, in order. */
  readonly originals: readonly PartOriginal[];
  /** The place behind it, where messages stay; undefined for the last part. */
  readonly gap: Gap | undefined;
};

/** Messages with one id; `isNew` if they have had another one, or none. */
type PartOriginal = { readonly id: string; readonly messages: readonly Message[]; readonly isNew: boolean };

type DividedMessages = Pick<SummaryPart, 'told'> & {
  readonly dropped: readonly Message[];
  /** Those of them that logs stood for. */
  readonly logged: readonly Message[];
  readonly maxParts: number;
};

/** Divides what a summary tells of into parts, where messages stay between them: first where the user speaks, and at the newest places. */
export function partsOf(
  view: FoldView,
  { dropped, logged, told, maxParts }: DividedMessages,
): readonly SummaryPart[] {
  const covered = new Set([...dropped.map(({ index }) => index), ...told.map(({ before }) => before)]);
  const gaps = gapsIn(view, covered)
    .filter(({ upTo }) => view.mayEdit(insertion(upTo)))
    .toSorted((a, b) => Number(b.isTurn) - Number(a.isTurn) || b.from - a.from)
    .slice(0, maxParts - 1)
    .toSorted((a, b) => a.from - b.from);
  const idOf = originalIds(view.edits);
  // Logs have many small originals. They can still be recalled, but the summary names one for all that it has taken in.
  for (const { index } of logged) idOf.delete(index);
  return [...gaps, undefined].map((gap, at): SummaryPart => {
    const [from, upTo] = [gaps[at - 1]?.from ?? -1, gap?.from ?? Number.POSITIVE_INFINITY];
    const messages = dropped.filter(({ index }) => from < index && index < upTo);
    return {
      messages,
      told: told.filter(({ before }) => from < before && before <= upTo),
      originals: originalsIn(
        view,
        groupBy(messages, ({ index }) => idOf.get(index)),
      ),
      gap,
    };
  });
}

/** Originals that a part names at most; with more, neighbors are joined until there are about so many. */
const maxOriginals = 6;
const fewOriginals = 4;

function originalsIn(
  view: FoldView,
  groups: ReadonlyMap<string | undefined, readonly Message[]>,
): readonly PartOriginal[] {
  const all = Array.from(groups, ([id, messages]) => ({ ids: [id], messages: [...messages] }));
  const size = all.reduce((sum, { messages }) => sum + messages.length, 0) / fewOriginals;
  const joined: typeof all = [];
  for (const { ids, messages } of all) {
    const last = joined.at(-1);
    if (!last || all.length <= maxOriginals || last.messages.length + messages.length > size)
      joined.push({ ids, messages });
    else {
      last.ids.push(...ids);
      last.messages.push(...messages);
    }
  }
  return joined.map(({ ids, messages }): PartOriginal => {
    const [id] = ids.length === 1 ? ids : [];
    if (id !== undefined) return { id, messages, isNew: false };
    const indices = messages.map(({ index }) => index).toSorted((a, b) => a - b);
    return { id: view.idOf(originalOfMessages(view.conversation, indices)), messages, isNew: true };
  });
}

/** Returns the edits that drop the messages of a summary, where they have no id yet or get another one. */
export function dropsOf(parts: readonly SummaryPart[]): readonly Edit[] {
  return parts
    .flatMap(({ originals }) => originals.filter(({ isNew }) => isNew))
    .flatMap(({ id, messages }) =>
      messages
        .toSorted((a, b) => a.index - b.index)
        .map(({ index }): Edit => ({ kind: 'drop-message', message: index, memory: id })),
    );
}

/** Returns a function that finds the number of a message's original in its part; undefined where a part has one original. */
export function numbersIn(parts: readonly SummaryPart[]): (message: Message) => number | undefined {
  const numbers = new Map<number, number>();
  for (const { told, originals } of parts) {
    const before = new Set(told.flatMap(({ record }) => record.memories.map(({ id }) => id))).size;
    if (before + originals.length === 1) continue;
    for (const [at, { messages }] of originals.entries())
      for (const { index } of messages) numbers.set(index, before + at + 1);
  }
  return ({ index }) => numbers.get(index);
}

type SummaryEdit = Extract<Edit, { readonly kind: 'insert-message' }>;

function insertion(before: number): SummaryEdit {
  return { kind: 'insert-message', before, role: 'user', text: '' };
}

/** Makes the edits that insert a summary in parts; undefined if one has no place. A part without a text joins the next one, or the last one. */
export function summaryEdits(
  view: FoldView,
  {
    parts,
    texts,
    isInstead,
  }: {
    readonly parts: readonly SummaryPart[];
    readonly texts: readonly string[];
    readonly isInstead: boolean;
  },
): readonly SummaryEdit[] | undefined {
  const joined: { of: SummaryPart[]; text: string }[] = [];
  let waiting: SummaryPart[] = [];
  for (const [at, part] of parts.entries()) {
    const text = texts[at]!;
    if (text === '') waiting.push(part);
    else joined.push({ of: [part, ...waiting.splice(0)], text });
  }
  joined.at(-1)?.of.push(...waiting);
  const edits = joined.flatMap(({ of, text: body }, at): readonly SummaryEdit[] => {
    const told = of.flatMap((part) => part.told);
    const messages = of.flatMap((part) => part.messages).toSorted((a, b) => a.index - b.index);
    const indices = messages.map(({ index }) => index);
    const steps = summarySteps(view.conversation, messages, view.recallTool);
    const record: SummaryRecord = {
      messages: messages.length + told.reduce((sum, one) => sum + one.record.messages, 0),
      calls:
        steps.filter(({ type }) => type === 'called').length +
        told.reduce((sum, one) => sum + one.record.calls, 0),
      memories: [
        ...told.flatMap((one) => one.record.memories),
        ...of.flatMap((part) => part.originals.map((one) => ({ id: one.id, messages: one.messages.length }))),
      ],
      body,
    };
    const from = Math.min(indices[0] ?? Number.POSITIVE_INFINITY, ...told.map(({ before }) => before));
    const upTo = 1 + (indices.at(-1) ?? from);
    const text = spellRecord(record, view.recallTool, at > 0);
    const summary = isInstead && at === 0 ? 'instead' : 'beside';
    const edit = [from, upTo].map((before) => ({ ...insertion(before), text, summary, upTo }) as const);
    return edit.filter((one) => view.mayEdit(one)).slice(0, 1);
  });
  return edits.length < joined.length || edits.length === 0 ? undefined : edits;
}
