/** Spells the results of an experiment for a person, on the command line and on the page. */
import type { ReplySums } from './decision.ts';
import type { Estimated } from './estimate.ts';
import type { ExperimentReport } from './holdout.ts';
import { number } from '../receipts/detail.ts';
import type { ShadowReport, StrategiesReport } from './shadow.ts';
import { minConversations, minSamples, type ShadowEstimate } from './shadow-estimate.ts';

/** The results of a tenant's experiments. */
export type ExperimentResults = {
  readonly experiments: readonly ExperimentReport[];
  readonly shadows: readonly ShadowReport[];
};

/** Spells all results for a person, each on its own, the newest of a model first. */
export function spellResults({ experiments, shadows }: ExperimentResults): readonly string[] {
  return [...newestFirst(experiments, spellExperiment), ...newestFirst(shadows, spellShadow)];
}

function newestFirst<R extends { readonly model: string }>(
  reports: readonly R[],
  spelled: (report: R, isNewest: boolean) => string,
): readonly string[] {
  const isNewest = (model: string, at: number) => reports.findIndex((one) => one.model === model) === at;
  return reports.map((report, at) => spelled(report, isNewest(report.model, at)));
}

function spellExperiment(report: ExperimentReport, isNewest: boolean): string {
  const { estimate, model, rate, capUsd, since, open, rescued, unpriced, outcomes } = report;
  const { control, folded, verdict, needed, costRatio, lambda, breakEven, capped } = estimate;
  const head = [
    `${model}, since ${new Date(since).toISOString().slice(0, 10)}, control group ${percent(rate)}, costs capped at USD ${capUsd}${isNewest ? '' : earlier}`,
    '',
    `  Verdict: ${verdictWords[verdict]}${needed === undefined ? '' : `, about ${number(needed)} conversations are needed`}.`,
  ];
  if (folded + control + unpriced === 0)
    return `${head.join('\n')}\n  Ended conversations: none; ${number(open)} open. A conversation has ended when it was silent for six hours.\n`;
  const lines = [
    ...head,
    `  Ended conversations: ${number(folded)} folded, ${number(control)} control (${number(rescued)} folded because they would not fit); ${number(open)} open.`,
    `  Cost with folding relative to without: ${withInterval(costRatio, 3)}.`,
    `  Extra requests per 1,000 folded tokens: ${withInterval(lambda, 2)}${breakEven === undefined ? '' : `; nothing is saved from ${breakEven.toFixed(2)} on`}.`,
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

const earlier = ', under earlier settings';

function spellShadow(report: ShadowReport, isNewest: boolean): string {
  const { model, since, levels, byStrategies, recalls, replies, tally } = report;
  const { state, first, later } = levels.target;
  const dropped = Object.entries(tally.dropped).toSorted((one, other) => other[1] - one[1]);
  const lines = [
    `${model}, since ${new Date(since).toISOString().slice(0, 10)}, folded requests sent again${isNewest ? '' : earlier}`,
    '',
    `  Verdict: ${stateWords[state]}${state === 'not shown' && first.needed !== undefined ? `, about ${number(first.needed)} requests with a new fold are needed` : ''}.`,
    ...estimateLines('Requests with a new fold', first),
    ...estimateLines('Later requests', later),
    ...(first.state === 'too few'
      ? []
      : [
          `  Secondary, with a new fold: by the tool alone, ${bothOf(levels.tool.first)}; by all arguments, ${bothOf(levels.arguments.first)}.`,
          `  Secondary, all: a reply has ${perReply(replies, 'tokensOut', String)} tokens; ${perReply(replies, 'repeats', percent)} of the replies only repeat earlier calls.`,
        ]),
    ...byStrategies.map(spellStrategies),
    `  Recalls in folded replies: ${number(recalls)}.`,
    // These are counted for the model, whatever the settings.
    ...(isNewest
      ? [
          `  Cost for this model, under all settings: USD ${tally.usd.toFixed(2)} in ${number(tally.calls)} calls.`,
          ...dropped.map(([reason, count]) => `  Not compared, because ${reason}: ${number(count)}.`),
        ]
      : []),
  ];
  return `${lines.join('\n')}\n`;
}

function estimateLines(name: string, estimate: ShadowEstimate): readonly string[] {
  const { state, samples, conversations, loss, lossInterval, shift, shiftInterval } = estimate;
  if (samples === 0) return [];
  if (state === 'too few')
    return [
      `  ${name}: ${number(samples)} compared, at least ${minSamples} are needed; of ${number(conversations)} conversations, at least ${minConversations}.`,
    ];
  return [
    `  ${name}: ${number(samples)} of ${number(conversations)} conversations.`,
    `    Agreement on the next target lost: ${withInterval({ estimate: loss, interval: lossInterval }, 3)}.`,
    `    Shift of the next target: ${withInterval({ estimate: shift, interval: shiftInterval }, 3)}.`,
  ];
}

const stateWords = {
  'too few': 'cannot tell yet',
  'harm shown': 'folds change what the model does next',
  'not shown': 'neither harm nor its absence is shown',
  safe: 'folds are harmless: they cost less than 5 points of agreement',
} as const;

/** Spells the mean of a figure in folded and in whole replies. */
function perReply(
  { folded, whole }: ShadowReport['replies'],
  figure: 'tokensOut' | 'repeats',
  spelled: (mean: number) => string,
): string {
  const mean = (sums: ReplySums) => {
    const each = sums[figure] / Math.max(1, sums.replies);
    return spelled(figure === 'tokensOut' ? Math.round(each) : each);
  };
  return `${mean(folded)} (folded) against ${mean(whole)} (whole)`;
}

function bothOf({ loss, shift }: ShadowEstimate): string {
  return `${(loss ?? 0).toFixed(3)} lost, shift ${(shift ?? 0).toFixed(3)}`;
}

function spellStrategies({ strategies, state, first, later, heldUntil }: StrategiesReport): string {
  const held =
    heldUntil === undefined ? '' : `; held until ${new Date(heldUntil).toISOString().slice(0, 10)}`;
  return `  ${strategies}: ${stateWords[state]} (${number(first.samples + later.samples)} requests${held}).`;
}

function withInterval({ estimate, interval: { low, high } }: Estimated, digits: number): string {
  if (estimate === undefined) return 'unknown';
  const end = (value: number) => (Number.isFinite(value) ? value.toFixed(digits) : 'unbounded');
  return `${estimate.toFixed(digits)} [${end(low)}, ${end(high)}]`;
}

function percent(share: number): string {
  return `${Math.round(share * 1_000) / 10} %`;
}
