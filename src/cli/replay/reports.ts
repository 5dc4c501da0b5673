/** Formats the figures of a replay: as one self-contained HTML file with SVG charts, and as text with one table for each source. */
import { type Figures, type SourceFigures, staticShares } from '../../replay/figures.ts';
import type { Played } from '../../replay/replay.ts';

/** The contents of a report. */
export type Report = {
  /** A sentence about the conversations and the window. */
  readonly subtitle: string;
  readonly figures: readonly SourceFigures[];
  /** The conversation whose context is drawn over its requests. */
  readonly session: Played | undefined;
  /** The window in tokens. */
  readonly window: number;
};

export function htmlReport({ subtitle, figures, session, window }: Report): string {
  const body = [
    '<h1>Replay</h1>',
    `<p>${escaped(subtitle)}</p>`,
    `<p>Costs are relative to the full context, and include recalls (or tools that run again). A value is a part of a recorded call that occurred earlier in the conversation. <em>even at 25 %</em>: the number of extra requests for each 1,000 folded tokens from which nothing is saved, if tools and system text are 25 % of the mean request; it holds for the same trajectory only.</p>`,
    session ? sessionSection(session, window) : '',
    ...figures.map(sourceSection),
  ].join('\n');
  return `<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<meta name="viewport" content="width=device-width">\n<title>Leporello replay</title>\n<style>${style}</style>\n</head>\n<body>\n${body}\n</body>\n</html>\n`;
}

const style = `
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 76rem; padding: 0 1rem; }
svg { font: 12px system-ui, sans-serif; fill: currentColor; max-width: 46rem; width: 100%; }
table { border-collapse: collapse; font-size: 14px; font-variant-numeric: tabular-nums; margin: 1rem 0; }
td, th { border-bottom: 1px solid color-mix(in srgb, currentColor 20%, transparent); padding: 0.25rem 0.5rem; text-align: right; }
td:first-child, th:first-child { padding-left: 0; text-align: left; white-space: nowrap; }
th { font-weight: 600; vertical-align: bottom; }
.scroll { overflow-x: auto; }
.mark { border-radius: 50%; color: #fff; display: inline-block; font-size: 12px; font-weight: 600; line-height: 1.5em; text-align: center; width: 1.5em; }
`;

const tokens = { title: 'tokens of a request', show: (value: number) => value.toLocaleString('en-US') };

function sessionSection({ id, plays }: Played, window: number): string {
  const lines = plays.map(({ policy, contexts }) => ({ name: policy, values: contexts }));
  const requests = { title: 'requests', show: String };
  const limit = { name: `window: ${tokens.show(window)}`, value: window };
  const largest = Math.max(...lines.flatMap(({ values }) => values));
  const chart = lineChart(lines, { x: requests, y: tokens }, largest > window / 2 ? limit : undefined);
  return `<h2>Context over a session: ${escaped(id)}</h2>\n${chart}\n<p>${lines.map(({ name }, at) => legend(name, at)).join(' &ensp; ')}</p>`;
}

function sourceSection(source: SourceFigures): string {
  const { policies } = source;
  const table = Object.keys(policies[0]?.cost ?? {})[0] ?? '';
  const points = policies.map((figures: Figures) => ({
    name: figures.policy,
    x: figures.cost[table] ?? 0,
    y: 100 * figures.visible,
  }));
  const chart = pointChart(points, {
    x: { title: `cost relative to full context (${table})`, show: (value) => value.toFixed(2) },
    y: { title: 'values visible', show: (value) => `${Number(value.toFixed(1))} %` },
  });
  const [heads, ...rows] = figuresRows(source);
  const head = `<tr>${(heads ?? []).map((cell) => `<th>${escaped(cell)}</th>`).join('')}</tr>`;
  const lines = rows.map(
    ([name = '', ...cells], at) =>
      `<tr><td>${legend(name, at)}</td>${cells.map((cell) => `<td>${escaped(cell)}</td>`).join('')}</tr>`,
  );
  return `<h2>${escaped(source.source)}</h2>\n<p>${titleOf(source)}</p>\n${chart}\n<div class="scroll"><table>\n${head}\n${lines.join('\n')}\n</table></div>`;
}

