/** Measures the time of an extractive summary by number of steps. The steps are recorded ones, repeated with other names. */
import type { SummaryStep } from '../../src/outline/summarizer.ts';
import { extract } from '../../src/outline/extract.ts';
import { median, round } from '../tokens/arithmetic.ts';

export type GrowthRow = {
  readonly steps: number;
  readonly MB: number;
  readonly ms: number;
  readonly 'µs per step': number;
  readonly tokens: number;
};

const rounds = 3;

export function growth(
  recorded: readonly SummaryStep[],
  counts: readonly number[],
  count: (text: string) => number,
): readonly GrowthRow[] {
  return counts.map((length) => {
    const steps = Array.from({ length }, (_, at) =>
      variant(recorded[at % recorded.length]!, Math.floor(at / recorded.length)),
    );
    const bytes = steps.reduce((sum, step) => sum + sizeOf(step), 0);
    let text = '';
    const times = Array.from({ length: rounds }, () => {
      const start = performance.now();
      text = extract({ steps, earlier: [], known: [], budget: { aim: 2_000, max: 4_000 }, count }) ?? '';
      return performance.now() - start;
    });
    const ms = median(times);
    return {
      steps: length,
      MB: round(bytes / 1e6, 1),
      ms: round(ms, 0),
      'µs per step': round((ms * 1_000) / length, 0),
      tokens: count(text),
    };
  });
}

/** Returns the step with other names, so that a repeated step contains new values. */
function variant(step: SummaryStep, repetition: number): SummaryStep {
  if (repetition === 0) return step;
  if (step.type === 'said') return { ...step, text: `${step.text} (${repetition})` };
  return { ...step, input: step.input.replaceAll(/([\w-]+)\.(go|ts|md|json)/g, `$1-${repetition}.$2`) };
}

function sizeOf(step: SummaryStep): number {
  return step.type === 'said' ? step.text.length : step.input.length + (step.result?.length ?? 0);
}
