/** Checks a played loop: how the client ended, what it received, and what the provider received. Pure. */
import type { Receipt } from '../../src/receipts/receipt.ts';
import type { RecordedRequest } from '../support/fake-provider/fake-provider.ts';
import type { Variant } from './client.ts';
import { loadProblems } from './loaded-tools.ts';
import { type Loop, type Session, stepsOf } from './loops.ts';
import { rewrites } from './rewrites.ts';
import type { ClientRun } from './run-client.ts';
import { sawRecall } from './saw-recall.ts';
import type { ScriptedModel } from './scripted-model.ts';
import { secretOf } from './secret-files.ts';
import type { Exchange } from './tap.ts';

export type Evidence = {
  /** One run per session, up to the first that failed. */
  readonly runs: readonly ClientRun[];
  readonly exchanges: readonly Exchange[];
  readonly receipts: readonly Receipt[];
  readonly model: ScriptedModel;
  /** Requests that reached the provider, including refused ones. */
  readonly sent: readonly RecordedRequest[];
};

/** Returns the problems in words; none if the client finished its loop as expected. */
export function problemsOf(loop: Loop, variant: Variant, evidence: Evidence): readonly string[] {
  const { runs, exchanges, receipts, model, sent } = evidence;
  const steps = stepsOf(loop);
  const calls = sent.filter(({ format }) => format !== 'other' && format !== 'count-tokens').length;
  const refused = calls - model.asked();
  const revealed = exchanges.filter(sawRecall).length;
  const folds = foldsIn(receipts);
  const recalls = recallsIn(receipts);
  const wanted = steps.flatMap(({ recall }) => recall ?? []).length;
  const restored = model.restored().length;
  const rewritten = rewrites(sent);
  const checks: readonly (readonly [boolean, string])[] = [
    [refused === 0, `the provider refused ${refused} of ${calls} requests`],
    [revealed === 0, `the client saw read_memory in ${revealed} exchanges`],
    [loop.name !== 'plain' || folds === 0, `${folds} folds in a window that is large enough`],
    [loop.name === 'plain' || folds > 0, 'nothing was folded'],
    [recalls.length === wanted, `${recalls.length} recalls instead of ${wanted}`],
    [recalls.every(({ found }) => found), 'a recall found nothing'],
    [restored === wanted, `${restored} of ${wanted} recalls were restored in the client's history`],
    [rewritten <= folds, `sent messages were rewritten ${rewritten} times, by ${folds} folds`],
  ];
  const loads = loop.name === 'tool search' ? loadProblems(sent.map(({ body }) => body)) : [];
  const own = variant.also?.(exchanges) ?? [];
  return [
    ...loop.sessions.flatMap((session, at) => runProblems(session, runs[at])),
    ...checks.flatMap(([holds, problem]) => (holds ? [] : problem)),
    ...failures(receipts),
    ...loads,
    ...own,
  ];
}

function runProblems({ task, steps }: Session, run: ClientRun | undefined): readonly string[] {
  if (!run) return [`it never reached the task "${task}"`];
  const secrets = (steps.at(-1)?.answer ?? []).map(secretOf).join(', ');
  return [
    ...(run.code === 0 ? [] : [`it ended with ${run.code ?? run.signal}`]),
    ...(run.stdout.includes(secrets) ? [] : [`its output has no "${secrets}"`]),
  ];
}

/** Returns the failures and problems in the gateway's receipts. */
function failures(receipts: readonly Receipt[]): readonly string[] {
  return receipts.flatMap(({ outcome, problem }) => [
    ...(outcome.status === 'failed' ? [outcome.reason] : []),
    ...(problem === undefined ? [] : [problem]),
  ]);
}

/** Returns one line of figures for people. */
export function figuresOf({ exchanges, receipts, runs }: Evidence): string {
  const seconds = runs.reduce((sum, { ms }) => sum + ms, 0) / 1000;
  const counts = [
    `${runs.length} runs`,
    `${exchanges.length} exchanges`,
    `${foldsIn(receipts)} folds`,
    `${recallsIn(receipts).length} recalls`,
  ];
  return `${counts.join(', ')}, ${seconds.toFixed(1)} s`;
}

const foldsIn = (receipts: readonly Receipt[]) =>
  receipts.filter(({ trigger }) => trigger !== undefined).length;

const recallsIn = (receipts: readonly Receipt[]) => receipts.flatMap(({ recalls }) => recalls);
