import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Calibration, createCalibration, type CountReport } from './calibration.ts';

const model = 'local claude-opus-4-5';

const report = (counted: number, reported: number): CountReport => ({ counted, reported });

const corrected = (calibration: Calibration, conversation: string, counted: number) =>
  calibration.correctionFor(model, conversation).correct(counted);

const learnAll = (calibration: Calibration, conversation: string, reports: readonly CountReport[]) => {
  for (const one of reports) calibration.learn(model, conversation, one);
};

describe('a new conversation', () => {
  it('is corrected by the median of how others of its model began, the count itself having one vote', () => {
    const calibration = createCalibration();
    const first = () => corrected(calibration, 'new', 10_000);
    const seen = [first()];
    for (const [conversation, reported] of Object.entries({ a: 12_100, b: 12_100, c: 13_000, d: 9_000 })) {
      calibration.learn(model, conversation, report(10_000, reported));
      seen.push(first());
    }
    // 1; the mean of 1 and 1.21; the middle of 1, 1.21, 1.21; between 1.21 and 1.21; 1.21.
    expect(seen).toEqual([10_000, 11_000, 12_100, 12_100, 12_100]);
  });

  it('learns nothing from other models, from short prompts, or from reports that are no ratio', () => {
    const calibration = createCalibration();
    for (const conversation of ['a', 'b', 'c']) {
      calibration.learn('local gpt-5', conversation, report(10_000, 12_000));
      calibration.learn(model, conversation, report(900, 1_500));
      calibration.learn(model, `${conversation}, stored prompt`, report(2_000, 60_000));
    }
    expect(corrected(calibration, 'new', 10_000)).toBe(10_000);
  });

  it('uses only the model for a conversation that cannot be found again', () => {
    const calibration = createCalibration();
    calibration.learn(model, 'a', report(10_000, 12_000));
    calibration.learn(model, 'b', report(10_000, 12_000));
    calibration.learn(model, undefined, report(10_000, 19_000));
    expect(calibration.correctionFor(model, undefined).correct(5_000)).toBe(6_000);
  });
});

describe('a known conversation', () => {
  it('continues from its own reports, which include what the request does not show', () => {
    const calibration = createCalibration();
    const errors = [42, 197, 443, 3_423, 3_824, 4_559].map((counted) => {
      const tokens = counted + 24_000;
      const error = corrected(calibration, 'a', counted) - tokens;
      calibration.learn(model, 'a', report(counted, tokens));
      return error;
    });
    expect(errors).toEqual([-24_000, -23_803, 0, 0, 0, 0]);
  });

  it('learns from its growth how one more token is reported', () => {
    const calibration = createCalibration();
    const reports = [0, 10_000, 20_000, 40_000, 80_000].map((grown) =>
      report(20_000 + grown, 24_000 + 1.4 * grown),
    );
    const slopes = reports.map((one) => {
      calibration.learn(model, 'a', one);
      const { correct } = calibration.correctionFor(model, 'a');
      return Math.round((correct(one.counted + 10_000) - correct(one.counted)) / 10) / 1_000;
    });
    // The model's level (the root of 1.2) weighs 10,000 tokens against its growth, and its slope as many against the conversation's growth.
    expect(slopes).toEqual([1.095, 1.324, 1.366, 1.388, 1.396]);
  });

  it('does not learn from a value that cannot be a report of the prompt', () => {
    const calibration = createCalibration();
    learnAll(calibration, 'a', [report(10_000, 12_000), report(11_000, 13_000)]);
    const known = corrected(calibration, 'a', 12_000);
    learnAll(calibration, 'a', [
      report(12_000, 0),
      report(12_000, 50),
      report(12_000, Number.NaN),
      report(12_000, Number.POSITIVE_INFINITY),
      report(0, 12_000),
      report(-5, 12_000),
    ]);
    expect([known, corrected(calibration, 'a', 12_000)]).toEqual([14_079, 14_079]);
  });

  it('is distinct from one of the same name with another model', () => {
    const calibration = createCalibration();
    calibration.learn('local gpt-5', 'a', report(10_000, 15_000));
    expect(corrected(calibration, 'a', 10_000)).toBe(10_000);
  });

  it('keeps a correction that was taken before more was learned', () => {
    const calibration = createCalibration();
    const taken = calibration.correctionFor(model, 'a');
    calibration.learn(model, 'a', report(10_000, 12_000));
    expect([taken.correct(10_000), corrected(calibration, 'a', 10_000)]).toEqual([10_000, 12_000]);
  });
});

describe('memory', () => {
  it('forgets the conversation and the model that were unused for the longest time', () => {
    const calibration = createCalibration({ conversations: 2, models: 1 });
    for (const conversation of ['a', 'b', 'c']) {
      calibration.learn(model, conversation, report(10_000, 11_000));
    }
    const known = ['a', 'b', 'c'].map((conversation) => corrected(calibration, conversation, 20_000));
    calibration.learn('another', 'd', report(10_000, 19_000));
    // The three conversations keep their corrections, but the correction of their model was evicted by the other model's.
    expect([known, corrected(calibration, 'e', 20_000)]).toEqual([[22_000, 22_000, 22_000], 20_000]);
  });

  it('refuses bounds that do not hold 1', () => {
    for (const bounds of [
      { min: 0, max: 2 },
      { min: 1.1, max: 2 },
      { min: 0.5, max: 0.9 },
      { min: Number.NaN, max: 2 },
    ]) {
      expect(() => createCalibration({ bounds })).toThrow(
        `calibration.bounds must satisfy 0 < min <= 1 <= max, but min is ${bounds.min} and`,
      );
    }
  });
});

