/**
 * Counts the edits whose text a fold took away. An edit must quote the text that it replaces, byte for byte. This bench plays recorded coding
 * sessions through the real engine, and for each recorded edit whose text the full context shows, it looks whether the sent context shows all of
 * its lines. If not, it lets the edit fail in a request of its own, and looks whether the lines that the engine adds to that failure are the text.
 * In a second row, the failure and its report stay in the conversation. It also counts the results that the agent fetched again after a fold had
 * taken their lines.
 * Run `npm run bench bench/quote-loss.ts [-- --long] [--half 1|2] [--limit N] [--window TOKENS] [--set JSON] [--where] [--each]`; it
 * reads ../shared/data, prints a table, with `--where` the tools whose results and arguments showed the lost text, and with `--each` a row for each lost
 * edit: where its text stood, which fold took it, and what named its file after that. It takes a few minutes on one core.
 *
 * Traps: (1) A line counts as shown if it stands anywhere in the context, even far from its neighbors, and lines of fewer than 8 characters are
 * not looked for. (2) The recording does not react: a model that saw less would have read the file again, or recalled it. (3) Nothing is recalled.
 * (4) All sessions are from one client, whose edits quote text in `old_string`. (5) The failed edit quotes the exact text; a model that remembers
 * less of it gives the engine less to search for.
 */
import { parseArgs } from 'node:util';
import type { FoldSettings } from '../src/library/default-engine.ts';
import { loadExactCounter } from '../src/tokens/load-counter.ts';
import type { Loss } from './quotes/losses.ts';
import { type QuotedEdit, quotedEdits } from './quotes/quoted-edits.ts';
import { codingSessions, longHorizon, readConversations } from './replay/data.ts';
import { round } from './tokens/arithmetic.ts';

const { values } = parseArgs({
  options: {
    each: { type: 'boolean' },
    half: { type: 'string' },
    limit: { type: 'string' },
    long: { type: 'boolean' },
    set: { type: 'string' },
    where: { type: 'boolean' },
    window: { type: 'string' },
  },
});

await main();

async function main(): Promise<void> {
  const records = readConversations();
  if (records === undefined) {
    console.log('bench/quote-loss.ts skipped: there are no recorded conversations in ../shared/data.');
    return;
  }
  const counter = await loadExactCounter('o200k_base');
  const sessions = values.long
    ? longHorizon(records)
    : records
        .filter(({ source }) => source === codingSessions)
        .filter((_, at) => values.half === undefined || at % 2 === Number(values.half) - 1)
        .slice(0, Number(values.limit ?? 'Infinity'));
  const fetchedAgain: string[] = [];
  const forPlayed = {
    ...(values.set !== undefined && { settings: JSON.parse(values.set) as FoldSettings }),
    window: Number(values.window ?? 200_000),
  };
  const options = {
    ...forPlayed,
    onFetchedAgain: (strategy: string) => fetchedAgain.push(strategy),
    tellsWhere: (values.where ?? false) || (values.each ?? false),
  };
  const edits: QuotedEdit[] = [];
  const played: QuotedEdit[] = [];
  for (const session of sessions) {
    edits.push(...(await quotedEdits(session, counter, options)));
    played.push(...(await quotedEdits(session, counter, { ...forPlayed, failuresStay: true })));
  }
  const lost = edits.filter(({ isLost }) => isLost);
  console.table([
    { sessions: sessions.length, 'an edit that fails': 'is forgotten', ...figuresOf(edits) },
    { sessions: sessions.length, 'an edit that fails': 'stays, with its report', ...figuresOf(played) },
  ]);
  const strategies = Map.groupBy(fetchedAgain, (strategy) => strategy);
  console.table([...strategies].map(([by, all]) => ({ 'fetched again after': by, results: all.length })));
  const losses = lost.flatMap(({ loss }) => loss ?? []);
  if (values.where) {
    const places = Map.groupBy(losses, placeOf);
    console.table(
      [...places]
        .map(([from, all]) => ({ 'the text was in': from, lost: all.length }))
        .toSorted((a, b) => b.lost - a.lost),
    );
  }
  if (values.each) console.table(losses);
}

/** Names the place of a lost text: a tool, its age in requests, and whether the user named the file. */
function placeOf({ from, age, byUser }: Loss): string {
  const ages = age < 5 ? '<5' : age < 15 ? '5-14' : age < 30 ? '15-29' : '30+';
  return `${from}, ${ages} requests old${byUser ? ', named by the user' : ''}`;
}

function figuresOf(edits: readonly QuotedEdit[]) {
  const shown = edits.filter(({ isShown }) => isShown);
  const lost = shown.filter(({ isLost }) => isLost);
  return {
    edits: edits.length,
    quotable: shown.length,
    lost: lost.length,
    repaired: lost.filter(({ isRepaired }) => isRepaired).length,
    '%': round((100 * lost.length) / shown.length, 1),
  };
}
