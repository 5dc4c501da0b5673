/**
 * Puts hidden recalls back into a body: each private round as it was sent, in front of what is left of the client's copy. How a codec
 * spells a round, and what tells one part from another, is its own.
 */
import { isRecord } from '../conversation/json-record.ts';
import {
  bytesOf,
  decodeLiteral,
  textOf,
  textsOf,
  type Conversation,
  type Message,
  type Part,
} from '../conversation/conversation.ts';
import type { Edit } from '../conversation/edit.ts';
import type { HiddenRecall, RecallRound } from '../conversation/hidden-recall.ts';
import { applySplices, type Insertion, type Splice } from '../conversation/splice.ts';
import type { Codec, PlacedHiddenRecall } from './codec.ts';
import {
  maybeSame,
  nothingTaken,
  takeRound,
  type PiecePosition,
  type ReplyPiece,
  type ReplyPieces,
  type MatchedPieces,
} from './match-copy.ts';
import { memoized } from './memoize.ts';
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
type VisibleRounds = { readonly rounds: readonly ReplyPieces[]; readonly closing: ReplyPieces | undefined };

type Placer = HiddenRecallWriter & { shown(hiddenRecall: HiddenRecall): VisibleRounds };

/** The `insertHiddenRecalls` of a codec. */
export function hiddenRecallInserter(
  writer: HiddenRecallWriter,
  messages: MessageWriter,
): Codec['insertHiddenRecalls'] {
  // A hidden recall stands in every later request of its conversation.
  const placer = {
    ...writer,
    shown: memoized((hiddenRecall: HiddenRecall) => readShown(writer, hiddenRecall)),
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

function readShown(reader: HiddenRecallReader, { rounds, closing }: HiddenRecall): VisibleRounds {
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
function takenBy({ rounds, closing }: VisibleRounds, said: ReplyPieces): MatchedPieces | undefined {
  let taken: MatchedPieces | undefined = nothingTaken;
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
function isAllTaken({ texts, calls, others }: ReplyPieces, taken: MatchedPieces): boolean {
  const rest = texts.slice(taken.texts.piece).map(({ text }) => text);
  const isAll = taken.calls.piece === calls.length && taken.others.piece === others.length;
  return isAll && rest.join('').slice(taken.texts.offset).trim() === '';
}

function everything({ texts, reasoning, calls, others }: ReplyPieces): MatchedPieces {
  return { texts: endOf(texts), reasoning: endOf(reasoning), calls: endOf(calls), others: endOf(others) };
}

function endOf({ length }: readonly ReplyPiece[]): PiecePosition {
  return { piece: length, offset: 0 };
}

/** What the rounds say goes from the copy, for they stand in front of it now; a text that goes on behind them keeps its rest. */
function takenAway(said: ReplyPieces, taken: MatchedPieces): readonly Edit[] {
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

/** What only a codec knows of reading replies. */
type HiddenRecallReader = {
  /** A turn of the model, recorded from a response, as the view of a request that holds nothing else. */
  readTurn(turn: Uint8Array): Conversation;
  /** What tells one reasoning from another, best first: clients may leave some of it out. None where its words do. */
  reasoningKeys(bytes: Uint8Array): readonly string[];
  /** What a part stands for that only refers to it, as a turn of its own; undefined for all others. */
  referred?(
    conversation: Conversation,
    message: Message,
    part: Part,
    hiddenRecall: HiddenRecall,
  ): Uint8Array | undefined;
};

type PieceReading = { readonly kind: keyof ReplyPieces } & Pick<ReplyPiece, 'text' | 'isWhole'>;

/** What the client was shown of a recorded turn: all but the calls of the recall tool. */
function shownOf(reader: HiddenRecallReader, turn: Uint8Array, recallTool: string | undefined): ReplyPieces {
  const view = reader.readTurn(turn);
  return collect(view.messages, (message, part) =>
    part.type === 'tool-call' && part.name === recallTool ? [] : sayingsOf(reader, view, message, part),
  );
}

function saidInCopy(
  reader: HiddenRecallReader,
  conversation: Conversation,
  copy: readonly Message[],
  hiddenRecall: HiddenRecall,
): ReplyPieces {
  return collect(copy, (message, part) => {
    const referred = reader.referred?.(conversation, message, part, hiddenRecall);
    if (referred) return sayingsOfReferred(reader, referred);
    return sayingsOf(reader, conversation, message, part).slice(0, 1);
  });
}

function sayingsOfReferred(reader: HiddenRecallReader, turn: Uint8Array): readonly PieceReading[] {
  const view = reader.readTurn(turn);
  return view.messages.flatMap((message) =>
    message.parts.flatMap((part) =>
      sayingsOf(reader, view, message, part)
        .slice(0, 1)
        .map((saying) => ({ ...saying, isWhole: true })),
    ),
  );
}

function collect(
  messages: readonly Message[],
  sayings: (message: Message, part: Part) => readonly PieceReading[],
): ReplyPieces {
  const said: Record<keyof ReplyPieces, ReplyPiece[]> = { texts: [], reasoning: [], calls: [], others: [] };
  for (const message of messages) {
    message.parts.forEach((part, index) => {
      const place = { message: message.index, part: index };
      for (const { kind, text, isWhole } of sayings(message, part)) said[kind].push({ text, isWhole, place });
    });
  }
  return said;
}

/** Sayings by part: parts read once serve every later body. */
const known = new WeakMap<Part, readonly PieceReading[]>();

/** One saying, or several ways to tell the same reasoning. */
function sayingsOf(
  reader: HiddenRecallReader,
  conversation: Conversation,
  message: Message,
  part: Part,
): readonly PieceReading[] {
  const sayings = known.get(part) ?? readSayings(reader, conversation, message, part);
  known.set(part, sayings);
  return sayings;
}

function readSayings(
  reader: HiddenRecallReader,
  { body }: Conversation,
  message: Message,
  part: Part,
): readonly PieceReading[] {
  const words = () => textsOf(part).map((span) => textOf(body, message, span));
  switch (part.type) {
    case 'text':
      return [{ kind: 'texts', text: words().join(''), isWhole: false }];
    case 'reasoning': {
      const keys = reader.reasoningKeys(bytesOf(body, message, part.span));
      if (keys.length === 0) return [{ kind: 'reasoning', text: words().join(''), isWhole: false }];
      return keys.map((text) => ({ kind: 'reasoning', text, isWhole: true }));
    }
    case 'tool-call': {
      const text = callText(part.name, argumentsOf(bytesOf(body, message, part.input)));
      return [{ kind: 'calls', text, isWhole: true }];
    }
    case 'tool-result':
    case 'media':
    case 'tool-definition':
      return [{ kind: 'others', text: part.type, isWhole: true }];
    case 'opaque':
      return [{ kind: 'others', text: part.kind, isWhole: true }];
  }
}

/** What tells one call from another: clients may spell arguments anew, so their values count and not their order. None are `{}`. */
function callText(name: string, argumentsJson: string): string {
  return `${name} ${JSON.stringify(parsed(argumentsJson.trim() || '{}'), sorted)}`;
}

/** In some formats arguments are JSON within a string. */
function argumentsOf(input: Uint8Array): string {
  return input[0] === '"'.charCodeAt(0) ? decodeLiteral(input) : new TextDecoder().decode(input);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function sorted(_key: string, value: unknown): unknown {
  return isRecord(value)
    ? Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)))
    : value;
}
