import { expect, it } from 'vitest';
import { createBoundedNames } from './prometheus.ts';

it('names that clients send are labels once somebody answered to them, and no more than so many', () => {
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
