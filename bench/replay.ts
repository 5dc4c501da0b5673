/**
 * Replays recorded conversations through the real engine and through other policies for long contexts. It measures the cost of each policy
 * under three price tables, the size of its contexts, and whether the values that recorded calls used are still visible. Run
 * `node bench/replay.ts [--source NAME] [--limit N] [--engine NAME=SETTINGS]... [--engines-only] [--pauses] [--window TOKENS]
 * [--prefix TOKENS | --static-share SHARE] [--cache-ttl 5m|1h]`; it reads ../shared/data, prints a table for each source and, without options,
 * writes bench/results/replay.json and replay.html. It takes a few minutes on two cores.
 *
 * `--engine` adds an engine with other settings (JSON, as in docs/configuration.md), for example
 * `--engine 'no budget={"triggers":{"tokenBudget":false}}'`. With `--pauses`, the caches of all policies are cold where less than half of the
 * recorded prompt was cached (3 % of the requests of coding sessions). `--prefix` sets the tokens of tools and system text before the messages;
 * `--static-share 0.66` makes them that share of the mean request. With `--cache-ttl 1h`, each client marks its tools for a cache lifetime of
 * an hour. A written token then costs 2 input tokens, and engines read the lifetime from the mark.
 *
 * Traps: (1) The recording does not react. A model that saw less might have acted differently. Its needs are estimated from the values of its
 * calls (src/replay/needs.ts), which are not all of its needs, and not every occurrence is a need. (2) The model of this replay always knows
 * which original to recall, and recalls only what it will use; bench/blind-replay.ts has one that does not. Real recalls may be more frequent or larger. (3) Without `--pauses`, no cache
 * expires. (4) Tools and system text are filler, by default 15,000 tokens, because the recordings lack them. The smaller the filler, the more
 * expensive is a rewritten history. (5) Sessions of one client in one repository have nine tenths of all tokens.
 */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { engineChoice } from '../src/cli/replay/replay.ts';
import { figuresTable, htmlReport } from '../src/cli/replay/reports.ts';
import { pricesIn, priceTables, writtenForAnHour } from '../src/cli/replay/conversation-body.ts';
import { type Figures, figuresOf, type PriceTables, type SourceFigures } from '../src/replay/figures.ts';
import type { Played } from '../src/replay/replay.ts';
import { loadExactCounter } from '../src/tokens/load-counter.ts';
import { codingSessions, longHorizon, longHorizonId, readConversations } from './replay/data.ts';
import type { BenchOptions, CacheTtl } from './replay/policies.ts';
import { replayInProcesses } from './replay/processes.ts';
import { writeResult } from './results.ts';
import { prefixForShare } from './replay/static-share.ts';

const { values } = parseArgs({
  options: {
    source: { type: 'string' },
    limit: { type: 'string' },
    engine: { type: 'string', multiple: true },
    'engines-only': { type: 'boolean' },
    window: { type: 'string' },
    prefix: { type: 'string' },
    'static-share': { type: 'string' },
    'cache-ttl': { type: 'string' },
    pauses: { type: 'boolean' },
  },
});

await main();

async function main(): Promise<void> {
  const records = readConversations();
  if (records === undefined) {
    console.log('bench/replay.ts skipped: there are no recorded conversations in ../shared/data.');
    return;
  }
  const { source = '', limit = 'Infinity' } = values;
  const bySource = Map.groupBy([...longHorizon(records), ...records], (record) => record.source);
  const chosen = [...bySource]
    .filter(([name]) => name.startsWith(source))
    .flatMap(([, group]) => group.slice(0, Number(limit)));
  if (chosen.length === 0)
    throw new Error(
      `--source is ${source}, but must be the start of one of these names: ${[...bySource.keys()].join(', ')}.`,
    );
  const { 'static-share': share, 'cache-ttl': cacheTtl = '5m' } = values;
  if (cacheTtl !== '5m' && cacheTtl !== '1h')
    throw new Error(`--cache-ttl is ${cacheTtl}, but must be 5m or 1h.`);
  if (share !== undefined && !(Number(share) > 0 && Number(share) < 1))
    throw new Error(`--static-share is ${share}, but must be a number above 0 and below 1.`);
  const prefix =
    share === undefined
      ? Number(values.prefix ?? 15_000)
      : prefixForShare(chosen, Number(share), await loadExactCounter('o200k_base'));
  const options: BenchOptions = {
    engines: [
      { name: 'Leporello', settings: {} },
      { name: 'Leporello, no cache', settings: { usdPerMillionTokens: pricesIn('uncached') } },
      ...(values.engine ?? []).map(engineChoice),
    ],
    set: values['engines-only'] ? 'engines' : 'all',
    window: Number(values.window ?? 200_000),
    prefix,
    pauses: values.pauses ?? false,
    cacheTtl,
  };
  const played = await replayInProcesses(chosen, options);
  const figures = figuresOf([...played, ...allSources(played)], pricesAt(cacheTtl));
  if (share !== undefined || cacheTtl !== '5m')
    console.log(`${prefix} tokens before the messages, cached for ${cacheTtl}.\n`);
  console.log(figuresTable(figures));
  if (Object.keys(values).length === 0) writeResults(figures, played, options);
}

function pricesAt(cacheTtl: CacheTtl): PriceTables {
  if (cacheTtl === '5m') return priceTables;
  const { anthropic, ...others } = priceTables;
  return { 'anthropic 1h': { ...anthropic, write: writtenForAnHour }, ...others };
}

/** Returns the recorded conversations of all sources as one more source, without the joined conversation. */
function allSources(played: readonly Played[]): readonly Played[] {
  const recorded = played.filter(({ id }) => id !== longHorizonId);
  const isSingle = new Set(recorded.map(({ source }) => source)).size < 2;
  return isSingle ? [] : recorded.map((one) => ({ ...one, source: 'all sources' }));
}

function writeResults(
  figures: readonly SourceFigures[],
  played: readonly Played[],
  { window, prefix }: BenchOptions,
): void {
  writeResult('replay', { window, prefix, prices: priceTables, sources: figures.map(withoutIds) });
  const subtitle = `${played.length - 1} recorded conversations, and eight of ${codingSessions} joined end to end (${longHorizonId}); window ${window}, ${prefix} tokens before the messages.`;
  const session = played.find(({ id }) => id === longHorizonId);
  const page = new URL('results/replay.html', import.meta.url);
  writeFileSync(page, htmlReport({ subtitle, figures, session, window }));
}

/** Replaces each worst conversation with its cost. */
function withoutIds({ policies, ...source }: SourceFigures) {
  return { ...source, policies: policies.map((figures) => ({ ...figures, worst: costsOf(figures.worst) })) };
}

function costsOf(worst: Figures['worst']) {
  return Object.fromEntries(Object.entries(worst).map(([table, { cost }]) => [table, cost]));
}
