import { expect, it } from 'vitest';
import { createBoundedNames } from './prometheus.ts';

it('names that clients send become labels when a provider has accepted them, up to a limit', () => {
  const names = createBoundedNames(2);
  expect([
    names.labelOf('made-up', false),
    names.labelOf('one', true),
    names.labelOf('one', false),
    names.labelOf('two', true),
    names.labelOf('three', true),
    names.labelOf(undefined, true),
  ]).toEqual(['other', 'one', 'one', 'two', 'other', 'unknown']);
});