function legend(name: string, at: number): string {
  return `<span class="mark" style="background:${colorOf(at)}">${at + 1}</span> ${escaped(name)}`;
}

type ChartPoint = { readonly name: string; readonly x: number; readonly y: number };
type ChartLine = { readonly name: string; readonly values: readonly number[] };

type Axis = { readonly title: string; readonly show: (value: number) => string };

const width = 720;
const height = 360;
const left = 76;
const right = 16;
const top = 14;
const bottom = 46;

/** Colors that people with color blindness can distinguish. Numbers and dashes distinguish the series too. */
const colors = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#7f5539', '#6a4c93'];

function colorOf(index: number): string {
  return colors[index % colors.length]!;
}

/** Draws points, each with its number in the list, which the legend explains. */
export function pointChart(
  points: readonly ChartPoint[],
  axes: { readonly x: Axis; readonly y: Axis },
): string {
  const x = scale(
    points.map((point) => point.x),
    left,
    width - right,
  );
  const y = scale(
    points.map((point) => point.y),
    height - bottom,
    top,
  );
  const marks = points.map(({ name, x: across, y: up }, index) => {
    const [cx, cy] = [x.at(across), y.at(up)];
    const title = `${name}: ${axes.x.title} ${axes.x.show(across)}, ${axes.y.title} ${axes.y.show(up)}`;
    return (
      `<g><title>${escaped(title)}</title><circle cx="${cx}" cy="${cy}" r="10" fill="${colorOf(index)}" fill-opacity="0.85"/>` +
      `<text x="${cx}" y="${cy + 4}" text-anchor="middle" fill="#fff" font-weight="600">${index + 1}</text></g>`
    );
  });
  return svg(`${axis(x, y, axes)}${marks.join('')}`, `${axes.y.title} against ${axes.x.title}`);
}

/** Draws one line for each series, and `limit` as a horizontal line. */
export function lineChart(
  lines: readonly ChartLine[],
  axes: { readonly x: Axis; readonly y: Axis },
  limit?: { readonly name: string; readonly value: number },
): string {
  const longest = Math.max(2, ...lines.map(({ values }) => values.length));
  const x = scale([0, longest - 1], left, width - right, 'tight');
  const most = Math.max(...lines.flatMap(({ values }) => values), limit?.value ?? 0);
  const y = scale([0, most], height - bottom, top);
  const paths = lines.map(({ name, values }, index) => {
    const places = values.map((value, at) => `${x.at(at)},${y.at(value)}`).join(' ');
    const dash = index < colors.length ? '' : ' stroke-dasharray="4 3"';
    return `<polyline points="${places}" fill="none" stroke="${colorOf(index)}" stroke-width="1.6"${dash}><title>${escaped(name)}</title></polyline>`;
  });
  return svg(`${axis(x, y, axes)}${limit ? limitLine(limit, y) : ''}${paths.join('')}`, axes.y.title);
}

function limitLine({ name, value }: { readonly name: string; readonly value: number }, y: Scale): string {
  const at = y.at(value);
  return (
    `<line x1="${left}" x2="${width - right}" y1="${at}" y2="${at}" stroke="currentColor" stroke-dasharray="6 4"/>` +
    `<text x="${width - right}" y="${at - 5}" text-anchor="end">${escaped(name)}</text>`
  );
}

type Scale = { at(value: number): number; readonly ticks: readonly number[] };

