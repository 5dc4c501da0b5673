/** Tests the dashboard for Grafana, and that metrics contain no content, against `/metrics` of a gateway that has folded and recalled. */
import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { foldedWithRecalls, secrets } from './folded-with-recalls.ts';

type Target = { readonly expr: string };
type Panel = {
  readonly title: string;
  readonly type: string;
  readonly id: number;
  readonly targets?: readonly Target[];
};

const file = new URL('../../docs/grafana-dashboard.json', import.meta.url);
const { panels } = JSON.parse(await readFile(file, 'utf8')) as { panels: readonly Panel[] };
const queries = panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ title, expr })));

/** Returns the metrics of a text in the format of Prometheus, with their labels. */
function seriesIn(text: string): ReadonlyMap<string, ReadonlySet<string>> {
  const series = new Map<string, Set<string>>();
  for (const [, name, type] of text.matchAll(/^# TYPE (\S+) (\w+)/gm)) {
    const endings = type === 'histogram' ? ['', '_bucket', '_sum', '_count'] : [''];
    for (const ending of endings) series.set(`${name}${ending}`, new Set());
  }
  for (const [, name, labels = ''] of text.matchAll(/^(leporello_\w+)(?:\{([^\n]*)\})? /gm)) {
    const known = series.get(name!) ?? new Set<string>();
    for (const [, label] of labels.matchAll(/(\w+)="/g)) known.add(label!);
    series.set(name!, known);
  }
  return series;
}

it('the dashboard asks for metrics and labels that exist, and shows every metric', async () => {
  await using scene = await foldedWithRecalls();
  const series = seriesIn(await scene.metrics());
  const problems: string[] = [];
  for (const { title, expr } of queries) {
    for (const [, name, filter = ''] of expr.matchAll(/(leporello_\w+)\{([^}]*)\}/g)) {
      const labels = series.get(name!);
      if (!labels) problems.push(`${title}: ${name} is no metric`);
      for (const [, label] of filter.matchAll(/(\w+)(?:=~|!=|=)"/g))
        if (label !== 'job' && labels?.has(label!) === false && labels.size > 0)
          problems.push(`${title}: ${name} has no ${label}`);
    }
    const [name = ''] = /leporello_\w+/.exec(expr) ?? [];
    for (const [, by = ''] of expr.matchAll(/by \(([^)]*)\)/g))
      for (const label of by.split(', '))
        if (series.get(name)?.has(label) === false && series.get(name)!.size > 0)
          problems.push(`${title}: ${name} has no ${label}`);
  }
  expect(problems).toEqual([]);
  const shown = queries.map(({ expr }) => expr).join('\n');
  const metrics = [...(await scene.metrics()).matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name!);
  expect(metrics.filter((name) => !shown.includes(name))).toEqual([]);
});

it('the panels of the dashboard have ids of their own, a data source that is chosen, and at least one query', () => {
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  for (const panel of panels) {
    if (panel.type === 'row') continue;
    expect(panel).toMatchObject({ datasource: { type: 'prometheus', uid: '${datasource}' } });
    expect(panel.targets).not.toEqual([]);
  }
});

it('metrics count recalls, misses, cache tokens and calls of the store, and contain no content', async () => {
  await using scene = await foldedWithRecalls();
  const text = await scene.metrics();
  const valueOf = (name: string): number =>
    Number(
      text
        .split('\n')
        .find((line) => line.startsWith(`leporello_${name} `))
        ?.split(' ')[1],
    );
  expect(valueOf('recalls_total{found="yes"}')).toBe(1);
  expect(valueOf('recalls_total{found="no"}')).toBe(1);
  expect(valueOf('recalls_per_folded_request_sum')).toBe(2);
  expect(valueOf('recalls_per_folded_request_count')).toBe(1);
  expect(valueOf('count_error_ratio_count')).toBeGreaterThan(0);
  expect(valueOf('provider_tokens_total{model="gpt-4o",kind="output"}')).toBeGreaterThan(0);
  expect(text).toMatch(/leporello_store_seconds_count\{call="\w+",outcome="answered"\} [1-9]/);
  for (const secret of secrets) expect(text).not.toContain(secret);
});
