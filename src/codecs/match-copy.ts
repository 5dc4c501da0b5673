/**
 * Finds the visible part of a private round in the client's copy of a reply. The client merged several rounds into one reply and
 * may spell it differently: other blocks, other white space at their ends, no reasoning. The texts and the calls must agree, in
 * order; the round ends after them. Pure.
 */
import type { PartPlace } from '../conversation/turns.ts';

/** The contents of a reply by kind, each kind in order. */
export type ReplyPieces = {
  readonly texts: readonly ReplyPiece[];
  readonly reasoning: readonly ReplyPiece[];
  /** Calls that the client runs. */
  readonly calls: readonly ReplyPiece[];
  /** Everything that is no text: what the provider ran by itself, media, refusals. */
  readonly others: readonly ReplyPiece[];
};

/** One part of a reply: its text or another key that identifies it, and its place. */
export type ReplyPiece = {
  readonly text: string;
  /** True for a key or a reference, which is there as a whole or not at all. Words may be merged with others and cut. */
  readonly isWhole: boolean;
  readonly place: PartPlace;
};

/** How much of a copy was matched, by kind: whole pieces, and characters of the next piece. */
export type MatchedPieces = Readonly<Record<keyof ReplyPieces, PiecePosition>>;
export type PiecePosition = { readonly piece: number; readonly offset: number };

const start: PiecePosition = { piece: 0, offset: 0 };

export const nothingMatched: MatchedPieces = { texts: start, reasoning: start, calls: start, others: start };

/**
 * Returns the position in the copy after a round; undefined when the copy has other words or calls there. Reasoning and others
 * may be missing: many clients drop them.
 */
export function matchRound(
  copy: ReplyPieces,
  from: MatchedPieces,
  round: ReplyPieces,
): MatchedPieces | undefined {
  // A round without text matches none: an empty text in the copy may carry the signature of the next part.
  const texts =
    round.texts.length === 0 ? from.texts : matchTexts(copy.texts, from.texts, textOf(round.texts));
  const calls = matchCalls(copy.calls, from.calls, round.calls);
  if (!texts || !calls) return undefined;
  const matchIfThere = (kind: 'reasoning' | 'others') =>
    round[kind].reduce((mark, { text }) => matchTexts(copy[kind], mark, text) ?? mark, from[kind]);
  return { texts, reasoning: matchIfThere('reasoning'), calls, others: matchIfThere('others') };
}

/** True when the rest of the copy may be this reply: one of the two begins like the other, since either may be cut off. */
export function maybeSame(copy: ReplyPieces, from: MatchedPieces, reply: ReplyPieces): boolean {
  const rest = {
    text: squeezed(textOf(copy.texts.slice(from.texts.piece)).slice(from.texts.offset)),
    calls: copy.calls.slice(from.calls.piece),
  };
  const said = { text: squeezed(textOf(reply.texts)), calls: reply.calls };
  return beginsWith(said, rest) || beginsWith(rest, said);
}

type ReplyWords = { readonly text: string; readonly calls: readonly ReplyPiece[] };

function beginsWith(whole: ReplyWords, beginning: ReplyWords): boolean {
  return (
    whole.text.startsWith(beginning.text) &&
    beginning.calls.every(({ text }, index) => whole.calls[index]?.text === text)
  );
}

/**
 * Returns the position after the text in the copy. White space may be missing or added. The position is never within a whole
 * piece.
 */
function matchTexts(
  pieces: readonly ReplyPiece[],
  from: PiecePosition,
  text: string,
): PiecePosition | undefined {
  let { piece, offset } = from;
  // The fast path: usually the text is there unchanged.
  let at = pieces[piece]?.text.startsWith(text, offset) === true ? text.length : 0;
  offset += at;
  while (at < text.length) {
    const here = pieces[piece]?.text;
    if (here !== undefined && offset === here.length) {
      piece++;
      offset = 0;
    } else if (here?.[offset] === text[at]) {
      offset++;
      at++;
    } else if (isSpace(text[at])) at++;
    else if (isSpace(here?.[offset])) offset++;
    else return undefined;
  }
  if (pieces[piece]?.text.length === offset) return { piece: piece + 1, offset: 0 };
  return offset > 0 && pieces[piece]?.isWhole === true ? undefined : { piece, offset };
}

function matchCalls(
  pieces: readonly ReplyPiece[],
  from: PiecePosition,
  calls: readonly ReplyPiece[],
): PiecePosition | undefined {
  const agrees = calls.every((call, index) => pieces[from.piece + index]?.text === call.text);
  return agrees ? { piece: from.piece + calls.length, offset: 0 } : undefined;
}

function textOf(pieces: readonly ReplyPiece[]): string {
  return pieces.map(({ text }) => text).join('');
}

function squeezed(text: string): string {
  return text.replaceAll(/\s+/g, '');
}

function isSpace(character: string | undefined): boolean {
  return character !== undefined && /\s/.test(character);
}
