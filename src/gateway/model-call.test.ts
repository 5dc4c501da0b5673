import { expect, it } from 'vitest';
import { openClock } from './model-call.ts';

it('the clock is right again when the machine has slept, and never goes back', () => {
  let [fine, day] = [5.25, 1_000_000];
  const clock = openClock(
    () => fine,
    () => day,
  );
  const after = (runs: number, sleeps: number) => {
    fine += runs;
    day += runs + sleeps;
    return clock();
  };
  expect(after(0.5, 0)).toBe(1_000_000.5);
  expect(after(10, 3_600_000)).toBe(4_600_010.5);
  expect(after(1, -60_000)).toBe(4_600_011.5);
});
