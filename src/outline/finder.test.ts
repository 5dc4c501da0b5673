import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createPlanReader, findSubgoals, type NeutralStep } from './finder.ts';

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

const list = (...items: readonly (readonly [string, string])[]) =>
  JSON.stringify({ todos: items.map(([content, status]) => ({ content, status })) });

describe('a plan that is sent as a whole', () => {
  it('reports when another item becomes active, and nothing when only others change', () => {
    const plan = createPlanReader();
    expect(plan.begun(list(['Read', 'in_progress'], ['Mend', 'pending']), 'ok')).toBe('Read');
    expect(
      plan.begun(list(['Read', 'in_progress'], ['Mend', 'pending'], ['Test', 'pending']), 'ok'),
    ).toBeUndefined();
    expect(plan.begun(list(['Read', 'completed'], ['Mend', 'in_progress']), undefined)).toBe('Mend');
    expect(plan.begun(list(['Read', 'completed'], ['Mend', 'completed']), 'ok')).toBeUndefined();
  });

  it('is recognized by its shape, whatever its name', () => {
    const plan = createPlanReader();
    const sent = {
      explanation: 'next',
      plan: [
        { step: 'Look', status: 'done' },
        { step: 'Build', status: 'In-Progress' },
      ],
    };
    expect(plan.begun(JSON.stringify(sent), undefined)).toBe('Build');
  });
});

describe('a plan that is sent item by item', () => {
  it('names an item as it was created', () => {
    const plan = createPlanReader();
    expect(plan.begun('{"subject":"Mend the clock"}', 'Task #7 created')).toBeUndefined();
    expect(plan.begun('{"taskId":"7","status":"in_progress"}', 'ok')).toBe('Mend the clock');
    expect(plan.begun('{"taskId":"8","status":"in_progress"}', 'ok')).toBe('task 8');
    expect(plan.begun('{"taskId":"8","status":"completed"}', 'ok')).toBeUndefined();
  });
});

describe('any other call', () => {
  it('is no plan, and never an error', () => {
    const plan = createPlanReader();
    for (const sent of [
      '',
      '{',
      '"status"',
      '[{"status":"in_progress"}]',
      '{"status":"in_progress"}',
      '{"a":[1],"status":3,"id":1}',
    ]) {
      expect(plan.begun(sent, undefined)).toBeUndefined();
    }
    fc.assert(
      fc.property(fc.json(), fc.option(fc.string(), { nil: undefined }), (sent, result) => {
        plan.begun(sent.replaceAll('"":', '"status":'), result);
      }),
    );
  });
});
