/**
 * Lists what went against Leporello on recorded conversations: those in which folding cost more than the full context, recalls that missed, edits that
 * could not quote their text, and the worst conversation of each source. Run `npm run bench bench/against.ts`; it reads ../shared/data and writes
 * bench/results/against.json, from which docs/against.md is made. `-- --limit N` plays the first N conversations of each source, and `-- --only ID` the one
 * with this id; both print their tables only.
 *
 * An id is the beginning of the SHA-256 hash of the recording's name, so that the result names no recording. The result holds counts and sums only.
 *
 * Traps: those of bench/replay.ts, bench/blind-replay.ts and bench/quote-loss.ts. (1) The trajectory is the recorded one: extra requests of an agent that sees
 * less are not counted, so the costs are too low for us. (2) Conversations are in the order of the highest of four costs: at the prices of Anthropic, of OpenAI, and of a provider without a cache, and at the first if the model asks blind.
 */
import { parseArgs } from 'node:util';
import { createHash } from 'node:crypto';
import { priceTables } from '../src/cli/replay/conversation-body.ts';
import type { Play, Played } from '../src/replay/replay.ts';
import { costOf } from '../src/replay/tally.ts';
import { loadExactCounter } from '../src/tokens/load-counter.ts';
import { type BenchRecord, codingSessions, readConversations } from './replay/data.ts';
import { replayBlind } from './replay/processes.ts';
import { quotedEdits } from './quotes/quoted-edits.ts';
import { writeResult } from './results.ts';
import { round } from './tokens/arithmetic.ts';

const { values } = parseArgs({ options: { limit: { type: 'string' }, only: { type: 'string' } } });

/** Rows of each list at most. */
const listed = 10;

await main();

async function main(): Promise<void> {
  const records = readConversations();
  if (records === undefined) {
    console.log('bench/against.ts skipped: there are no recorded conversations in ../shared/data.');
    return;
  }
  const chosen = chosenOf(records);
  const played = await replayBlind(chosen);
  const conversations = played.map(conversationOf);
  const edits = await editsOf(chosen);
  const result = {
    sources: [...Map.groupBy(conversations, ({ source }) => source)].map(([source, all]) =>
      sourceOf(source, all),
    ),
    dearer: conversations
      .filter((one) => one.folds > 0 && worstCost(one) > 1)
      .toSorted((a, b) => worstCost(b) - worstCost(a))
      .slice(0, listed),
    missed: conversations
      .filter(({ lost, 'run again': again }) => lost + again > 0)
      .toSorted((a, b) => b.lost - a.lost || b['run again'] - a['run again'])
      .slice(0, listed),
    worst: [...Map.groupBy(conversations, ({ source }) => source).values()].map((all) =>
      all.reduce((worst, one) => (worstCost(one) > worstCost(worst) ? one : worst)),
    ),
    edits: edits.totals,
    unquotable: edits.worst,
  };
  for (const rows of Object.values(result)) console.table(rows);
  writeResult('against', result);
}

function chosenOf(records: readonly BenchRecord[]): readonly BenchRecord[] {
  if (values.only !== undefined) return records.filter(({ id }) => anonymous(id) === values.only);
  const limit = Number(values.limit ?? 'Infinity');
  return [...Map.groupBy(records, ({ source }) => source).values()].flatMap((all) => all.slice(0, limit));
}

function anonymous(id: string): string {
  return createHash('sha256').update(id).digest('hex').slice(0, 8);
}

/** Returns the figures of one conversation. Costs are relative to the full context. */
function conversationOf({ id, source, plays: [full, own, blind] }: Played) {
  const cost = (play: Play, prices: keyof typeof priceTables): number =>
    round(
      costOf(play.tally.tokens, priceTables[prices]) / costOf(full!.tally.tokens, priceTables[prices]),
      3,
    );
  return {
    id: anonymous(id),
    source,
    requests: full!.tally.steps,
    folds: own!.tally.folds,
    recalls: own!.tally.recalls,
    cost: cost(own!, 'anthropic'),
    'cost, openai': cost(own!, 'openai'),
    'cost, no cache': cost(own!, 'uncached'),
    values: own!.tally.needs,
    hidden: own!.tally.missing,
    lost: own!.tally.lost,
    'blind cost': cost(blind!, 'anthropic'),
    'blind calls': blind!.tally.recalls,
    'run again': blind!.tally.lost,
  };
}

type Conversation = ReturnType<typeof conversationOf>;

/** Returns the highest cost of a conversation: at the prices of any provider, or if the model asks blind. */
function worstCost(one: Conversation): number {
  return Math.max(one.cost, one['cost, openai'], one['cost, no cache'], one['blind cost']);
}

function sourceOf(source: string, all: readonly Conversation[]) {
  const folded = all.filter(({ folds }) => folds > 0);
  const dearer = folded.filter(({ cost }) => cost > 1);
  const sum = (key: 'values' | 'hidden' | 'lost' | 'recalls' | 'blind calls' | 'run again'): number =>
    all.reduce((total, one) => total + one[key], 0);
  return {
    source,
    conversations: all.length,
    folded: folded.length,
    dearer: dearer.length,
    'dearer, openai': folded.filter((one) => one['cost, openai'] > 1).length,
    'dearer, no cache': folded.filter((one) => one['cost, no cache'] > 1).length,
    'dearer, asked blind': folded.filter((one) => one['blind cost'] > 1).length,
    'dearer without a fold': all.filter(({ folds, cost }) => folds === 0 && cost > 1).length,
    values: sum('values'),
    hidden: sum('hidden'),
    recalls: sum('recalls'),
    lost: sum('lost'),
    'blind calls': sum('blind calls'),
    'run again': sum('run again'),
  };
}

type EditRow = {
  readonly id: string;
  readonly edits: number;
  readonly quotable: number;
  readonly lost: number;
  readonly repaired: number;
};

/** Plays the coding sessions for their edits. */
async function editsOf(records: readonly BenchRecord[]) {
  const counter = await loadExactCounter('o200k_base');
  const rows: EditRow[] = [];
  for (const record of records.filter(({ source }) => source === codingSessions)) {
    const edits = await quotedEdits(record, counter);
    const lost = edits.filter(({ isLost }) => isLost);
    rows.push({
      id: anonymous(record.id),
      edits: edits.length,
      quotable: edits.filter(({ isShown }) => isShown).length,
      lost: lost.length,
      repaired: lost.filter(({ isRepaired }) => isRepaired).length,
    });
  }
  const sum = (key: 'edits' | 'quotable' | 'lost' | 'repaired'): number =>
    rows.reduce((total, row) => total + row[key], 0);
  return {
    totals: [
      {
        sessions: rows.length,
        edits: sum('edits'),
        quotable: sum('quotable'),
        lost: sum('lost'),
        repaired: sum('repaired'),
      },
    ],
    worst: rows
      .filter(({ lost }) => lost > 0)
      .toSorted((a, b) => b.lost - a.lost)
      .slice(0, listed),
  };
}
