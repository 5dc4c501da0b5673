import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  maybeSame,
  nothingMatched,
  type ReplyPiece,
  type ReplyPieces,
  type MatchedPieces,
  matchRound,
} from './match-copy.ts';

type Words = { readonly [Kind in keyof ReplyPieces]?: readonly string[] };

function said({ texts = [], reasoning = [], calls = [], others = [] }: Words, isWhole = false): ReplyPieces {
  const pieces = (list: readonly string[], whole: boolean) =>
    list.map((text, part): ReplyPiece => ({ text, isWhole: whole, place: { message: 0, part } }));
  return {
    texts: pieces(texts, isWhole),
    reasoning: pieces(reasoning, isWhole),
    calls: pieces(calls, true),
    others: pieces(others, true),
  };
}

/** Returns the rest of each kind after the matched part, a cut piece as its rest; empty kinds are left out. */
function rest(copy: ReplyPieces, matched: MatchedPieces): Words {
  const left = (kind: keyof ReplyPieces) => {
    const { piece, offset } = matched[kind];
    return copy[kind].slice(piece).map(({ text }, at) => (at === 0 ? text.slice(offset) : text));
  };
  const kinds = (['texts', 'reasoning', 'calls', 'others'] as const).map(
    (kind) => [kind, left(kind)] as const,
  );
  return Object.fromEntries(kinds.filter(([, pieces]) => pieces.length > 0));
}

/** Returns the rest of a copy after the rounds, matched one after the other. */
function behind(copy: Words, rounds: readonly Words[]): Words | undefined {
  let matched: MatchedPieces | undefined = nothingMatched;
  for (const round of rounds) matched = matched && matchRound(said(copy), matched, said(round));
  return matched && rest(said(copy), matched);
}

describe('the rest of a copy after a round', () => {
  it.each<[string, readonly string[], string, readonly string[]]>([
    ['the next text', ['I look. ', 'Two.'], 'I look. ', ['Two.']],
    ['the rest of a text that went on', ['I look. Two.'], 'I look. ', ['Two.']],
    ['the rest of a chunk', ['I lo', 'ok. T', 'wo.'], 'I look. ', ['T', 'wo.']],
    ['the rest where the end was trimmed', ['I look.Two.'], 'I look. ', ['Two.']],
    ['the rest where the next text was trimmed too', ['I look.', 'Two.'], 'I look.\n\n', ['Two.']],
    ['the rest where a line was broken', ['I look.\nTwo.'], 'I look. ', ['\nTwo.']],
    ['its own white space', ['I look.  Two.'], 'I look. ', [' Two.']],
    ['the rest where a text began with white space', ['\n I look.Two.'], 'I look.', ['Two.']],
    ['the rest where white space within was changed', ['I\tlook. Two.'], 'I look. ', ['Two.']],
    ['nothing where it ends there', ['I look.'], 'I look. ', []],
    ['nothing of what was white space alone', ['Two.'], '\n\n', ['Two.']],
    ['the rest of a pair of surrogates', ['\ud83d\ude00'], '\ud83d', ['\ude00']],
    ['an empty text in front, where the round said nothing', ['', 'Two.'], '', ['', 'Two.']],
  ])('%s', (_, copy, round, left) => {
    const texts = round === '' ? [] : [round];
    expect(behind({ texts: copy }, [{ texts }])).toEqual(left.length === 0 ? {} : { texts: left });
  });

  it('is the part after several rounds', () => {
    const copy = { texts: ['One. Two. ', 'Three. Four.'], reasoning: ['b'], calls: ['read {}'] };
    const rounds = [
      { texts: ['One. '], reasoning: ['a'] },
      { reasoning: ['b'] },
      { texts: ['Two. ', 'Three. '] },
    ];
    expect(behind(copy, rounds)).toEqual({ texts: ['Four.'], calls: ['read {}'] });
  });

  it.each<[string, Words, Words, Words | undefined]>([
    ['reasoning that is there goes', { reasoning: ['a', 'b'] }, { reasoning: ['a'] }, { reasoning: ['b'] }],
    ['reasoning that was merged is cut', { reasoning: ['ab'] }, { reasoning: ['a'] }, { reasoning: ['b'] }],
    ['reasoning that is missing is not missed', {}, { reasoning: ['a'] }, {}],
    ['other reasoning stays', { reasoning: ['b'] }, { reasoning: ['a'] }, { reasoning: ['b'] }],
    ['a call goes', { calls: ['read {}', 'run {}'] }, { calls: ['read {}'] }, { calls: ['run {}'] }],
    ['another call is another reply', { calls: ['run {}'] }, { calls: ['read {}'] }, undefined],
    ['a call that is missing is another reply', { texts: ['a'] }, { calls: ['read {}'] }, undefined],
    ['other words are another reply', { texts: ['I see.'] }, { texts: ['I look.'] }, undefined],
    ['fewer words are another reply', { texts: ['I lo'] }, { texts: ['I look.'] }, undefined],
    ['no words are another reply', {}, { texts: ['I look.'] }, undefined],
    [
      'what the provider ran goes',
      { others: ['search', 'media'] },
      { others: ['search'] },
      { others: ['media'] },
    ],
    [
      'what the provider ran is not missed',
      { others: ['media'] },
      { others: ['search'] },
      { others: ['media'] },
    ],
  ])('%s', (_, copy, round, left) => {
    expect(behind(copy, [round])).toEqual(left);
  });

  it.each<[string, Words, Words, Words | undefined]>([
    [
      'is another where it only begins alike',
      { reasoning: ['rs_10'] },
      { reasoning: ['rs_1'] },
      { reasoning: ['rs_10'] },
    ],
    [
      'goes where it is the same',
      { reasoning: ['rs_1', 'rs_2'] },
      { reasoning: ['rs_1'] },
      { reasoning: ['rs_2'] },
    ],
    ['cannot be cut', { texts: ['I look. Two.'] }, { texts: ['I look. '] }, undefined],
  ])('a piece that is there as a whole or not at all %s', (_, copy, round, left) => {
    const matched = matchRound(said(copy, true), nothingMatched, said(round));
    expect(matched && rest(said(copy, true), matched)).toEqual(left);
  });

  const blanks = fc.string({ unit: fc.constantFrom(' ', '\n', '\t', '\u00a0', '\u2028'), maxLength: 3 });
  const words = fc.oneof(
    fc.string({ unit: 'grapheme', maxLength: 30 }),
    fc.string({ unit: 'binary', maxLength: 12 }),
    fc.string({ unit: fc.constantFrom('a', 'b', ' ', '\n'), maxLength: 20 }),
  );

  /** A text in pieces, cut anywhere, with white space removed or added at each end. */
  const copyOf = (text: string) =>
    fc
      .tuple(
        fc.array(fc.nat(text.length), { maxLength: 6 }),
        fc.array(fc.tuple(fc.boolean(), blanks, blanks)),
      )
      .map(([cuts, ends]) => {
        const places = [0, ...cuts.toSorted((a, b) => a - b), text.length];
        return places.slice(1).map((end, at) => {
          const piece = text.slice(places[at], end);
          const [isTrimmed, before, after] = ends[at] ?? [false, '', ''];
          return `${before}${isTrimmed ? piece.trim() : piece}${after}`;
        });
      });

  it('is exactly the following text, except for white space, for any texts in any pieces', () => {
    const anyCopy = fc
      .tuple(fc.array(words, { minLength: 1, maxLength: 3 }), words)
      .chain(([rounds, closing]) =>
        fc.tuple(fc.constant({ rounds, closing }), copyOf([...rounds, closing].join(''))),
      );
    fc.assert(
      fc.property(anyCopy, ([{ rounds, closing }, pieces]) => {
        const copy = { texts: pieces };
        const left = behind(
          copy,
          rounds.map((round) => ({ texts: [round] })),
        );
        expect(left).toBeDefined();
        expect(squeezed(left?.texts ?? [])).toBe(squeezed([closing]));
      }),
    );
  });

  it('all its words or nothing, of any two texts', () => {
    fc.assert(
      fc.property(fc.array(words, { maxLength: 4 }), words, (pieces, round) => {
        const left = behind({ texts: pieces }, [{ texts: [round] }]);
        const begins = squeezed(pieces).startsWith(squeezed([round]));
        expect(left === undefined).toBe(!begins);
        if (left) expect(squeezed([round, ...(left.texts ?? [])])).toBe(squeezed(pieces));
      }),
    );
  });
});

