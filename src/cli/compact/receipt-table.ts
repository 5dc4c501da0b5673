/** Formats the receipts of bodies as a table with aligned columns, or as JSON lines. */
import type { FoldReport, Outcome } from '../../receipts/receipt.ts';

/** The receipt of one body. A `bad` body could not be read, and was copied unchanged. */
export type BodyReceipt = {
  /** The line on which it begins, from 1. */
  readonly line: number;
  readonly id: string;
  readonly outcome: Outcome | { readonly status: 'bad'; readonly reason: string };
  readonly report: FoldReport | undefined;
  readonly ms: number;
};

/** A format of receipts. */
export interface ReceiptView {
  /** Adds a receipt, and returns the text to print now. A table holds its first rows back to find the widths. */
  add(receipt: BodyReceipt): string;
  end(): string;
}

/** Formats receipts as JSON lines. */
export function receiptLines(): ReceiptView {
  const sum = createSum();
  return {
    add(receipt) {
      sum.add(receipt);
      const { report, ...rest } = receipt;
      return `${JSON.stringify({ ...rest, ...report, ms: rounded(receipt.ms) })}\n`;
    },
    end: () => `${JSON.stringify({ total: sum.total() })}\n`,
  };
}

/** Formats receipts as a table. The first `held` rows set the widths of the columns; a longer cell in a later row shifts that row. */
export function receiptTable(held = 50): ReceiptView {
  const sum = createSum();
  let waiting: Row[] = [heads];
  let widths: readonly number[] | undefined;
  const show = (rows: readonly Row[]): string => {
    widths ??= heads.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
    return rows.map((row) => layOut(row, widths!)).join('');
  };
  return {
    add(receipt) {
      sum.add(receipt);
      const note = noteOf(receipt);
      const row = rowOf(receipt);
      if (widths !== undefined) return show([row]) + note;
      waiting.push(row);
      if (waiting.length <= held) return note;
      const rows = show(waiting);
      waiting = [];
      return note + rows;
    },
    end() {
      const rows = sum.total().bodies === 0 ? '' : show([...waiting, sum.row()]);
      return rows + sum.sentence();
    },
  };
}

type Row = readonly string[];

const heads: Row = ['id', 'outcome', 'trigger', 'before', 'after', 'ms', 'edits'];
const alignedRight: ReadonlySet<number> = new Set([3, 4, 5]);

function rowOf({ id, outcome, report, ms }: BodyReceipt): Row {
  return [
    plain(id),
    outcome.status,
    report?.trigger ?? '-',
    count(report?.tokensBefore),
    count(report?.tokensAfter),
    count(rounded(ms)),
    editsOf(report),
  ];
}

function editsOf(report: FoldReport | undefined): string {
  if (report === undefined) return '-';
  const replayed = report.replayed > 0 ? [`replayed ${report.replayed}`] : [];
  const steps = report.steps.map(({ strategy, edits, refused }) =>
    edits === 0 && refused !== undefined ? `${strategy} refused` : `${strategy} ${edits}`,
  );
  const shrunk = report.shrunk > 0 ? [`shrunk ${report.shrunk}`] : [];
  return [...shrunk, ...replayed, ...steps].join(', ') || '-';
}

/** Returns a line for a body that needs attention. */
function noteOf({ line, outcome, report }: BodyReceipt): string {
  if (outcome.status === 'bad') return `line ${line}: copied unchanged: ${plain(outcome.reason, 300)}\n`;
  if (outcome.status === 'failed') return `line ${line}: failed, copied unchanged: ${outcome.reason}\n`;
  return report?.unfit === undefined ? '' : `line ${line}: does not fit: ${report.unfit}\n`;
}

function layOut(row: Row, widths: readonly number[]): string {
  const cells = row.map((cell, column) =>
    alignedRight.has(column) ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!),
  );
  return `${cells.join('  ').trimEnd()}\n`;
}

type ReceiptSum = {
  readonly bodies: number;
  readonly outcomes: Readonly<Record<string, number>>;
  readonly tokensBefore: number;
  readonly tokensAfter: number;
  readonly ms: number;
};

function createSum() {
  const outcomes: Record<string, number> = {};
  let bodies = 0;
  let before = 0;
  let after = 0;
  let ms = 0;
  const total = (): ReceiptSum => ({
    bodies,
    outcomes,
    tokensBefore: before,
    tokensAfter: after,
    ms: rounded(ms),
  });
  return {
    add({ outcome, report, ms: taken }: BodyReceipt): void {
      bodies += 1;
      outcomes[outcome.status] = (outcomes[outcome.status] ?? 0) + 1;
      before += report?.tokensBefore ?? 0;
      after += report?.tokensAfter ?? 0;
      ms += taken;
    },
    total,
    row: (): Row => ['total', '', '', count(before), count(after), count(rounded(ms)), ''],
    sentence(): string {
      const kinds = Object.entries(outcomes).map(([status, number]) => `${count(number)} ${status}`);
      const saved =
        before === 0 ? '' : `; ${((100 * (before - after)) / before).toFixed(1)} % of the tokens saved`;
      const noun = bodies === 1 ? 'body' : 'bodies';
      return `${count(bodies)} ${noun}${kinds.length > 0 ? `: ${kinds.join(', ')}` : ''}${saved}\n`;
    },
  };
}

function count(value: number | undefined): string {
  return value === undefined ? '-' : value.toLocaleString('en-US');
}

/** Returns a text on one line, without control characters and at most `max` long, because an id can contain anything. */
function plain(text: string, max = 48): string {
  const line = text.replaceAll(/[\p{C}\p{Z}]+/gu, ' ').trim();
  return line.length > max ? `${line.slice(0, max - 1).toWellFormed()}…` : line;
}

function rounded(ms: number): number {
  return Math.round(ms * 10) / 10;
}
