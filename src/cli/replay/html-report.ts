/** The figures of a replay as one HTML file with charts, which needs nothing from anywhere. Text alone. */
import type { Figures, SourceFigures } from '../../replay/figures.ts';
import type { Played } from '../../replay/replay.ts';
import { colourOf, escaped, lineChart, pointChart } from './chart.ts';
import { figuresRows, titleOf } from './figures-table.ts';

export type Report = {
  /** What was replayed, with which window and prefix. */
  readonly subtitle: string;
  readonly figures: readonly SourceFigures[];
  /** A session whose contexts are drawn. */
  readonly session: Played | undefined;
  /** Tokens. */
  readonly window: number;
};

export function htmlReport({ subtitle, figures, session, window }: Report): string {
  const body = [
    '<h1>Replay</h1>',
    `<p>${escaped(subtitle)}</p>`,
    `<p>Costs are relative to the full context, recalls (or tools run again) included. A value is one that a recorded call used and that stood earlier in its conversation.</p>`,
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
  return `<span class="mark" style="background:${colourOf(at)}">${at + 1}</span> ${escaped(name)}`;
}
