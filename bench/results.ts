/**
 * Writes the results of benchmarks to bench/results/, and reads them for bench/publish.ts. A result names the command, the machine, the version of
 * Node, the date and the commit. No host name and no path of the machine is in it.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus, loadavg, type as systemName } from 'node:os';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { round } from './tokens/arithmetic.ts';

/** Describes how a result was measured. */
export type Origin = {
  readonly command: string;
  readonly machine: string;
  readonly node: string;
  /** The day in UTC, such as 2026-11-22. */
  readonly date: string;
  /** The commit of the working tree, followed by `+` if files that are run had been changed. */
  readonly commit: string;
  /** The load average of the machine when the benchmark began: other work slows it. Older results lack it. */
  readonly load?: number | undefined;
};

const root = fileURLToPath(new URL('..', import.meta.url));

/** The commit when the benchmark began, because a long one may outlast it. */
const startCommit = commit();
const [startLoad] = loadavg();

/**
 * Writes bench/results/NAME.json: the origin, then the members of `result`. Numbers have at most four decimal places. A run with arguments writes
 * nothing, because published figures are those of the whole benchmark. Benchmarks whose result no page shows only print it.
 */
export function writeResult(name: string, result: object): void {
  if (process.argv.length > 2) return;
  writeFileSync(fileOf(name), `${JSON.stringify({ ...origin(), ...result }, rounded, 2)}\n`);
}

/** Returns what bench/results/NAME.json has; undefined if there is no such file. */
export function readResult(name: string): (Origin & Readonly<Record<string, unknown>>) | undefined {
  const file = fileOf(name);
  if (!existsSync(file)) return undefined;
  return JSON.parse(readFileSync(file, 'utf8')) as Origin & Readonly<Record<string, unknown>>;
}

/** Returns the name of each result in bench/results/. */
export function resultNames(): readonly string[] {
  return readdirSync(new URL('results/', import.meta.url))
    .filter((file) => file.endsWith('.json'))
    .map((file) => file.slice(0, -'.json'.length));
}

function fileOf(name: string): URL {
  return new URL(`results/${name}.json`, import.meta.url);
}

function rounded(_key: string, value: unknown): unknown {
  return typeof value === 'number' ? round(value, 4) : value;
}

function origin(): Origin {
  return {
    command: `npm run bench ${relative(root, process.argv[1] ?? '')}`,
    machine: machine(),
    node: process.versions.node,
    date: new Date().toISOString().slice(0, 10),
    commit: startCommit,
    load: startLoad,
  };
}

function machine(): string {
  const model = (cpus()[0]?.model ?? 'unknown processor').replaceAll(/\((R|TM)\)/g, '').trim();
  return `${availableParallelism()} cores of ${model}, ${systemName()}`;
}

function commit(): string {
  try {
    const changed = git('status', '--porcelain', '--', 'src', 'bench', ':!bench/results');
    return `${git('rev-parse', '--short=7', 'HEAD')}${changed === '' ? '' : '+'}`;
  } catch {
    return 'unknown';
  }
}

function git(...args: readonly string[]): string {
  return execFileSync('git', args, {
    cwd: root,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  }).trim();
}
