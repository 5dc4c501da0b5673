import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { resolveReferences, type LabeledText, unpadded } from '../../test/support/resolve-references.ts';
import { refer } from './references.ts';
import { runSteps } from '../conversation/steps.ts';
import {
  createShownTexts,
  MAX_COMPARED,
  type ShownTexts,
  readLines,
  splitLines,
} from '../arrival/shown-texts.ts';

/** Shows texts one after the other. */
function openTalk() {
  const shown: ShownTexts = createShownTexts();
  const results: LabeledText[] = [];
  const sent: LabeledText[] = [];
  return {
    results,
    sent,
    add({ label, text }: LabeledText): string {
      const lines = runSteps(readLines(text));
      results.push({ label, text });
      const linesOf = ({ order }: { readonly order: number }) => splitLines(results[order]!.text);
      const referring = runSteps(refer(runSteps(splitLines(text)), lines, { shown, linesOf }));
      const whole = [{ start: 0, end: lines.hashes.length }];
      runSteps(shown.add({ label, lines, literal: referring?.literal ?? whole }));
      sent.push({ label, text: referring?.text ?? text });
      return sent.at(-1)!.text;
    },
    takeBack(size: number) {
      runSteps(shown.truncate(size));
      results.length = size;
      sent.length = size;
    },
  };
}

const code = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, at) => `  const value${from + at} = compute(${from + at});`);
const numbered = (lines: readonly string[], from: number) =>
  lines.map((line, at) => `${from + at}→${line}`).join('\n');
const plain = (from: number, to: number) => code(from, to).join('\n');

/** Returns the last text as it is sent after the others. */
function last(...texts: readonly (readonly [label: string, text: string])[]): string {
  const talk = openTalk();
  return texts.map(([label, text]) => talk.add({ label, text })).at(-1)!;
}

describe('lines of an earlier result', () => {
  it('are referenced by their numbers in a listing; new and renumbered lines stay', () => {
    expect(
      last(
        ['Read(a.ts)', numbered(code(1, 40), 1)],
        ['Read(a.ts)', [numbered(code(1, 20), 1), '21→new line', numbered(code(21, 40), 22)].join('\n')],
      ),
    ).toBe(['[lines 1-20 as in Read(a.ts) above]', '21→new line', numbered(code(21, 40), 22)].join('\n'));
  });

  it('are referenced by the beginning of the first line in other texts', () => {
    expect(last(['run(test)', plain(1, 40)], ['run(lint)', `ok\n${plain(11, 30)}\ndone`])).toBe(
      'ok\n[20 lines as in run(test) above, from "  const value11 = compute(11);" on]\ndone',
    );
  });

  it('may be a whole text, also of one line', () => {
    const json = JSON.stringify(Array.from({ length: 30 }, (_, n) => ({ n })));
    expect(last(['get(7)', json], ['get(8)', 'none'], ['get(7)', json])).toBe(
      '[all of it as in get(7) above]',
    );
  });

  it('are shown again when they are requested again', () => {
    const text = plain(1, 40);
    expect(last(['run(a)', text], ['run(a)', text], ['run(a)', text])).toBe(text);
  });

  it('stay if the newest result of that name would show others', () => {
    const old = numbered(code(1, 40), 1);
    const changed = numbered(code(101, 140), 1);
    expect(last(['Read(a.ts)', old], ['Read(a.ts)', changed], ['Read(b.ts)', old])).toBe(old);
  });

  it('stay if they are few or short', () => {
    expect(last(['run(a)', plain(1, 4)], ['run(b)', plain(1, 4)])).toBe(plain(1, 4));
    const short = '{\n'.repeat(30);
    expect(last(['run(a)', `x\n${short}`], ['run(b)', short])).toBe(short);
  });

  it('stay if our markers explain them, except for a whole text', () => {
    const laidOut = `[next 40 lines begin: job 1: ]\n${plain(1, 40)}`;
    const other = `[next 40 lines begin: job 2: ]\n${plain(1, 40)}`;
    expect(last(['run(a)', laidOut], ['run(b)', other])).toBe(other);
    expect(last(['run(a)', laidOut], ['run(b)', plain(1, 40)])).toBe(plain(1, 40));
    expect(last(['run(a)', laidOut], ['run(b)', laidOut])).toBe('[all of it as in run(a) above]');
  });

  it('are neither notes that a client adds to a result, nor in a text that contains references itself', () => {
    const reminder = `<system-reminder>\n${plain(1, 3)}\n</system-reminder>`;
    expect(last(['run(a)', reminder], ['run(b)', `x\n${reminder}`])).toBe(`x\n${reminder}`);
    const quoting = `[lines 1-20 as in Read(a.ts) above]\n${plain(1, 40)}`;
    expect(last(['run(a)', plain(1, 40)], ['run(b)', quoting])).toBe(quoting);
  });
});

/** Few lines, so that they repeat; some are empty, and some look like numbers. */
const line = fc.oneof(
  { weight: 6, arbitrary: fc.nat(30).map((n) => `  some line of a program that comes again ${n}`) },
  { weight: 1, arbitrary: fc.constantFrom('', '}', '12→twelve', '  7\tseven', '[next 3 lines begin: x]') },
  {
    weight: 1,
    arbitrary: fc.string({ unit: 'grapheme', maxLength: 30 }).map((text) => text.replaceAll('\n', '')),
  },
);
const stretch = fc.record({ from: fc.nat(60), length: fc.integer({ min: 1, max: 30 }) });
const program = fc.array(line, { minLength: 90, maxLength: 90 });
const resultArbitrary = fc.record({
  label: fc.constantFrom('Read(a.ts)', 'Read(b.ts)', 'run'),
  stretches: fc.array(stretch, { minLength: 1, maxLength: 3 }),
  numberedFrom: fc.option(fc.nat(50), { nil: undefined }),
  padding: fc.constantFrom('', '   '),
});

