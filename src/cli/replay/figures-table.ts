/** Formats the figures of a replay as text, with one table for each source, and its progress as a bar. */
import type { Figures, SourceFigures } from '../../replay/figures.ts';

/** Returns all tables. */
export function figuresTable(sources: readonly SourceFigures[]): string {
  return sources.map(tableOf).join('\n');
}

function tableOf(figures: SourceFigures): string {
  return `${figures.source}: ${titleOf(figures)}\n${layOut(figuresRows(figures))}`;
}

/** Returns a line that says how much was replayed. */
export function titleOf({ conversations, requests, policies }: SourceFigures): string {
  const needs = policies[0]?.needs ?? 0;
  return `${count(conversations)} conversation${conversations === 1 ? '' : 's'}, ${count(requests)} requests, ${count(needs)} values used again`;
}

/** Returns the head of the table, and a row for each policy. */
export function figuresRows({ policies }: SourceFigures): readonly (readonly string[])[] {
  const tables = Object.keys(policies[0]?.cost ?? {});
  const first = tables[0] ?? '';
  const heads = [
    'policy',
    ...tables,
    `${first} without recalls`,
    `worst, ${first}`,
    'mean tokens',
    'peak',
    'visible',
    'recalls/100',
    'lost',
    'stable',
    'over window',
  ];
  return [heads, ...policies.map((figures) => rowOf(figures, tables, first))];
}

function rowOf(figures: Figures, tables: readonly string[], first: string): readonly string[] {
  const { careless, worst } = figures;
  return [
    figures.policy,
    ...tables.map((table) => figures.cost[table]!.toFixed(3)),
    careless ? careless[first]!.toFixed(3) : '-',
    worst[first]!.cost.toFixed(2),
    count(figures.meanTokens),
    count(figures.peakTokens),
    percent(figures.visible),
    figures.recallsPer100.toFixed(1),
    percent(figures.lost, 2),
    percent(figures.stable),
    problemsOf(figures),
  ];
}

/** Returns the number of requests over the window, with warnings for policies that failed. */
function problemsOf({ overWindow, failed, unfit }: Figures): string {
  const warnings = [failed > 0 ? `${failed} failed` : '', unfit > 0 ? `${unfit} unfit` : ''].filter(Boolean);
  return [count(overWindow), ...warnings].join(', ');
}

function layOut(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows
    .map((row) =>
      row
        .map((cell, column) => (column === 0 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!)))
        .join('  ')
        .trimEnd(),
    )
    .map((line) => `  ${line}\n`)
    .join('');
}

function percent(share: number, digits = 1): string {
  return `${(100 * share).toFixed(digits)}%`;
}

function count(value: number): string {
  return value.toLocaleString('en-US');
}

/** Returns a function that draws the bar again. */
export function createProgress(total: number): (done: number) => string {
  const started = performance.now();
  return function show(done) {
    const seconds = Math.round((performance.now() - started) / 1000);
    const bar = '#'.repeat(Math.round((30 * done) / total)).padEnd(30, '.');
    return `\r[${bar}] ${done} of ${total} conversations, ${seconds} s${done === total ? '\n' : ''}`;
  };
}