describe('the laws of calibration', () => {
  const ratio = fc.integer({ min: 600, max: 1_900 }).map((thousandths) => thousandths / 1_000);
  const growths = fc.array(fc.integer({ min: 100, max: 20_000 }), { minLength: 6, maxLength: 30 });

  /** Prompts that grow, with what a provider reports that counts `ratio` times as many tokens. */
  const reportsOf = (from: number, grown: readonly number[], factor: number): readonly CountReport[] => {
    const reports: CountReport[] = [];
    let counted = from;
    for (const step of grown) {
      reports.push(report(counted, Math.round(counted * factor)));
      counted += step;
    }
    return reports;
  };

  it('is within the bounds for any reports, until two in a conversation agree on more', () => {
    const anyReport = fc.record({
      counted: fc.integer({ min: -10, max: 400_000 }),
      reported: fc.oneof(
        fc.integer({ min: -10, max: 2_000_000 }),
        fc.constantFrom(Number.NaN, Number.POSITIVE_INFINITY),
      ),
    });
    const lesson = fc.tuple(fc.constantFrom('a', 'b', 'c'), anyReport);
    fc.assert(
      fc.property(
        fc.array(lesson, { maxLength: 30 }),
        fc.integer({ min: 1, max: 400_000 }),
        (lessons, counted) => {
          const calibration = createCalibration();
          for (const [conversation, one] of lessons) calibration.learn(model, conversation, one);
          const fresh = corrected(calibration, 'new', counted);
          expect(fresh).toBeGreaterThanOrEqual(Math.floor(counted / 2));
          expect(fresh).toBeLessThanOrEqual(counted * 2);
          const known = corrected(calibration, 'a', counted);
          expect(known).toBeGreaterThanOrEqual(Math.floor(counted / 2));
          expect(Number.isSafeInteger(known)).toBe(true);
        },
      ),
    );
  });

  it('converges to a constant true ratio: exactly at known prompts, within 2 % after six reports, in new conversations after two', () => {
    fc.assert(
      fc.property(ratio, growths, (factor, grown) => {
        const calibration = createCalibration();
        for (const conversation of ['a', 'b']) {
          const reports = reportsOf(10_000, grown, factor);
          learnAll(calibration, conversation, reports);
          const last = reports.at(-1)!;
          const next = last.counted + 1_000;
          expect(corrected(calibration, conversation, last.counted)).toBe(last.reported);
          const error = corrected(calibration, conversation, next) / (next * factor) - 1;
          expect(Math.abs(error)).toBeLessThan(0.02);
        }
        const error = corrected(calibration, 'new', 50_000) / (50_000 * factor) - 1;
        expect(Math.abs(error)).toBeLessThan(0.001);
      }),
    );
  });

  it('is moved by one outlier by a quarter at most, and by 1 % after two correct ones', () => {
    const wildness = fc.integer({ min: 1, max: 5_000 }).map((hundredths) => hundredths / 100);
    fc.assert(
      fc.property(ratio, growths, wildness, (factor, grown, wild) => {
        const calibration = createCalibration();
        const reports = reportsOf(20_000, [...grown, 500, 500, 500], factor);
        learnAll(calibration, 'a', reports.slice(0, -3));
        const errorAt = ({ counted }: CountReport): number =>
          Math.abs(corrected(calibration, 'a', counted) / (counted * factor) - 1);
        const [hit, next, after] = reports.slice(-3) as [CountReport, CountReport, CountReport];
        calibration.learn(model, 'a', { ...hit, reported: hit.reported * wild });
        expect(errorAt(next)).toBeLessThan(0.25);
        learnAll(calibration, 'a', [next, after]);
        expect(errorAt({ ...after, counted: after.counted + 500 })).toBeLessThan(0.01);
      }),
    );
  });

  it('gives new conversations the same correction whatever the order of those it learned from', () => {
    const conversations = fc.uniqueArray(fc.record({ id: fc.string(), factor: ratio, grown: growths }), {
      selector: ({ id }) => id,
      minLength: 2,
      maxLength: 12,
    });
    fc.assert(
      fc.property(conversations, (learned) => {
        const [forwards, backwards] = [learned, learned.toReversed()].map((order) => {
          const calibration = createCalibration();
          for (const { id, factor, grown } of order)
            learnAll(calibration, id, reportsOf(5_000, grown, factor));
          return corrected(calibration, 'new', 80_000);
        });
        expect(forwards).toBe(backwards);
      }),
    );
  });

  it('does not oscillate: with a constant ratio no error exceeds the one before by more than rounding', () => {
    fc.assert(
      fc.property(ratio, fc.integer({ min: 500, max: 5_000 }), (factor, step) => {
        const calibration = createCalibration();
        const reports = reportsOf(
          20_000,
          Array.from({ length: 12 }, () => step),
          factor,
        );
        const errors = reports.map(({ counted, reported }) => {
          const error = Math.abs(corrected(calibration, 'a', counted) - reported) / reported;
          calibration.learn(model, 'a', report(counted, reported));
          return error;
        });
        for (const [at, error] of errors.entries()) {
          expect(error).toBeLessThanOrEqual((errors[at - 1] ?? 1) + 0.001);
        }
      }),
    );
  });
});
