import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { nodeOf, type OutlineNode } from './node.ts';
import { keptIn, nodeAbove, nodeOfText, spellNode } from './record.ts';
import type { SummaryStep } from './summarizer.ts';
import { call, model } from '../../test/support/summary-steps.ts';

/** Counts tokens in a way that is easy to check. */
const count = (text: string) => Math.ceil(text.length / 4);

function written(node: OutlineNode, room: number): string {
  const textOf = ({ title, body }: { readonly title: string; readonly body: string }) =>
    `[head] ${title}\n${body}`;
  return textOf(spellNode(node, { room, tokensOf: (made) => count(textOf(made)), count, mark: '> ' }));
}

const work: readonly SummaryStep[] = [
  model('Let me look at src/parse.ts.'),
  call('read_file', { path: 'src/parse.ts' }, 'export function parse() {}'),
  model('The regex in src/parse.ts backtracks on 40,000 lines. I replace it.'),
  call('edit_file', { path: 'src/parse.ts', new_string: 'scan()' }),
  call('run', { command: 'npm test' }, 'Tests: 12 passed in all'),
];

describe('a record', () => {
  it('says what it was for and what came of it, then what was found and done', () => {
    const node = nodeOf([...work, model('The parser takes 4 ms now.')], { goal: 'Make the parser fast' });
    expect(written(node, 200)).toBe(`[head] Make the parser fast → The parser takes 4 ms now.
- read_file parse.ts · edit_file parse.ts: ok
- The regex in src/parse.ts backtracks on 40,000 lines.
- run npm test: "Tests: 12 passed in all"`);
  });

  it('takes the outcome from who was told, else from the last reply, else from the last result', () => {
    const outcomeOf = (steps: readonly SummaryStep[], givenOutcome?: string) =>
      nodeOf(steps, { goal: '', givenOutcome }).outcome;
    expect(outcomeOf(work, 'It is fast.')).toBe('It is fast.');
    expect(outcomeOf([...work, model('It takes 4 ms.')])).toBe('It takes 4 ms.');
    expect(outcomeOf(work)).toBe('Tests: 12 passed in all');
    expect(outcomeOf(work.slice(0, 2))).toBe('read_file parse.ts');
    expect(outcomeOf([call('run', { command: 'npm test' }, 'FAIL a.test.ts\n2 failed')])).toBe(
      'run npm test: 2 failed, "FAIL a.test.ts"',
    );
  });

  it('begins with what the user refused, whole, in whatever room', () => {
    const refusal =
      "The user doesn't want to proceed with this tool use. The tool use was rejected. To tell you how to proceed, the user said:\nisn't this an internal package?";
    const refused = call('edit_file', { path: 'src/lex.ts', new_string: 'x' }, refusal);
    const line = "edit_file lex.ts → REFUSED by the user: isn't this an internal package?";
    const node = nodeOf([refused, ...work, model('It takes 4 ms now, with the scanner of the parser.')], {
      goal: 'Make the parser fast',
    });
    expect(written(node, 48)).toBe(
      `[head] Make the parser fast → It takes 4 ms now, with the scanner of the parser.\n- ${line}`,
    );
    expect(nodeOf([...work, refused], { goal: '' }).outcome).toBe(line);
  });

  it('says that the user interrupted', () => {
    const stop: SummaryStep = {
      type: 'said',
      by: 'user',
      text: '[Request interrupted by user for tool use]',
    };
    const node = nodeOf([...work, stop, model('What should I do instead?')], {
      goal: 'Make the parser fast',
    });
    expect(written(node, 200).split('\n').slice(-2)).toEqual([
      '- run npm test: "Tests: 12 passed in all"',
      '- The user interrupted.',
    ]);
  });

  it('of several has a clause for each', () => {
    const parts = ['Mend alpha', 'Mend beta'].map((goal) =>
      nodeOf(work, { goal, givenOutcome: `${goal}: it works.` }),
    );
    expect(written(nodeAbove(parts), 24)).toBe(
      '[head] \n- Mend alpha → Mend alpha: it works.\n- Mend beta → Mend beta: it works.',
    );
    const above = nodeAbove([nodeAbove(parts), nodeOfText(2, 'p2', '', '[s3] Mend gamma → Done.')]);
    expect(written(above, 60)).toBe(
      '[head] \n- Mend alpha → Mend alpha: it works.; Mend beta → Mend beta: it works.\n[p2] Mend gamma → Done.',
    );
  });

  it('is measured by what it keeps', () => {
    const node = nodeOf(work, { goal: 'Make the parser fast' });
    expect(keptIn(node, written(node, 200))).toEqual({
      outcomes: { kept: 1, of: 1 },
      findings: { kept: 1, of: 1 },
      artifacts: { kept: 1, of: 1 },
    });
    expect(keptIn(node, '')).toMatchObject({ outcomes: { kept: 0, of: 1 }, artifacts: { kept: 0, of: 1 } });
  });
});

const sentences = fc.lorem({ maxCount: 8, mode: 'sentences' });
const steps: fc.Arbitrary<SummaryStep> = fc.oneof(
  sentences.map(model),
  sentences.map((text) => call('read_file', { path: `src/${text.split(' ')[0]}/main.ts` }, text)),
  sentences.map((text) => call('run', { command: `npm test ${text}` }, text)),
);
const nodes = fc
  .tuple(fc.array(steps, { minLength: 1, maxLength: 8 }), fc.lorem({ maxCount: 6 }))
  .map(([list, goal]) => ({ list, goal, node: nodeOf(list, { goal }) }));

describe('for any steps, a record', () => {
  it('cuts no word, has a title, and is no larger than its room', () => {
    fc.assert(
      fc.property(nodes, fc.integer({ min: 30, max: 600 }), ({ list, goal, node }, room) => {
        const text = written(node, room);
        expect(count(text)).toBeLessThanOrEqual(Math.max(room, 60));
        expect(text.split('\n')[0]).toMatch(/^\[head\] \S/);
        const wordsIn = (all: string) => new Set(all.split(/[^\p{L}\p{N}]+/u));
        const known = wordsIn(`${JSON.stringify(list)} ${goal} head ok no output`);
        expect([...wordsIn(text)].filter((word) => !known.has(word) && !/^\d*$/.test(word))).toEqual([]);
      }),
    );
  });

  it('has all lines of a smaller one', () => {
    fc.assert(
      fc.property(nodes, fc.integer({ min: 120, max: 600 }), fc.nat(300), ({ node }, room, more) => {
        const [less, all] = [written(node, room), written(node, room + more)].map((text) =>
          text.split('\n').slice(1),
        );
        expect(all).toEqual(expect.arrayContaining(less!.filter((line) => line !== '')));
      }),
    );
  });

  it('of several names each of them', () => {
    fc.assert(
      fc.property(
        fc.array(nodes, { minLength: 2, maxLength: 10 }),
        fc.integer({ min: 100, max: 800 }),
        (parts, room) => {
          const lines = written(nodeAbove(parts.map(({ node }) => node)), room)
            .split('\n')
            .slice(1);
          const heads = lines.filter((line) => line.startsWith('- '));
          expect(heads).toHaveLength(parts.length);
          for (const head of heads) expect(head).toMatch(/^- \S/);
        },
      ),
    );
  });
});
