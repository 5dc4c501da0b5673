import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { findSubgoals, type NeutralStep } from './finder.ts';

const user = (text: string): NeutralStep => ({ kind: 'said', by: 'user', text });
const model = (text: string): NeutralStep => ({ kind: 'said', by: 'assistant', text });
const call = (tool: string, path = ''): NeutralStep => ({
  kind: 'called',
  tool,
  input: JSON.stringify({ path }),
  result: 'ok',
});
const todo = (content: string): NeutralStep => ({
  kind: 'called',
  tool: 'todo',
  input: JSON.stringify({ todos: [{ content, status: 'in_progress' }] }),
  result: 'ok',
});
const times = (count: number, step: NeutralStep): readonly NeutralStep[] =>
  Array.from({ length: count }, () => step);

/** Writes sub-goals as `start-end by: goal`. */
const subgoalsIn = (steps: readonly NeutralStep[]): readonly string[] =>
  findSubgoals(steps).map(({ start, end, by, goal }) => `${start}-${end} ${by}: ${goal}`);

describe('a sub-goal begins', () => {
  it('where the user speaks', () => {
    expect(
      subgoalsIn([user('Mend it\nplease'), call('read', 'a.ts'), user('And test it'), call('run')]),
    ).toEqual(['0-2 user: Mend it', '2-4 user: And test it']);
  });

  it('where an item of a plan is started, however short the previous sub-goal', () => {
    expect(
      subgoalsIn([
        user('Mend it'),
        call('read', 'a.ts'),
        todo('Mend the clock'),
        call('edit', 'a.ts'),
        todo('Test'),
        call('run'),
      ]),
    ).toEqual(['0-2 user: Mend it', '2-4 plan: Mend the clock', '4-6 plan: Test']);
  });

  it('where the model announces the next action, after three calls', () => {
    const steps = [
      user('Mend it'),
      call('read', 'src/a.ts'),
      model('Now let me look at b.'),
      call('read', 'src/a.ts'),
      call('read', 'src/a.ts'),
      model('That is wrong. Let me see.'),
      call('read', 'src/a.ts'),
      model('All tests pass. Now let me add the limit:'),
      call('read', 'src/a.ts'),
    ];
    expect(subgoalsIn(steps)).toEqual(['0-7 user: Mend it', '7-9 words: Now let me add the limit:']);
  });

  it('where another tool is used, or calls name only new things, after three calls', () => {
    const reads = times(3, call('read', 'src/a.ts'));
    expect(subgoalsIn([user('Mend it'), ...reads, call('edit', 'src/a.ts')])).toEqual([
      '0-4 user: Mend it',
      '4-5 tool: edit a.ts',
    ]);
    expect(subgoalsIn([user('Mend it'), ...reads, ...times(3, call('read', 'lib/b.ts'))])).toEqual([
      '0-4 user: Mend it',
      '4-7 topic: read b.ts',
    ]);
    expect(
      subgoalsIn([user('Mend it'), ...reads, call('read', 'lib/b.ts'), call('read', 'lib/a.ts')]),
    ).toEqual(['0-6 user: Mend it']);
  });

  it('after seven calls at the latest', () => {
    expect(subgoalsIn(times(16, call('read', 'src/a.ts')))).toEqual([
      '0-7 length: read a.ts',
      '7-14 length: read a.ts',
      '14-16 length: read a.ts',
    ]);
  });

  it('with the last name announced before its first call', () => {
    expect(subgoalsIn([user('Mend it'), model('Sure.'), todo('Read'), call('read', 'a.ts')])).toEqual([
      '0-4 plan: Read',
    ]);
  });

  it('nowhere in an empty conversation', () => {
    expect(findSubgoals([])).toEqual([]);
  });
});

describe('any conversation', () => {
  it('is split without gaps, and no sub-goal has more than seven calls', () => {
    const step = fc.oneof(
      fc.string().map(user),
      fc.constantFrom('Now on.', 'Hm.', 'Next: b').map(model),
      fc
        .tuple(fc.constantFrom('read', 'edit'), fc.constantFrom('a.ts', 'b.ts', 'x/c', ''))
        .map(([tool, path]) => call(tool, path)),
      fc.constantFrom('A', 'B').map(todo),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const found = findSubgoals(steps);
        expect(found.map(({ start }) => start)).toEqual([
          ...(steps.length > 0 ? [0] : []),
          ...found.slice(0, -1).map(({ end }) => end),
        ]);
        expect(found.at(-1)?.end ?? 0).toBe(steps.length);
        for (const { start, end } of found) {
          expect(steps.slice(start, end).filter(({ kind }) => kind === 'called').length).toBeLessThanOrEqual(
            7,
          );
        }
      }),
    );
  });
});
