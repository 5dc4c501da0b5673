import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createPlanReader } from './finder.ts';

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

describe('anything else', () => {
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
