/**
 * Puts hidden recalls back into a body: each private round as it was sent, in front of what is left of the client's copy. How a codec
 * spells a round, and what tells one part from another, is its own.
 */
import type { Conversation, Message } from '../conversation/conversation.ts';
import type { Edit } from '../conversation/edit.ts';
import type { RecallRound, HiddenRecall } from '../conversation/hidden-recall.ts';
import { applySplices, type Insertion, type Splice } from '../conversation/splice.ts';
import type { Codec, PlacedHiddenRecall } from './codec.ts';
import {
  type Mark,
  maybeSame,
  nothingTaken,
  type Piece,
  type Said,
  type Taken,
  takeRound,
} from './match-copy.ts';
import { type HiddenRecallReader, saidInCopy, shownOf } from './reply-pieces.ts';
import { remembered } from './remembered.ts';
import { messageSplices, type MessageWriter } from './write-body.ts';

/** What only a codec knows of hidden recalls. */
export type HiddenRecallWriter = HiddenRecallReader & {
  /** A round as messages: the model's turn, and the answers behind it. Asked in every request, so it should be remembered. */
  round(conversation: Conversation, round: RecallRound): readonly Uint8Array[];
  /** A round whose answers stand beside the client's own results, which begin at message `results`. Undefined where they cannot. */
  besideResults(conversation: Conversation, round: RecallRound, results: number): BesideResults | undefined;
};

/** Messages in place of the client's copy, and what is spliced into its results. */
export type BesideResults = {
  readonly messages: readonly Uint8Array[];
  readonly splices: readonly Splice[];
};

type Placement = {
  readonly edits: readonly Edit[];
  readonly added: readonly Insertion[];
  readonly splices: readonly Splice[];
};

/** What the client was shown of a hidden recall, round by round and at last. */
type Shown = { readonly rounds: readonly Said[]; readonly closing: Said | undefined };

type Placer = HiddenRecallWriter & { shown(hiddenRecall: HiddenRecall): Shown };

/** The `insertHiddenRecalls` of a codec. */
export function hiddenRecallInserter(
  writer: HiddenRecallWriter,
  messages: MessageWriter,
): Codec['insertHiddenRecalls'] {
  // A hidden recall stands in every later request of its conversation.
  const placer = {
    ...writer,
    shown: remembered((hiddenRecall: HiddenRecall) => readShown(writer, hiddenRecall)),
  };
  return function insertHiddenRecalls(conversation, hiddenRecalls) {
    const placed = hiddenRecalls.flatMap(
      (hiddenRecall) => placeFirst(placer, conversation, hiddenRecall) ?? [],
    );
    if (placed.length === 0) return conversation.body;
    const edits = placed.flatMap((placement) => placement.edits);
    const added = placed.flatMap((placement) => placement.added);
    return applySplices(conversation.body, [
      ...messageSplices(conversation, edits, messages, added),
      ...placed.flatMap((placement) => placement.splices),
    ]);
  };
}

function readShown(reader: HiddenRecallReader, { rounds, closing }: HiddenRecall): Shown {
  const recallTool = rounds.at(-1)?.answers[0]?.call.name;
  return {
    rounds: rounds.map(({ turn }) => shownOf(reader, turn, recallTool)),
    closing: closing && shownOf(reader, closing, recallTool),
  };
}

function placeFirst(
  placer: Placer,
  conversation: Conversation,
  { at, turns }: PlacedHiddenRecall,
): Placement | undefined {
  const copy = copyAt(conversation, at);
  for (const hiddenRecall of turns) {
    const placement = placementOf(placer, conversation, copy, hiddenRecall);
    if (placement) return placement;
  }
  return undefined;
}

function placementOf(
  placer: Placer,
  conversation: Conversation,
  copy: readonly Message[],
  hiddenRecall: HiddenRecall,
): Placement | undefined {
  const shown = placer.shown(hiddenRecall);
  const said = saidInCopy(placer, conversation, copy, hiddenRecall);
  const taken = takenBy(shown, said);
  const [first] = copy;
  const last = hiddenRecall.rounds.at(-1);
  if (!first || !last || !taken) return undefined;
  const isBeside = shown.rounds.at(-1)!.calls.length > 0;
  const beside = isBeside ? placer.besideResults(conversation, last, first.index + copy.length) : undefined;
  if (isBeside && (!beside || !isAllTaken(said, taken))) return undefined;
  const whole = isBeside ? hiddenRecall.rounds.slice(0, -1) : hiddenRecall.rounds;
  const bytes = [...whole.flatMap((round) => placer.round(conversation, round)), ...(beside?.messages ?? [])];
  return {
    edits: takenAway(said, isBeside ? everything(said) : taken),
    added: bytes.map((message) => ({ before: first.index, bytes: message })),
    splices: beside?.splices ?? [],
  };
}

/** How much of the copy the rounds say; undefined when it is a copy of something else. */
function takenBy({ rounds, closing }: Shown, said: Said): Taken | undefined {
  let taken: Taken | undefined = nothingTaken;
  for (const round of rounds) taken = taken && takeRound(said, taken, round);
  return taken && closing && !maybeSame(said, taken, closing) ? undefined : taken;
}

/** The client's copy of one reply: the messages of the model from `at` on. Some clients make several of one. */
function copyAt({ messages }: Conversation, at: number): readonly Message[] {
  let end = at;
  while (messages[end]?.role === 'assistant') end++;
  return messages.slice(at, end);
}

/** Nothing may stand between the client's calls and their results; texts without a word are how some clients end a reply. */
function isAllTaken({ texts, calls, others }: Said, taken: Taken): boolean {
  const rest = texts.slice(taken.texts.piece).map(({ text }) => text);
  const isAll = taken.calls.piece === calls.length && taken.others.piece === others.length;
  return isAll && rest.join('').slice(taken.texts.offset).trim() === '';
}

function everything({ texts, reasoning, calls, others }: Said): Taken {
  return { texts: endOf(texts), reasoning: endOf(reasoning), calls: endOf(calls), others: endOf(others) };
}

function endOf({ length }: readonly Piece[]): Mark {
  return { piece: length, offset: 0 };
}

/** What the rounds say goes from the copy, for they stand in front of it now; a text that goes on behind them keeps its rest. */
function takenAway(said: Said, taken: Taken): readonly Edit[] {
  return (['texts', 'reasoning', 'calls', 'others'] as const).flatMap((kind): readonly Edit[] => {
    const { piece, offset } = taken[kind];
    const whole = said[kind].slice(0, piece).map(({ place }) => dropped(place));
    const cut = offset > 0 ? said[kind][piece] : undefined;
    if (!cut) return whole;
    const rest = cut.text.slice(offset);
    const kept: Edit = { kind: 'replace-text', at: { ...cut.place, text: 0 }, stub: rest, memory: '' };
    return [...whole, rest.trim() === '' ? dropped(cut.place) : kept];
  });
}

function dropped(place: { readonly message: number; readonly part: number }): Edit {
  return { kind: 'drop-part', ...place, memory: undefined };
}
