/** Tests the comparison behind `npm run check -- speed`. */
import { expect, it } from 'vitest';
import { readResult } from '../bench/results.ts';
import { highest, lowest, type Ratios, slower } from '../bench/speed/ratios.ts';

const recorded = readResult('speed')?.['ratios'] as Ratios;

it('passes with the recorded ratios, and with ratios that are a little higher', () => {
  expect(Object.keys(recorded).length).toBeGreaterThan(3);
  expect(slower(recorded, recorded)).toEqual([]);
  expect(slower({ turn: 0.8 }, { turn: 1.2 })).toEqual([]);
});

it('fails for each recorded ratio that doubled', () => {
  for (const [name, ratio] of Object.entries(recorded)) {
    const measured = { ...recorded, [name]: ratio * 2 };
    expect(slower(recorded, measured)).toEqual([`${name}: recorded ${ratio}, measured ${ratio * 2}`]);
  }
});

it('fails for a ratio that was not recorded or not measured', () => {
  expect(slower({}, { turn: 1 })).toEqual(['turn: recorded never, measured 1']);
  expect(slower({ turn: 1 }, {})).toEqual(['turn: recorded 1, measured never']);
  expect(slower({ turn: 1 }, { turn: Number.NaN })).toEqual(['turn: recorded 1, measured NaN']);
});

it('takes the lower or the higher ratios of two measurements', () => {
  const [one, other] = [
    { turn: 2, read: 1 },
    { turn: 1, read: 3 },
  ];
  expect(lowest(one, other)).toEqual({ turn: 1, read: 1 });
  expect(highest(one, other)).toEqual({ turn: 2, read: 3 });
});