const talks = fc
  .record({ lines: program, results: fc.array(resultArbitrary, { minLength: 2, maxLength: 12 }) })
  .map(({ lines, results }) =>
    results.map(({ label, stretches, numberedFrom, padding }): LabeledText => {
      const own = stretches.flatMap(({ from, length }) => lines.slice(from, from + length));
      const text =
        numberedFrom === undefined ? own : own.map((each, at) => `${padding}${numberedFrom + at}→${each}`);
      return { label, text: text.join('\n') };
    }),
  );

describe('every reference', () => {
  it('taken literally restores each text, and is never larger', () => {
    fc.assert(
      fc.property(talks, (texts) => {
        const talk = openTalk();
        for (const text of texts) expect(talk.add(text).length).toBeLessThanOrEqual(text.text.length);
        expect(resolveReferences(talk.sent).map(unpadded)).toEqual(texts.map(({ text }) => unpadded(text)));
      }),
      { numRuns: 300 },
    );
  });

  it('is the same after texts were removed', () => {
    fc.assert(
      fc.property(talks, fc.array(fc.nat(12), { maxLength: 4 }), (texts, sizes) => {
        const talk = openTalk();
        for (const size of sizes) {
          for (const text of texts.slice(talk.sent.length)) talk.add(text);
          talk.takeBack(Math.min(size, talk.sent.length));
        }
        for (const text of texts.slice(talk.sent.length)) talk.add(text);
        const fresh = openTalk();
        for (const text of texts) fresh.add(text);
        expect(talk.sent).toEqual(fresh.sent);
      }),
      { numRuns: 100 },
    );
  });
});

describe('very many texts', () => {
  const short = 'ok\nall good\nnothing to do here\nstill nothing\ndone';

  // Each of these tests would take hours if a text were compared with all earlier ones.
  it('that are equal and too short for a reference stay', () => {
    const talk = openTalk();
    for (let at = 0; at < 20_000; at++) talk.add({ label: 'run(test)', text: short });
    expect(new Set(talk.sent.map(({ text }) => text))).toEqual(new Set([short]));
  });

  it('that are equal and have different names refer to the first', () => {
    const talk = openTalk();
    const text = plain(1, 8);
    for (let at = 0; at < 20_000; at++) talk.add({ label: `run(${at})`, text });
    expect(new Set(talk.sent.slice(1).map((one) => one.text))).toEqual(
      new Set(['[all of it as in run(0) above]']),
    );
  });

  it('of one name are compared up to the sixty-fourth', () => {
    const first = ['run(test)', plain(1, 20)] as const;
    const others = (count: number) =>
      Array.from({ length: count }, (_, at) => ['run(test)', plain(100 + 20 * at, 110 + 20 * at)] as const);
    const again = ['run(lint)', `ok\n${plain(3, 18)}`] as const;
    const reference = 'ok\n[16 lines as in run(test) above, from "  const value3 = compute(3);" on]';
    expect(last(first, ...others(63), again)).toBe(reference);
    expect(last(first, ...others(64), again)).toBe(again[1]);
  });
});

describe('the index of shown lines', () => {
  const shownLines = (from: number, to: number) => {
    const lines = runSteps(readLines(plain(from, to)));
    return { label: 'run', lines, literal: [{ start: 0, end: lines.hashes.length }] };
  };

  it('gives back its memory when most texts are removed, as after a fold', () => {
    const shown = createShownTexts();
    const empty = shown.bytes();
    runSteps(shown.add(shownLines(1, 50)));
    runSteps(shown.add(shownLines(51, 5_000)));
    expect(shown.bytes()).toBeGreaterThan(10 * empty);
    runSteps(shown.truncate(1));
    expect(shown.bytes()).toBe(empty);
    expect(shown.mayRepeat(shownLines(11, 20).lines)).toBe(true);
    expect(shown.mayRepeat(shownLines(111, 120).lines)).toBe(false);
  });
});

describe('a very long text', () => {
  const long = `${plain(1, 20)}\n${'x'.repeat(MAX_COMPARED)}`;

  it('is compared only as a whole', () => {
    expect(last(['run(a)', long], ['run(b)', long])).toBe('[all of it as in run(a) above]');
    expect(last(['run(a)', long], ['run(b)', `ok\n${plain(1, 20)}`])).toBe(`ok\n${plain(1, 20)}`);
    expect(last(['run(a)', long], ['run(b)', `${long} y`])).toBe(`${long} y`);
  });

  it('hides earlier texts of its name, because it may show their lines, too', () => {
    const again = ['run(b)', `ok\n${plain(1, 20)}`] as const;
    expect(last(['run(a)', plain(1, 20)], again)).toMatch(/^ok\n\[20 lines as in run\(a\)/);
    expect(last(['run(a)', plain(1, 20)], ['run(a)', long], again)).toBe(again[1]);
  });
});

describe('the steps of a text', () => {
  it('are as many as its lines are long', () => {
    const text = '\n'.repeat(MAX_COMPARED - 1);
    const steps = readLines(text);
    let count = 0;
    while (!steps.next().done) count++;
    expect(count).toBeGreaterThan(MAX_COMPARED / 10_000);
  });
});
