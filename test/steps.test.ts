/** Tests the table of steps that the benchmarks divide CPU time by. */
import { expect, it } from 'vitest';
import { missingFunctions } from '../bench/steps.ts';

it('names only functions that exist', () => {
  expect(missingFunctions()).toEqual([]);
});
