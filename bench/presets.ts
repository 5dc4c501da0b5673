/**
 * Compares the presets: what each keeps of planted sentences after one fold, and on recorded coding sessions its cost relative to the full context,
 * the share of values of later calls that the sent context shows, and recalls. Run `npm run bench bench/presets.ts`; it reads ../shared/data, prints a
 * table and writes bench/results/presets.json. `-- --sessions N` takes only N sessions.
 *
 * Traps: (1) The replay's traps (bench/replay.ts). (2) Only sessions of 300,000 bytes and more are played, because presets hardly differ in those that are
 * never folded. (3) We wrote the templates of the planted sentences (bench/planted.ts).
 */
import { parseArgs } from 'node:util';
import { priceTables } from '../src/cli/replay/conversation-body.ts';
import { figuresOf } from '../src/replay/figures.ts';
import { loadExactCounter } from '../src/tokens/load-counter.ts';
import { keptFacts, presetNames, presetOptions, samePresets } from './presets/measure.ts';
import { largeSessions, readConversations } from './replay/data.ts';
import { replayInProcesses } from './replay/processes.ts';
import { writeResult } from './results.ts';
import { round } from './tokens/arithmetic.ts';

const { values } = parseArgs({ options: { sessions: { type: 'string', default: '12' } } });

await main();

async function main(): Promise<void> {
  const records = readConversations();
  if (records === undefined) {
    console.log('bench/presets.ts skipped: there are no recorded conversations in ../shared/data.');
    return;
  }
  const sessions = largeSessions(records).slice(0, Number(values.sessions));
  const played = await replayInProcesses(sessions, presetOptions);
  const [source] = figuresOf(played, priceTables);
  const counter = await loadExactCounter('o200k_base');
  const conversations = 40;
  const rows = [];
  for (const preset of presetNames) {
    const { cost, visible, recallsPer100, folds } = source!.policies.find(({ policy }) => policy === preset)!;
    const facts = await keptFacts(preset, conversations, counter);
    rows.push({
      preset,
      cost: round(cost['anthropic']!, 3),
      'visible %': round(100 * visible, 1),
      recalls: round(recallsPer100, 1),
      folds,
      'findings %': round(100 * facts.findings, 1),
      'demands %': round(100 * facts.demands, 1),
      'outcomes %': round(100 * facts.outcomes, 1),
    });
  }
  console.table(rows);
  const same = samePresets(played);
  console.log(
    same.length === 0 ? 'No two presets give the same folds.' : `The same folds: ${same.join('; ')}.`,
  );
  writeResult('presets', { sessions: sessions.length, conversations, rows });
}
