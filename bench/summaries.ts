/**
 * Measures extractive summaries on recorded coding sessions. Run `npm run bench bench/summaries.ts`; it reads ../shared/data, prints three
 * tables and writes bench/results/summaries.json. It takes a few minutes.
 *
 * 1. Future values: at each compaction of the recorded client (a model wrote its summary), it extracts a summary of the same messages with the
 *    same number of tokens (o200k). The table shows how many of the values that the next 40 calls used are in each summary.
 * 2. Demands: it plants 40 demands of a user in eight joined sessions, replays them through the engine with summaries, and counts the demands
 *    that are still in the last request.
 * 3. Growth: it measures time by number of steps.
 *
 * Traps: (1) Values are the names, paths, numbers and lines that src/replay/needs.ts finds. A model's summary explains reasons and next steps
 * better than an extract, and nothing here measures that. (2) The client read its files again after a compaction, so most values were shown
 * again before they were used; "fresh" counts the others. (3) The recorded session continued from the recorded summary. With another summary
 * the model might have made other calls, so the recorded summary has an advantage. (4) The sessions are from one repository, one client and
 * ten people. (5) A recall finds a value only if the model asks for it. (6) An extract tells the folder of several files once, and a reader joins
 * it with their names; "in one piece" counts only values that the text has as they are. (7) We wrote the planted demands ourselves, and most of them contain words like "never"
 * and "always".
 */
import type { FoldSettings } from '../src/library/default-engine.ts';
import { summarySteps } from '../src/strategies/lib/summaries.ts';
import { loadExactCounter } from '../src/tokens/load-counter.ts';
import { longHorizon, readConversations } from './replay/data.ts';
import { writeResult } from './results.ts';
import { plantAndFold } from './summaries/constraints.ts';
import { compactionsIn, probe, type Probed, type Used } from './summaries/future-values.ts';
import { growth } from './summaries/growth.ts';
import { round, sum } from './tokens/arithmetic.ts';
import { readRecorded } from './tokens/recorded.ts';

await main();

async function main(): Promise<void> {
  const records = readRecorded();
  if (records === undefined) {
    console.log('bench/summaries.ts skipped: there are no recorded conversations in ../shared/data.');
    return;
  }
  const counter = await loadExactCounter('o200k_base');
  const compactions = compactionsIn(records, counter);
  const probed: Probed[] = [];
  for (const compaction of compactions) probed.push(await probe(compaction, counter));
  const futureValues = rowsOf(probed);
  console.log(`\nValues used by the next 40 calls, ${probed.length} recorded compactions`);
  console.table(futureValues);
  const tokens = {
    recorded: sum(probed.map(({ recordedTokens }) => recordedTokens)),
    extractive: sum(probed.map(({ extractTokens }) => extractTokens)),
  };
  console.log(`Tokens of the summaries: recorded ${tokens.recorded}, extractive ${tokens.extractive}`);
  const [long] = longHorizon(readConversations() ?? []);
  const plant = async (folded: string, settings: FoldSettings) =>
    long && { folded, ...(await plantAndFold(long, { count: 40, settings, counter })) };
  const demands = [
    await plant('with summaries', { summaries: { kind: 'extractive' } }),
    await plant('with stubs', {}),
  ];
  console.log('\nDemands planted in a long session');
  console.table(demands, ['folded', 'planted', 'kept', 'tokensBefore', 'tokensAfter', 'summarized']);
  const steps = compactions.flatMap(({ recording: { conversation }, at }) =>
    summarySteps(conversation, conversation.messages.slice(0, at), undefined),
  );
  const growthRows = growth(steps, [1_000, 10_000, 100_000], (text) => counter.count(text));
  console.log('\nTime by number of steps');
  console.table(growthRows);
  writeResult('summaries', { compactions: probed.length, futureValues, tokens, demands, growth: growthRows });
}

function rowsOf(probed: readonly Probed[]) {
  const all = probed.flatMap(({ used }) => used);
  const kinds: Readonly<Record<string, (used: Used) => boolean>> = {
    'fresh (not shown again before the use)': ({ isFresh }) => isFresh,
    'fresh, names': ({ isFresh, kind }) => isFresh && kind === 'word',
    'fresh, lines': ({ isFresh, kind }) => isFresh && kind === 'line',
    'fresh, shown by a tool before': ({ isFresh, isFromResult }) => isFresh && isFromResult,
    'first use': ({ isFirst }) => isFirst,
    'first use, shown by a tool before': ({ isFirst, isFromResult }) => isFirst && isFromResult,
    'every use': () => true,
  };
  return Object.entries(kinds).map(([values, isCounted]) => {
    const used = all.filter(isCounted);
    const share = (has: (one: Used) => boolean) => (100 * used.filter(has).length) / used.length;
    const recorded = share(({ inRecorded }) => inRecorded);
    const extractive = share(({ inSummary }) => inSummary);
    const recalls = used.filter(({ recalled }) => recalled !== undefined);
    const found = recalls.filter(({ recalled }) => recalled === true).length;
    return {
      values,
      used: used.length,
      'recorded %': round(recorded, 1),
      'extractive %': round(extractive, 1),
      'in one piece %': round(
        share(({ isWhole }) => isWhole),
        1,
      ),
      'extractive / recorded': round(extractive / recorded, 2),
      recalls: recalls.length,
      'found by recall': found,
    };
  });
}
