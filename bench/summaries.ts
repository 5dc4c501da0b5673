/**
 * Extractive summaries, measured on recorded coding sessions. Run `npm run bench bench/summaries.ts`; it reads ../shared/data, prints three
 * tables and writes bench/results/summaries.json. Some minutes.
 *
 * 1. Future values: at each compaction that the recorded client made (a model wrote its summary), an extractive summary of the same number
 *    of tokens (o200k) is made of the same messages. Which of the values that the next 40 calls used does each show?
 * 2. Demands: 40 of a user's, planted in eight sessions joined end to end, through the engine with summaries. Which still stand?
 * 3. Growth: time against the number of steps.
 *
 * Traps: (1) A value is what src/replay/needs.ts takes for one: names, paths, numbers, lines; understanding is none. A model's summary tells
 * why and what next better than any extract, and nothing here measures that. (2) The client read its files anew after compacting, so most values
 * were seen again before they were used: "fresh" counts those that were not. (3) The recorded session went on from the recorded summary: a
 * model that had another might have called for other things, so the recorded summary has the advantage. (4) One repository, one client, ten
 * people. What lines weigh beside names was chosen on these very sessions. (5) That memory brings a value supposes a model that asks for it.
 * (6) The planted demands are ours, and words like never and always are in most of them.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import type { FoldSettings } from '../src/library/default-engine.ts';
import { summarySteps } from '../src/strategies/lib/summary-steps.ts';
import { loadExactCounter } from '../src/tokens/load-counter.ts';
import { longHorizon, readConversations } from './replay/data.ts';
import { plantAndFold } from './summaries/constraints.ts';
import { compactionsIn, probe, type Probed, type Used } from './summaries/future-values.ts';
import { growth } from './summaries/growth.ts';
import { round, sum } from './tokens/arithmetic.ts';
import { readRecorded } from './tokens/recorded.ts';

const resultFile = new URL('./results/summaries.json', import.meta.url);

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
  console.log(`\nvalues used by the next 40 calls, ${probed.length} recorded compactions`);
  console.table(futureValues);
  const tokens = {
    recorded: sum(probed.map(({ recordedTokens }) => recordedTokens)),
    extractive: sum(probed.map(({ extractTokens }) => extractTokens)),
  };
  console.log(`tokens of the summaries: recorded ${tokens.recorded}, extractive ${tokens.extractive}`);
  const [long] = longHorizon(readConversations() ?? []);
  const plant = async (folded: string, settings: FoldSettings) =>
    long && { folded, ...(await plantAndFold(long, { count: 40, settings, counter })) };
  const demands = [
    await plant('with summaries', { summaries: { kind: 'extractive' } }),
    await plant('with stubs', {}),
  ];
  console.log('\ndemands planted in a long session');
  console.table(demands, ['folded', 'planted', 'kept', 'came', 'sent', 'summarised']);
  const steps = compactions.flatMap(({ recording: { conversation }, at }) =>
    summarySteps(conversation, conversation.messages.slice(0, at), undefined),
  );
  const grown = growth(steps, [1_000, 10_000, 100_000], (text) => counter.count(text));
  console.log('\ntime against steps');
  console.table(grown);
  mkdirSync(new URL('.', resultFile), { recursive: true });
  const found = { node: process.version, futureValues, tokens, demands, grown };
  writeFileSync(resultFile, `${JSON.stringify(found, null, 2)}\n`);
}

function rowsOf(probed: readonly Probed[]) {
  const all = probed.flatMap(({ used }) => used);
  const kinds: Readonly<Record<string, (used: Used) => boolean>> = {
    'fresh: not shown again before its use': ({ isFresh }) => isFresh,
    'fresh, names': ({ isFresh, kind }) => isFresh && kind === 'word',
    'fresh, lines': ({ isFresh, kind }) => isFresh && kind === 'line',
    'fresh, shown by a tool before': ({ isFresh, isFromResult }) => isFresh && isFromResult,
    'first use': ({ isFirst }) => isFirst,
    'first use, shown by a tool before': ({ isFirst, isFromResult }) => isFirst && isFromResult,
    'every use': () => true,
  };
  return Object.entries(kinds).map(([values, isMeant]) => {
    const used = all.filter(isMeant);
    const share = (has: (one: Used) => boolean) => (100 * used.filter(has).length) / used.length;
    const recorded = share(({ inRecorded }) => inRecorded);
    const extractive = share(({ inExtract }) => inExtract);
    const asked = used.filter(({ recalled }) => recalled !== undefined);
    const brought = asked.filter(({ recalled }) => recalled === true).length;
    return {
      values,
      used: used.length,
      'recorded %': round(recorded, 1),
      'extractive %': round(extractive, 1),
      times: round(extractive / recorded, 2),
      'asked of memory': asked.length,
      brought,
    };
  });
}