describe('what is left of a copy', () => {
  it.each<[string, Words, Words, boolean]>([
    ['is the reply it says', { texts: ['Two.'] }, { texts: ['Two.'] }, true],
    [
      'may be one that the client cut short',
      { texts: ['Tw'] },
      { texts: ['Two.'], calls: ['read {}'] },
      true,
    ],
    ['may be one that the client left at once', {}, { texts: ['Two.'] }, true],
    ['may be one the client wrote on', { texts: ['Two. [cut]'] }, { texts: ['Two.'] }, true],
    ['is the same in other white space', { texts: ['Two ', '\nthree'] }, { texts: ['Two three '] }, true],
    ['is not one of other words', { texts: ['No.'] }, { texts: ['Two.'] }, false],
    ['is the one with its calls', { calls: ['read {}', 'run {}'] }, { calls: ['read {}', 'run {}'] }, true],
    ['is not one with other calls', { calls: ['read {}'] }, { calls: ['run {}'] }, false],
    ['is not one that called where it spoke', { texts: ['Two.'] }, { calls: ['read {}'] }, false],
    [
      'is not one with fewer words and more calls',
      { texts: ['Two. Three.'] },
      { texts: ['Two.'], calls: ['read {}'] },
      false,
    ],
    [
      'does not say what the provider ran',
      { texts: ['Two.'] },
      { texts: ['Two.'], others: ['search'] },
      true,
    ],
  ])('%s', (_, copy, reply, isSame) => {
    expect(maybeSame(said(copy), nothingMatched, said(reply))).toBe(isSame);
  });

  it('begins after the matched part', () => {
    const copy = said({ texts: ['One. Two.'], calls: ['read {}', 'run {}'] });
    const matched = matchRound(copy, nothingMatched, said({ texts: ['One. '], calls: ['read {}'] }))!;
    expect(maybeSame(copy, matched, said({ texts: ['Two.'], calls: ['run {}'] }))).toBe(true);
    expect(maybeSame(copy, matched, said({ texts: ['One.'], calls: ['run {}'] }))).toBe(false);
  });
});

function squeezed(texts: readonly string[]): string {
  return texts.join('').replaceAll(/\s/g, '');
}