/** Maps values to positions from `start` to `end`. `round` extends the range to round numbers; `tight` does not. */
function scale(
  values: readonly number[],
  start: number,
  end: number,
  fit: 'round' | 'tight' = 'round',
): Scale {
  const min = Math.min(...values);
  const max = Math.max(...values);
  const step = stepFor(max - min || Math.abs(max) || 1);
  const from = fit === 'tight' ? min : Math.floor(min / step) * step;
  const to = fit === 'tight' ? max : Math.max(from + step, Math.ceil(max / step) * step);
  const ticks: number[] = [];
  for (let tick = Math.ceil(from / step) * step; tick <= to + step / 1000; tick += step) ticks.push(tick);
  return {
    at: (value) => Math.round((start + ((value - from) / (to - from)) * (end - start)) * 10) / 10,
    ticks,
  };
}

/** Returns a round number that divides the range into about five steps. */
function stepFor(range: number): number {
  const rough = range / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  return ([1, 2, 5].find((factor) => factor * power >= rough) ?? 10) * power;
}

function axis(x: Scale, y: Scale, axes: { readonly x: Axis; readonly y: Axis }): string {
  const foot = height - bottom;
  const across = x.ticks.map(
    (tick) =>
      `<text x="${x.at(tick)}" y="${foot + 16}" text-anchor="middle">${escaped(axes.x.show(tick))}</text>`,
  );
  const up = y.ticks.map(
    (tick) =>
      `<line x1="${left}" x2="${width - right}" y1="${y.at(tick)}" y2="${y.at(tick)}" stroke="currentColor" stroke-opacity="0.15"/>` +
      `<text x="${left - 6}" y="${y.at(tick) + 4}" text-anchor="end">${escaped(axes.y.show(tick))}</text>`,
  );
  const titles =
    `<text x="${(left + width - right) / 2}" y="${height - 8}" text-anchor="middle">${escaped(axes.x.title)}</text>` +
    `<text x="14" y="${(top + foot) / 2}" text-anchor="middle" transform="rotate(-90 14 ${(top + foot) / 2})">${escaped(axes.y.title)}</text>`;
  return `${up.join('')}${across.join('')}${titles}`;
}

function svg(content: string, label: string): string {
  return `<svg viewBox="0 0 ${width} ${height}" role="img" aria-label="${escaped(label)}">${content}</svg>`;
}

/** Escapes text for HTML and SVG, because ids and names can contain anything. */
function escaped(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}

// Tables as text, and the progress as a bar

/** Returns all tables. */
export function figuresTable(sources: readonly SourceFigures[]): string {
  return sources.map(tableOf).join('\n');
}

function tableOf(figures: SourceFigures): string {
  return `${figures.source}: ${titleOf(figures)}\n${layOut(figuresRows(figures))}`;
}

/** Returns a line that says how much was replayed. */
function titleOf({ conversations, requests, policies }: SourceFigures): string {
  const needs = policies[0]?.needs ?? 0;
  return `${count(conversations)} conversation${conversations === 1 ? '' : 's'}, ${count(requests)} requests, ${count(needs)} values used again`;
}

/** Returns the head of the table, and a row for each policy. */
function figuresRows({ policies }: SourceFigures): readonly (readonly string[])[] {
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
    'folded',
    ...staticShares.map((share) => `even at ${share * 100} %`),
    'lost',
    'stable',
    'over window',
  ];
  return [heads, ...policies.map((figures) => rowOf(figures, tables, first))];
}

function rowOf(figures: Figures, tables: readonly string[], first: string): readonly string[] {
  const { careless, worst, breakEven } = figures;
  return [
    figures.policy,
    ...tables.map((table) => figures.cost[table]!.toFixed(3)),
    careless ? careless[first]!.toFixed(3) : '-',
    worst[first]!.cost.toFixed(2),
    count(figures.meanTokens),
    count(figures.peakTokens),
    percent(figures.visible),
    figures.recallsPer100.toFixed(1),
    breakEven ? count(breakEven.tokensFolded) : '-',
    ...staticShares.map((share) => breakEven?.atStaticShare[share]?.[first]?.toFixed(2) ?? '-'),
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
