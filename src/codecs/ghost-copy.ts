/**
 * Finds a private round's visible part in the client's copy of a reply. The client merged what it saw of several rounds into one reply
 * and may spell it its own way: other blocks, other white space at their ends, without reasoning. What must agree is what was said, in
 * order, and the calls; the place behind that is where the round ended. Pure.
 */
import type { PartPlace } from '../conversation/pairing.ts';

/** What a reply consists of, kind by kind, each in order. `calls` are those of the client, and whatever else is no text. */
export type Said = {
  readonly texts: readonly Piece[];
  readonly reasoning: readonly Piece[];
  readonly calls: readonly Piece[];
};

/** One part of a reply: its text, or what tells one call or one reasoning from another; and where it stands. */
export type Piece = { readonly text: string; readonly place: PartPlace };

/** How much of a copy was taken, kind by kind: whole pieces, and characters of the one behind them. */
export type Taken = { readonly texts: Mark; readonly reasoning: Mark; readonly calls: Mark };
export type Mark = { readonly piece: number; readonly offset: number };

const start: Mark = { piece: 0, offset: 0 };

export const nothingTaken: Taken = { texts: start, reasoning: start, calls: start };

/** The copy behind a round; undefined when the copy says something else there. Reasoning may be missing: many clients drop it. */
export function takeRound(copy: Said, from: Taken, round: Said): Taken | undefined {
  const texts = takeTexts(copy.texts, from.texts, textOf(round.texts));
  const calls = takeCalls(copy.calls, from.calls, round.calls);
  if (!texts || !calls) return undefined;
  const reasoning = round.reasoning.reduce(
    (mark, piece) => takeTexts(copy.reasoning, mark, piece.text) ?? mark,
    from.reasoning,
  );
  return { texts, reasoning, calls };
}

/** True when the rest of the copy may be this reply, as far as the client has either: one begins as the other does. */
export function maybeSame(copy: Said, from: Taken, reply: Said): boolean {
  const said = squeezed(textOf(reply.texts));
  const rest = squeezed(textOf(copy.texts.slice(from.texts.piece)).slice(from.texts.offset));
  return said.startsWith(rest) || rest.startsWith(said);
}

/** Behind so many characters of the copy as the text has; white space at the ends of pieces may be missing or more. */
function takeTexts(pieces: readonly Piece[], from: Mark, text: string): Mark | undefined {
  let { piece, offset } = from;
  let at = 0;
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
  return pieces[piece]?.text.length === offset ? { piece: piece + 1, offset: 0 } : { piece, offset };
}

function takeCalls(pieces: readonly Piece[], from: Mark, calls: readonly Piece[]): Mark | undefined {
  const agrees = calls.every((call, index) => pieces[from.piece + index]?.text === call.text);
  return agrees ? { piece: from.piece + calls.length, offset: 0 } : undefined;
}

function textOf(pieces: readonly Piece[]): string {
  return pieces.map(({ text }) => text).join('');
}

function squeezed(text: string): string {
  return text.replaceAll(/\s+/g, '');
}

function isSpace(character: string | undefined): boolean {
  return character !== undefined && /\s/.test(character);
}
