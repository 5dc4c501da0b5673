/**
 * Puts hidden recalls back into a body: each private round as it was sent, ahead of the rest of the client's copy of the reply.
 * Each codec itself says how a round is spelled, and how one part is distinguished from another.
 */
import { type Insertion, type Splice, applySplices, isRecord } from '../conversation/json-scan.ts';
import type { Conversation, Message, Part, HiddenRecall, RecallRound } from '../conversation/conversation.ts';
import { bytesOf, decodeLiteral, textOf, textsOf, memoized } from '../conversation/messages.ts';
import type { Edit } from '../conversation/edit.ts';
import type { Codec, PlacedHiddenRecall } from './codec.ts';
import {
  maybeSame,
  nothingMatched,
  matchRound,
  type PiecePosition,
  type ReplyPiece,
  type ReplyPieces,
  type MatchedPieces,
} from './match-copy.ts';
import { messageSplices, type MessageWriter } from './write-body.ts';
import { type PrivateTools, privateToolsOf } from '../conversation/turns.ts';

/** Everything about hidden recalls that only a codec knows. */
export type HiddenRecallWriter = HiddenRecallReader & {
  /** Returns a round as messages: the model's turn, and the answers after it. Called for every request, so it should be memoized. */
  round(conversation: Conversation, round: RecallRound): readonly Uint8Array[];
  /**
   * Returns a round whose answers share a message with the client's own results, which begin at message `results`. Undefined when
   * that is impossible.
   */
  withClientResults(
    conversation: Conversation,
    round: RecallRound,
    results: number,
  ): WithClientResults | undefined;
};

/** The messages that replace the client's copy, the splices into its results, and messages that follow the results. */
export type WithClientResults = {
  readonly messages: readonly Uint8Array[];
  readonly splices: readonly Splice[];
  readonly after?: readonly Insertion[];
};

type Placement = {
  readonly edits: readonly Edit[];
  readonly added: readonly Insertion[];
  readonly splices: readonly Splice[];
  /** Messages after the client's results. They come ahead of what is added at the same place. */
  readonly after: readonly Insertion[];
};

/** The parts of a hidden recall that the client was shown: of each round, and of the closing reply. */
type VisibleRounds = { readonly rounds: readonly ReplyPieces[]; readonly closing: ReplyPieces | undefined };

/** The pieces of a copy, and how many of them the rounds cover; `matched` is undefined when the copy is of another reply. */
type ComparedCopy = { readonly said: ReplyPieces; readonly matched: MatchedPieces | undefined };

type Placer = HiddenRecallWriter & {
  shown(hiddenRecall: HiddenRecall): VisibleRounds;
  compared(conversation: Conversation, copy: readonly Message[], hiddenRecall: HiddenRecall): ComparedCopy;
};

/** Creates the `insertHiddenRecalls` of a codec. */
export function hiddenRecallInserter(
  writer: HiddenRecallWriter,
  messages: MessageWriter,
): Codec['insertHiddenRecalls'] {
  // A hidden recall is put back into every later request of its conversation.
  const shown = memoized((hiddenRecall: HiddenRecall) => readShown(writer, hiddenRecall));
  const known = new WeakMap<HiddenRecall, ComparedCopy & { readonly copy: readonly Message[] }>();
  const placer: Placer = {
    ...writer,
    shown,
    compared(conversation, copy, hiddenRecall) {
      const before = known.get(hiddenRecall);
      // The same message objects are the same bytes.
      if (before?.copy.length === copy.length && copy.every((message, at) => message === before.copy[at]))
        return before;
      const said = piecesOfCopy(writer, conversation, copy, hiddenRecall);
      const made = { copy, said, matched: matchedBy(shown(hiddenRecall), said) };
      known.set(hiddenRecall, made);
      return made;
    },
  };
  return function insertHiddenRecalls(conversation, hiddenRecalls) {
    const placed = hiddenRecalls.flatMap(
      (hiddenRecall) => placeFirst(placer, conversation, hiddenRecall) ?? [],
    );
    if (placed.length === 0) return conversation.body;
    const edits = placed.flatMap((placement) => placement.edits);
    const added = [
      ...placed.flatMap(({ after }) => after),
      ...placed.flatMap((placement) => placement.added),
    ];
    return applySplices(conversation.body, [
      ...messageSplices(conversation, edits, messages, added),
      ...placed.flatMap((placement) => placement.splices),
    ]);
  };
}

function readShown(reader: HiddenRecallReader, { rounds, closing }: HiddenRecall): VisibleRounds {
  const privateTools = privateToolsOf(rounds.flatMap(({ answers }) => answers.map(({ call }) => call.name)));
  return {
    rounds: rounds.map(({ turn, hidesText }) => {
      const visible = visiblePieces(reader, turn, privateTools);
      return hidesText ? { ...visible, texts: [] } : visible;
    }),
    closing: closing && visiblePieces(reader, closing, privateTools),
  };
}

