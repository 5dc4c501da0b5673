/** What a played loop must show: of the client's end, of what it was told, and of what the provider got. Pure. */
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
  /** One for each session; those after one that failed are left out. */
  readonly runs: readonly ClientRun[];
  readonly exchanges: readonly Exchange[];
  readonly receipts: readonly Receipt[];
  readonly model: ScriptedModel;
  /** What reached the provider, refused requests too. */
  readonly sent: readonly RecordedRequest[];
};

/** What is wrong, in words; nothing when the client went through its loop as it should. */
export function problemsOf(loop: Loop, variant: Variant, evidence: Evidence): readonly string[] {
  const { runs, exchanges, receipts, model, sent } = evidence;
  const steps = stepsOf(loop);
  const calls = sent.filter(({ format }) => format !== 'other' && format !== 'count-tokens').length;
  const refused = calls - model.asked();
  const told = exchanges.filter(sawRecall).length;
  const folds = foldsIn(receipts);
  const recalls = recallsIn(receipts);
  const wanted = steps.flatMap(({ recall }) => recall ?? []).length;
  const putBack = model.putBack().length;
  const rewritten = rewrites(sent);
  const musts: readonly (readonly [boolean, string])[] = [
    [refused === 0, `the provider refused ${refused} of ${calls} requests`],
    [told === 0, `the client was told of read_memory in ${told} exchanges`],
    [loop.name !== 'plain' || folds === 0, `${folds} folds in a window that is large enough`],
    [loop.name === 'plain' || folds > 0, 'nothing was folded'],
    [recalls.length === wanted, `${recalls.length} recalls instead of ${wanted}`],
    [recalls.every(({ found }) => found), 'a recall found nothing'],
    [putBack === wanted, `${putBack} of ${wanted} recalls were put back into what the client wrote`],
    [rewritten <= folds, `what had been sent was rewritten ${rewritten} times, by ${folds} folds`],
  ];
  const loads = loop.name === 'tool search' ? loadProblems(sent.map(({ body }) => body)) : [];
  const own = variant.also?.(exchanges) ?? [];
  return [
    ...loop.sessions.flatMap((session, at) => runProblems(session, runs[at])),
    ...musts.flatMap(([holds, problem]) => (holds ? [] : problem)),
    ...failures(receipts),
    ...loads,
    ...own,
  ];
}

function runProblems({ task, steps }: Session, run: ClientRun | undefined): readonly string[] {
  if (!run) return [`it never came to "${task}"`];
  const secrets = (steps.at(-1)?.answer ?? []).map(secretOf).join(', ');
  return [
    ...(run.code === 0 ? [] : [`it ended with ${run.code ?? run.signal}`]),
    ...(run.stdout.includes(secrets) ? [] : [`its output has no "${secrets}"`]),
  ];
}

/** What the gateway itself says went wrong. */
function failures(receipts: readonly Receipt[]): readonly string[] {
  return receipts.flatMap(({ outcome, problem }) => [
    ...(outcome.status === 'failed' ? [outcome.reason] : []),
    ...(problem === undefined ? [] : [problem]),
  ]);
}

/** One line of figures for people. */
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
