/**
 * Computes from how many extra requests for each 1,000 folded tokens nothing is saved, on recorded coding sessions and on eight of them joined. Run
 * `npm run bench bench/break-even.ts`; it reads ../shared/data, prints a table and writes bench/results/break-even.json. `-- --sessions N` takes only N
 * sessions.
 *
 * Traps: (1) The replay's traps (bench/replay.ts). (2) The figure holds for the same trajectory only: a recording cannot say how many extra requests there
 * are. (3) An extra request is taken to cost as much as the mean one. (4) The static shares are computed, not played: the engine decides with 15,000 tokens
 * of tools and system text.
 */
import { parseArgs } from 'node:util';
import { pricesIn, priceTables } from '../src/cli/replay/conversation-body.ts';
import { figuresOf } from '../src/replay/figures.ts';
import { codingSessions, longHorizon, readConversations } from './replay/data.ts';
import { replayInProcesses } from './replay/processes.ts';
import { writeResult } from './results.ts';
import { round } from './tokens/arithmetic.ts';

const { values } = parseArgs({ options: { sessions: { type: 'string', default: '60' } } });

await main();

async function main(): Promise<void> {
  const records = readConversations();
  if (records === undefined) {
    console.log('bench/break-even.ts skipped: there are no recorded conversations in ../shared/data.');
    return;
  }
  const sessions = records
    .filter(({ source }) => source === codingSessions)
    .slice(0, Number(values.sessions));
  const played = await replayInProcesses([...longHorizon(records), ...sessions], {
    engines: [{ name: 'Leporello', settings: { usdPerMillionTokens: pricesIn('anthropic') } }],
    set: 'engines',
    window: 200_000,
    prefix: 15_000,
    pauses: false,
    cacheTtl: '5m',
  });
  const { anthropic } = priceTables;
  const rows = figuresOf(played, { anthropic }).map(({ source, conversations, requests, policies }) => {
    const { cost, breakEven } = policies.find(({ policy }) => policy === 'Leporello')!;
    const at = (share: number) => round(breakEven?.atStaticShare[share]?.['anthropic'] ?? 0, 2);
    return {
      source,
      conversations,
      requests,
      cost: round(cost['anthropic']!, 3),
      'tokens folded': breakEven?.tokensFolded ?? 0,
      recalls: breakEven?.recalls ?? 0,
      'at 25 %': at(0.25),
      'at 66 %': at(0.66),
    };
  });
  console.table(rows);
  writeResult('break-even', { rows });
}
