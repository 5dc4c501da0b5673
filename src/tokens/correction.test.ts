import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Correction, correctionFrom, type CorrectionEvidence, type CountReport } from './calibration.ts';

const bounds = { min: 0.5, max: 2 };

const correct = (correction: Correction, counts: readonly number[]) =>
  counts.map((counted) => correction.correct(counted));

const correctionOf = (evidence: Partial<CorrectionEvidence>) =>
  correctionFrom({ bounds, level: 1, slope: 1, reports: [], ...evidence });

describe('correctionFrom', () => {
  it('corrects by the level of the model when nothing was reported yet', () => {
    const correction = correctionOf({ level: 1.2 });
    expect(correct(correction, [0, 7, 1_000, 150_000])).toEqual([0, 8, 1_200, 180_000]);
    expect([1_200, 100_000].map((tokens) => correction.countFor(tokens))).toEqual([1_000, 83_333]);
  });

  it('changes nothing when nothing is known', () => {
    const correction = correctionOf({});
    expect(correct(correction, [0, 1, 99_999])).toEqual([0, 1, 99_999]);
    expect([0, 1, 99_999].map((tokens) => correction.countFor(tokens))).toEqual([0, 1, 99_999]);
  });

  it('extrapolates from one report by the difference in counts, in both directions', () => {
    const correction = correctionOf({
      slope: 1.1,
      reports: [{ counted: 10_000, reported: 12_000 }],
    });
    expect(correct(correction, [10_000, 11_000, 5_000])).toEqual([12_000, 13_100, 6_500]);
  });

  it('accepts one report within the bounds only, and two that agree beyond them', () => {
    const stored = [
      { counted: 1_000, reported: 31_000 },
      { counted: 2_000, reported: 32_000 },
      { counted: 3_000, reported: 33_000 },
    ];
    expect(
      [1, 2, 3].map((known) => correctionOf({ reports: stored.slice(0, known) }).correct(4_000)),
    ).toEqual([8_000, 34_000, 34_000]);
  });

  it('lets a single outlier among three reports move it by a tenth', () => {
    const honest = { counted: 20_000, reported: 22_000 };
    const later = { counted: 21_000, reported: 23_000 };
    const wild = (reported: number) =>
      correctionOf({ reports: [honest, later, { counted: 22_000, reported }] });
    expect([24_000, 26_000, 200_000, 12_000].map((reported) => wild(reported).correct(23_000))).toEqual([
      25_000, 27_000, 27_500, 22_500,
    ]);
    // Now the next report is the newest, and the outlier is no longer a median.
    const next = { counted: 23_000, reported: 25_000 };
    const wildest = { counted: 22_000, reported: 200_000 };
    expect(correctionOf({ reports: [later, wildest, next] }).correct(24_000)).toBe(26_000);
  });

  it('follows a change that two reports agree on', () => {
    const reports = [
      { counted: 100_000, reported: 110_000 },
      { counted: 101_000, reported: 81_000 },
      { counted: 102_000, reported: 82_000 },
    ];
    expect(
      [2, 3].map((known) => correctionOf({ reports: reports.slice(0, known) }).correct(103_000)),
    ).toEqual(
      // After the first of them it stays within a tenth of the median of the level, the old line and the new line.
      [92_700, 83_000],
    );
  });

  it('never gives less for a larger count, nor leaves the bounds without reports', () => {
    const report: fc.Arbitrary<CountReport> = fc
      .record({
        counted: fc.integer({ min: 1, max: 300_000 }),
        factor: fc.double({ min: 0.5, max: 30, noNaN: true }),
      })
      .map(({ counted, factor }) => ({ counted, reported: counted * factor }));
    const evidence = fc.record({
      bounds: fc.constant(bounds),
      level: fc.double({ min: 0.5, max: 2, noNaN: true }),
      slope: fc.double({ min: 0.5, max: 2, noNaN: true }),
      reports: fc.array(report, { maxLength: 3 }),
    });
    const count = fc.integer({ min: 0, max: 500_000 });
    fc.assert(
      fc.property(evidence, count, count, (known, one, other) => {
        const { correct: corrected } = correctionFrom(known);
        const [small, large] = [Math.min(one, other), Math.max(one, other)];
        expect(corrected(small)).toBeLessThanOrEqual(corrected(large));
        expect(corrected(large)).toBeGreaterThanOrEqual(Math.floor(0.5 * large));
        const reported =
          known.reports.length < 2 ? 0 : Math.max(...known.reports.map((said) => said.reported));
        expect(corrected(large)).toBeLessThanOrEqual(Math.ceil(1.1 * (reported + 2 * large)));
        if (known.reports.length < 2) expect(corrected(large)).toBeLessThanOrEqual(2 * large);
      }),
    );
  });

  it('finds the largest count that still fits', () => {
    const evidence = fc.record({
      bounds: fc.constant(bounds),
      level: fc.double({ min: 0.5, max: 2, noNaN: true }),
      slope: fc.double({ min: 0.5, max: 2, noNaN: true }),
      reports: fc.array(
        fc.record({
          counted: fc.integer({ min: 1, max: 300_000 }),
          reported: fc.integer({ min: 1, max: 600_000 }),
        }),
        { maxLength: 3 },
      ),
    });
    fc.assert(
      fc.property(evidence, fc.integer({ min: 0, max: 500_000 }), (known, tokens) => {
        const correction = correctionFrom(known);
        const fits = correction.countFor(tokens);
        expect(correction.correct(fits + 1)).toBeGreaterThan(tokens);
        // The unseen part alone may be larger than the tokens that should fit.
        if (fits > 0) expect(correction.correct(fits)).toBeLessThanOrEqual(tokens);
      }),
    );
  });
});
