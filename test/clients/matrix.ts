/** Writes the table at the end of a run: which client, adapter or library folded, recalled, streamed and went on after a restart, and on what. Pure. */
import type { Evidence } from './judge.ts';
import { type Loop, stepsOf } from './loops.ts';

/** A row of the table. A cell says `yes`, `FAILED`, or in a few words why there is nothing to say. */
export type MatrixRow = {
  readonly name: string;
  /** The runtime of the code that Leporello connects. */
  readonly runtime: string;
  readonly fold: string;
  readonly recall: string;
  readonly stream: string;
  readonly restart: string;
};

/** Returns the row of a client after its folded loop. `problems`: those that the judge found. */
export function clientRow(
  name: string,
  loop: Loop,
  { receipts, exchanges }: Pick<Evidence, 'receipts' | 'exchanges'>,
  problems: readonly string[],
): MatrixRow {
  const word = (holds: boolean): string => (holds && problems.length === 0 ? 'yes' : 'FAILED');
  const isStreamed = exchanges.some(({ response }) => /^(?:event|data|id): ?/m.test(response));
  return {
    name,
    runtime: 'the CLI itself',
    fold: word(receipts.some(({ trigger }) => trigger !== undefined)),
    recall: stepsOf(loop).some(({ recall }) => recall !== undefined)
      ? word(receipts.some(({ recalls }) => recalls.some(({ found }) => found)))
      : 'not asked for',
    stream: isStreamed ? word(true) : 'does not stream',
    restart: loop.sessions.length > 1 ? word(true) : 'cannot resume',
  };
}

/** Writes the table, one line a row. */
export function spelledMatrix(rows: readonly MatrixRow[]): string {
  const columns = ['name', 'runtime', 'fold', 'recall', 'stream', 'restart'] as const;
  const head: MatrixRow = {
    name: 'client, adapter or library',
    runtime: 'runtime',
    fold: 'fold',
    recall: 'recall',
    stream: 'stream',
    restart: 'restart',
  };
  const all = [head, ...rows];
  const widths = columns.map((column) => Math.max(...all.map((row) => row[column].length)));
  const line = (row: MatrixRow): string =>
    columns
      .map((column, at) => row[column].padEnd(widths[at]!))
      .join('  ')
      .trimEnd();
  return all.map((row) => `${line(row)}\n`).join('');
}
