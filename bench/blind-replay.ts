/**
 * Replays recorded coding sessions, and eight of them joined, with two models: one that knows each value that it lacks and the original that holds it, as
 * in bench/replay.ts, and one that knows neither (bench/replay/blind.ts). The second asks first with its own words and the rest of its call, then for the
 * most similar stub, then runs the tool again. It sees a value only with the call or line that it belongs to, not in a list.
 * Run `node bench/blind-replay.ts [--limit N]`; it reads ../shared/data, prints the table and, without options, writes bench/results/blind-replay.json.
 *
 * Traps: those of bench/replay.ts, and (1) the blind model lacks all values of a call at once, so a query for an edit has none of the lines to be
 * replaced; a real model remembers some of them. (2) It never asks a second time in other words. (3) A result that is returned by the tool again is the
 * recorded one; a real file may have changed.
 */
import { parseArgs } from 'node:util';
import { priceTables } from '../src/cli/replay/conversation-body.ts';
import { type Figures, figuresOf } from '../src/replay/figures.ts';
import { codingSessions, longHorizon, readConversations } from './replay/data.ts';
import { replayBlind } from './replay/processes.ts';
import { writeResult } from './results.ts';
import { round } from './tokens/arithmetic.ts';

const { values } = parseArgs({ options: { limit: { type: 'string' } } });

await main();

async function main(): Promise<void> {
  const records = readConversations();
  if (records === undefined) {
    console.log('bench/blind-replay.ts skipped: there are no recorded conversations in ../shared/data.');
    return;
  }
  const sessions = records.filter(({ source }) => source === codingSessions);
  const chosen = [...longHorizon(records), ...sessions.slice(0, Number(values.limit ?? 'Infinity'))];
  const played = await replayBlind(chosen);
  const rows = figuresOf(played, priceTables).flatMap(({ source, conversations, policies }) =>
    policies.flatMap((figures) =>
      figures.policy.startsWith('Leporello') ? [rowOf(source, conversations, figures)] : [],
    ),
  );
  console.table(rows);
  writeResult('blind-replay', { rows });
}

function rowOf(source: string, conversations: number, figures: Figures) {
  return {
    source,
    conversations,
    isBlind: figures.policy !== 'Leporello',
    cost: figures.cost['anthropic'] ?? Number.NaN,
    'calls per 100 replies': round(figures.recallsPer100, 1),
    'visible %': round(100 * figures.visible, 1),
    'run again %': round(100 * figures.lost, 1),
  };
}
