/** Writes tables in Markdown. */

/** A row of a result, as a benchmark printed it. */
export type Row = Readonly<Record<string, string | number>>;
export type Cell = string | number;

/** Makes a table of these columns: a key of the row, or a function of it. */
export function columns(
  rows: readonly Row[],
  of: Readonly<Record<string, string | ((row: Row) => Cell)>>,
): string {
  const cells = rows.map((row) =>
    Object.values(of).map((column) => (typeof column === 'function' ? column(row) : (row[column] ?? ''))),
  );
  return markdown(Object.keys(of), cells);
}

/** Numbers are set to the right, unless `rule` says otherwise. */
export function markdown(head: readonly string[], rows: readonly (readonly Cell[])[], rule?: string): string {
  const isNumeric = (at: number): boolean => rows.every((row) => /^[-\d]/.test(String(row[at] ?? '')));
  const line = rule ?? `|${head.map((_, at) => (at > 0 && isNumeric(at) ? '---:' : '---')).join('|')}|`;
  const lines = rows.map((row) => row.map((cell) => (typeof cell === 'number' ? number(cell) : cell)));
  return [`| ${head.join(' | ')} |`, line, ...lines.map((row) => `| ${row.join(' | ')} |`)].join('\n');
}

export function number(value: number): string {
  return value.toLocaleString('en-US', { maximumFractionDigits: 4 });
}

/** Returns two significant digits. */
export function significant(value: number): string {
  return number(Number(value.toPrecision(2)));
}

export function percent(share: number, digits: number): string {
  return `${(100 * share).toFixed(digits)} %`;
}
