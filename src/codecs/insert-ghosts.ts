/**
 * Puts ghost turns back into a body: each private round as it was sent, in front of what is left of the client's copy. How a codec
 * spells a round, and what tells one part from another, is its own.
 */
import type { Conversation, Message } from '../conversation/conversation.ts';
import type { Edit } from '../conversation/edit.ts';
import type { GhostRound, GhostTurn } from '../conversation/ghost-turn.ts';
import { applySplices, type Insertion, type Splice } from '../conversation/splice.ts';
import type { Codec, PlacedGhost } from './codec.ts';
import {
  type Mark,
  maybeSame,
  nothingTaken,
  type Piece,
  type Said,
  type Taken,
  takeRound,
} from './ghost-copy.ts';
import { type GhostReader, saidInCopy, shownOf } from './ghost-sayings.ts';
import { messageSplices, type MessageWriter } from './write-body.ts';

/** What only a codec knows of ghost turns. */
export type GhostWriter = GhostReader & {
  /** A round as messages: the model's turn, and the answers behind it. */
  round(conversation: Conversation, round: GhostRound): readonly Uint8Array[];
  /** A round whose answers stand beside the client's own results, which begin at message `results`. Undefined where they cannot. */
  besideResults(conversation: Conversation, round: GhostRound, results: number): BesideResults | undefined;
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

/** The `insertGhosts` of a codec. */
export function ghostInserter(writer: GhostWriter, messages: MessageWriter): Codec['insertGhosts'] {
  return function insertGhosts(conversation, ghosts) {
    const placed = ghosts.flatMap((ghost) => placeFirst(writer, conversation, ghost) ?? []);
    if (placed.length === 0) return conversation.body;
    const edits = placed.flatMap((placement) => placement.edits);
    const added = placed.flatMap((placement) => placement.added);
    return applySplices(conversation.body, [
      ...messageSplices(conversation, edits, messages, added),
      ...placed.flatMap((placement) => placement.splices),
    ]);
  };
}

function placeFirst(
  writer: GhostWriter,
  conversation: Conversation,
  { at, turns }: PlacedGhost,
): Placement | undefined {
  for (const ghost of turns) {
    const placement = placementOf(writer, conversation, at, ghost);
    if (placement) return placement;
  }
  return undefined;
}

function placementOf(
  writer: GhostWriter,
  conversation: Conversation,
  at: number,
  ghost: GhostTurn,
): Placement | undefined {
  const copy = copyAt(conversation, at);
  const last = ghost.rounds.at(-1);
  if (copy.length === 0 || !last) return undefined;
  const recallTool = last.answers[0]?.call.name;
  const shown = (turn: Uint8Array) => shownOf(writer, turn, recallTool);
  const said = saidInCopy(writer, conversation, copy, ghost);
  let taken: Taken | undefined = nothingTaken;
  for (const round of ghost.rounds) taken = taken && takeRound(said, taken, shown(round.turn));
  if (!taken || (ghost.closing && !maybeSame(said, taken, shown(ghost.closing)))) return undefined;
  const isBeside = shown(last.turn).calls.length > 0;
  const beside = isBeside ? writer.besideResults(conversation, last, at + copy.length) : undefined;
  if (isBeside && (!beside || !isAllTaken(said, taken))) return undefined;
  const whole = isBeside ? ghost.rounds.slice(0, -1) : ghost.rounds;
  const bytes = [...whole.flatMap((round) => writer.round(conversation, round)), ...(beside?.messages ?? [])];
  return {
    edits: takenAway(said, isBeside ? everything(said) : taken),
    added: bytes.map((message) => ({ before: at, bytes: message })),
    splices: beside?.splices ?? [],
  };
}

/** The client's copy of one reply: the messages of the model from `at` on. Some clients make several of one. */
function copyAt({ messages }: Conversation, at: number): readonly Message[] {
  const rest = messages.slice(at);
  const end = rest.findIndex((message) => message.role !== 'assistant');
  return end < 0 ? rest : rest.slice(0, end);
}

/** Nothing may stand between the client's calls and their results; texts without a word are how some clients end a reply. */
function isAllTaken({ texts, calls }: Said, taken: Taken): boolean {
  const rest = texts.slice(taken.texts.piece).map(({ text }) => text);
  return taken.calls.piece === calls.length && rest.join('').slice(taken.texts.offset).trim() === '';
}

function everything({ texts, reasoning, calls }: Said): Taken {
  return { texts: endOf(texts), reasoning: endOf(reasoning), calls: endOf(calls) };
}

function endOf({ length }: readonly Piece[]): Mark {
  return { piece: length, offset: 0 };
}

/** What the rounds say goes from the copy, for they stand in front of it now; a text that goes on behind them keeps its rest. */
function takenAway(said: Said, taken: Taken): readonly Edit[] {
  return (['texts', 'reasoning', 'calls'] as const).flatMap((kind): readonly Edit[] => {
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
