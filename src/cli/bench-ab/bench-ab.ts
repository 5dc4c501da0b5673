/**
 * Implements `leporello bench-ab`: runs a user's own command on each task twice, through Leporello and with every request unchanged, in an order
 * drawn from a seed, and compares cost, steps, re-fetches, failed edits and solved tasks. docs/bench-ab.md explains it.
 */
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { LeporelloError } from '../../errors.ts';
import type { Interval } from '../../experiment/sequence.ts';
import type { BenchAbArgs } from '../command-args.ts';
import { loadConfig } from '../config/load-config.ts';
import { gatewaySettings } from '../config/to-settings.ts';
import type { Terminal } from '../terminal.ts';
import { runArm } from './arm.ts';
import { type ArmRun, type Comparison, type Figure, arms, compare } from './figures.ts';

const defaults = { seed: 1, maxUsd: 5, maxSteps: 200, timeoutSeconds: 3_600 };

/** The count of re-fetches, and of failed edits, above which a run counts as one with this many. */
const maxCount = 50;

/** Runs the command. Resolves with 1 when no pair can be compared. Rejects with `bad-usage` without tasks or command. */
export async function benchAb(args: BenchAbArgs, terminal: Terminal): Promise<number> {
  const { config } = await loadConfig(args.settings, terminal);
  const tasks = await tasksIn(resolve(terminal.cwd, args.tasks));
  const { seed = defaults.seed, maxUsd = defaults.maxUsd, maxSteps = defaults.maxSteps } = args;
  const { timeoutSeconds = defaults.timeoutSeconds } = args;
  const caps = { usd: maxUsd, steps: maxSteps, count: maxCount };
  const random = randomFrom(seed);
  const runs: ArmRun[] = [];
  for (const [index, task] of tasks.entries()) {
    // The order of the arms is random, because a provider may be slower, or its cache warmer, for the second one.
    for (const arm of random() < 0.5 ? arms : arms.toReversed()) {
      const run = await runArm(
        {
          task,
          arm,
          command: args.run,
          namespace: `ab-${seed}-${arm === 'folded' ? 'one' : 'two'}`,
          addsNamespace: args.addsNamespace,
          settings: gatewaySettings(config),
          timeoutMs: timeoutSeconds * 1_000,
        },
        terminal,
      );
      runs.push(run);
      terminal.err(`${index + 1} of ${tasks.length}  ${task}  ${runText(run)}\n`);
    }
  }
  const compared = compare(runs, caps);
  await terminal.out(
    args.json ? `${JSON.stringify({ seed, caps, ...compared, runs }, finite)}\n` : tableOf(compared, seed),
  );
  return compared.tasks === 0 ? 1 : 0;
}

/** Reads the tasks: one on each line; empty lines and those that begin with # are left out. */
async function tasksIn(file: string): Promise<readonly string[]> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (cause) {
    throw new LeporelloError(
      'bad-usage',
      `The file of tasks ${file} cannot be read. Give a file with one task on each line.`,
      { cause },
    );
  }
  const lines = text.split('\n').map((line) => line.trim());
  const tasks = [...new Set(lines.filter((line) => line !== '' && !line.startsWith('#')))];
  if (tasks.length === 0)
    throw new LeporelloError('bad-usage', `The file ${file} names no task. Write one on each line.`);
  // Each task becomes an environment variable.
  if (text.includes('\0'))
    throw new LeporelloError(
      'bad-usage',
      `The file of tasks ${file} is no text. Write one task on each line.`,
    );
  return tasks;
}

/** Returns numbers from 0 to 1 that depend only on the seed (mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** An infinite end of an interval becomes null, as in JSON. */
function finite(_key: string, value: unknown): unknown {
  return typeof value === 'number' && !Number.isFinite(value) ? null : value;
}

function runText({ arm, isSolved, usd, steps, failed }: ArmRun): string {
  const cost = usd === undefined ? 'cost unknown' : `${usd.toFixed(4)} USD`;
  const lost = failed > 0 ? `, ${failed} failed` : '';
  return `${arm}: ${isSolved ? 'solved' : 'not solved'}, ${cost}, ${steps} steps${lost}`;
}

function row(label: string, folded: string, untouched: string, effect: string): string {
  return `${label.padEnd(24)}${folded.padStart(22)}${untouched.padStart(22)}   ${effect}`;
}

function tableOf(compared: Comparison, seed: number): string {
  const { tasks, models, refused, solved, failed, means, usdPerSolved, recalls, verdict } = compared;
  const pair = (
    label: string,
    of: 'usd' | 'steps' | 'refetches' | 'failedEdits',
    digits: number,
    effect: string,
  ): string => row(label, means.folded[of].toFixed(digits), means.untouched[of].toFixed(digits), effect);
  const lines = [
    `${tasks} tasks in both arms, model ${models.join(', ') || 'unknown'}, order by seed ${seed}. Intervals of 95 %, valid at every look.`,
    '',
    row('per task', 'folded', 'untouched', 'effect'),
    row(
      'solved',
      `${solved.folded} of ${tasks}`,
      `${solved.untouched} of ${tasks}`,
      `${figure(compared.solvedMore, 3)} per task`,
    ),
    pair('USD', 'usd', 4, `times ${figure(compared.usd, 3)}`),
    row('USD per solved task', figure(usdPerSolved.folded, 4), figure(usdPerSolved.untouched, 4), ''),
    pair('steps', 'steps', 1, `times ${figure(compared.steps, 3)}`),
    pair('re-fetches', 'refetches', 2, figure(compared.refetchesMore, 2)),
    pair('failed edits', 'failedEdits', 2, figure(compared.failedEditsMore, 2)),
    row(
      'failed requests, all',
      String(failed.folded),
      String(failed.untouched),
      failed.folded > 0 ? 'counted as no saving' : '',
    ),
    row('recalls, all', String(recalls), '', ''),
    '',
    ...refused.map(({ task, reason }) => `Refused: ${task}. ${reason}.`),
    verdict === 'cannot tell'
      ? 'Cost: cannot tell yet; more tasks narrow the interval.'
      : `Cost: folding was ${verdict}.`,
  ];
  return `${lines.map((line) => line.trimEnd()).join('\n')}\n`;
}

function figure({ estimate, interval }: Figure, digits: number): string {
  return estimate === undefined ? 'unknown' : `${estimate.toFixed(digits)} ${intervalText(interval, digits)}`;
}

function intervalText({ low, high }: Interval, digits: number): string {
  const end = (value: number): string =>
    Number.isFinite(value) ? value.toFixed(digits) : value < 0 ? '-∞' : '∞';
  return `[${end(low)}, ${end(high)}]`;
}