function placeFirst(
  placer: Placer,
  conversation: Conversation,
  { at, candidates }: PlacedHiddenRecall,
): Placement | undefined {
  const copy = copyAt(conversation, at);
  for (const hiddenRecall of candidates) {
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
  const { said, matched } = placer.compared(conversation, copy, hiddenRecall);
  const [first] = copy;
  const last = hiddenRecall.rounds.at(-1);
  if (!first || !last || !matched) return undefined;
  const hasClientCalls = shown.rounds.at(-1)!.calls.length > 0;
  const withResults = hasClientCalls
    ? placer.withClientResults(conversation, last, first.index + copy.length)
    : undefined;
  if (hasClientCalls && (!withResults || !isAllMatched(said, matched))) return undefined;
  const plainRounds = hasClientCalls ? hiddenRecall.rounds.slice(0, -1) : hiddenRecall.rounds;
  const bytes = [
    ...plainRounds.flatMap((round) => placer.round(conversation, round)),
    ...(withResults?.messages ?? []),
  ];
  return {
    edits: removalsOf(said, hasClientCalls ? everything(said) : matched),
    added: bytes.map((message) => ({ before: first.index, bytes: message })),
    splices: withResults?.splices ?? [],
    after: withResults?.after ?? [],
  };
}

/** Returns how much of the copy the rounds cover; undefined when the copy is of another reply. */
function matchedBy({ rounds, closing }: VisibleRounds, said: ReplyPieces): MatchedPieces | undefined {
  let matched: MatchedPieces | undefined = nothingMatched;
  for (const round of rounds) matched = matched && matchRound(said, matched, round);
  return matched && closing && !maybeSame(said, matched, closing) ? undefined : matched;
}

/** Returns the client's copy of one reply: the assistant messages from `at` on. Some clients make several messages of one reply. */
function copyAt({ messages }: Conversation, at: number): readonly Message[] {
  let end = at;
  while (messages[end]?.role === 'assistant') end++;
  return messages.slice(at, end);
}

/**
 * True when nothing is left between the client's calls and their results. Blank texts do not count: some clients end a reply with
 * one.
 */
function isAllMatched({ texts, calls, others }: ReplyPieces, matched: MatchedPieces): boolean {
  const rest = texts.slice(matched.texts.piece).map(({ text }) => text);
  const isAll = matched.calls.piece === calls.length && matched.others.piece === others.length;
  return isAll && rest.join('').slice(matched.texts.offset).trim() === '';
}

function everything({ texts, reasoning, calls, others }: ReplyPieces): MatchedPieces {
  return { texts: endOf(texts), reasoning: endOf(reasoning), calls: endOf(calls), others: endOf(others) };
}

function endOf({ length }: readonly ReplyPiece[]): PiecePosition {
  return { piece: length, offset: 0 };
}

/** Removes from the copy what the rounds, which now precede it, already say. A text that continues after the rounds keeps its rest. */
function removalsOf(said: ReplyPieces, matched: MatchedPieces): readonly Edit[] {
  return (['texts', 'reasoning', 'calls', 'others'] as const).flatMap((kind): readonly Edit[] => {
    const { piece, offset } = matched[kind];
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

/** Everything about reading replies that only a codec knows. */
type HiddenRecallReader = {
  /** Reads a recorded turn of the model as the view of a request that holds nothing else. */
  readTurn(turn: Uint8Array): Conversation;
  /**
   * Returns keys that identify a piece of reasoning, the best first: clients may drop some of them. Empty when its words identify
   * it.
   */
  reasoningKeys(bytes: Uint8Array): readonly string[];
  /** Returns the item that a part refers to, as a turn of its own; undefined for a part that is no reference. */
  referred?(
    conversation: Conversation,
    message: Message,
    part: Part,
    hiddenRecall: HiddenRecall,
  ): Uint8Array | undefined;
};

type PieceReading = { readonly kind: keyof ReplyPieces } & Pick<ReplyPiece, 'text' | 'isWhole'>;

/** Returns the pieces of a recorded turn that the client was shown: all but the calls of the recall tool. */
function visiblePieces(
  reader: HiddenRecallReader,
  turn: Uint8Array,
  privateTools: PrivateTools,
): ReplyPieces {
  const view = reader.readTurn(turn);
  return collect(view.messages, (message, part) =>
    part.type === 'tool-call' && privateTools.has(part.name) ? [] : piecesOf(reader, view, message, part),
  );
}

function piecesOfCopy(
  reader: HiddenRecallReader,
  conversation: Conversation,
  copy: readonly Message[],
  hiddenRecall: HiddenRecall,
): ReplyPieces {
  return collect(copy, (message, part) => {
    const referred = reader.referred?.(conversation, message, part, hiddenRecall);
    if (referred) return piecesOfReferred(reader, referred);
    return piecesOf(reader, conversation, message, part).slice(0, 1);
  });
}

function piecesOfReferred(reader: HiddenRecallReader, turn: Uint8Array): readonly PieceReading[] {
  const view = reader.readTurn(turn);
  return view.messages.flatMap((message) =>
    message.parts.flatMap((part) =>
      piecesOf(reader, view, message, part)
        .slice(0, 1)
        .map((piece) => ({ ...piece, isWhole: true })),
    ),
  );
}

function collect(
  messages: readonly Message[],
  pieces: (message: Message, part: Part) => readonly PieceReading[],
): ReplyPieces {
  const said: Record<keyof ReplyPieces, ReplyPiece[]> = { texts: [], reasoning: [], calls: [], others: [] };
  for (const message of messages) {
    message.parts.forEach((part, index) => {
      const place = { message: message.index, part: index };
      for (const { kind, text, isWhole } of pieces(message, part)) said[kind].push({ text, isWhole, place });
    });
  }
  return said;
}

/** Pieces by part: a part that was read once serves every later body. */
const known = new WeakMap<Part, readonly PieceReading[]>();

/** Returns one piece, or several keys of the same reasoning. */
function piecesOf(
  reader: HiddenRecallReader,
  conversation: Conversation,
  message: Message,
  part: Part,
): readonly PieceReading[] {
  const pieces = known.get(part) ?? readPieces(reader, conversation, message, part);
  known.set(part, pieces);
  return pieces;
}

function readPieces(
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

/** Identifies a call. Clients may respell arguments, so their values count and not their order. No arguments count as `{}`. */
function callText(name: string, argumentsJson: string): string {
  return `${name} ${JSON.stringify(parsed(argumentsJson.trim() || '{}'), sorted)}`;
}

/** Decodes arguments: some formats send them as JSON within a string. */
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
