/** Spells the results of an experiment for a person, on the command line and on the page. */
import type { Estimated } from './estimate.ts';
import type { ExperimentReport } from './holdout.ts';
import { number } from '../receipts/detail.ts';

/** Spells the results of one experiment for a person. */
export function spellExperiment(report: ExperimentReport): string {
  const { estimate, model, rate, capUsd, since, open, rescued, unpriced, outcomes } = report;
  const { control, folded, verdict, needed, costRatio, lambda, breakEven, capped } = estimate;
  const lines = [
    `${model}, since ${new Date(since).toISOString().slice(0, 10)}, control group ${percent(rate)}, costs capped at USD ${capUsd}`,
    '',
    `  Verdict: ${verdictWords[verdict]}${needed === undefined ? '' : `, about ${number(needed)} conversations are needed`}.`,
    `  Ended conversations: ${number(folded)} folded, ${number(control)} control (${number(rescued)} folded because they would not fit); ${number(open)} open.`,
    `  Cost with folding relative to without: ${withInterval(costRatio, 3)}.`,
    `  Extra requests per 1,000 folded tokens: ${withInterval(lambda, 2)}; nothing is saved from ${breakEven === undefined ? 'an unknown number' : breakEven.toFixed(2)} on.`,
    '  Mean difference per conversation, folded minus control:',
    ...Object.entries(outcomes).map(([name, outcome]) => `    ${name}: ${withInterval(outcome, 2)}`),
    ...(capped > 0 ? [`  ${percent(capped)} of the conversations reached the cap.`] : []),
    ...(unpriced > 0
      ? [`  ${number(unpriced)} conversations are not counted, because a cost is unknown.`]
      : []),
  ];
  return `${lines.join('\n')}\n`;
}

const verdictWords = {
  pays: 'folding pays',
  costs: 'folding costs',
  'cannot tell': 'cannot tell yet',
} as const;

function withInterval({ estimate, interval: { low, high } }: Estimated, digits: number): string {
  if (estimate === undefined) return 'unknown';
  const end = (value: number) => (Number.isFinite(value) ? value.toFixed(digits) : 'unbounded');
  return `${estimate.toFixed(digits)} [${end(low)}, ${end(high)}]`;
}

function percent(share: number): string {
  return `${Math.round(share * 1_000) / 10} %`;
}
