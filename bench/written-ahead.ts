/**
 * Counts the texts that a model would write ahead of folds, and those that a sent request has: the summaries of recorded coding sessions; with `--records` the
 * records of sub-goals; with `--items` the items of lists, in a search of ten articles for each recorded question. Run `npm run bench
 * bench/written-ahead.ts [-- --records | --items] [--from N] [--to N]`; it reads ../shared/data and prints the counts.
 *
 * Traps: (1) No model is asked: the summary is one sentence, so folds save more than with a real one. (2) A summary takes three requests. (3) The budget is
 * low (60,000 tokens down to 25,000; for items 24,000 down to 20,000) and the triggers that watch cache costs are off, so that folds need texts. (4) Nobody
 * recorded the searches: each question comes from the user, and its articles are the result of one call.
 */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { conversationBody } from '../src/cli/replay/conversation-body.ts';
import { chat } from '../src/cli/replay/sources.ts';
import type { SummaryJob } from '../src/engine/types.ts';
import { createDefaultEngine, type FoldSettings } from '../src/library/default-engine.ts';
import { createClient } from '../src/replay/client.ts';
import { readRecording } from '../src/replay/recording.ts';
import { createEncryptedStore, sha256 } from '../src/store/encrypted-store.ts';
import { inMemoryStore } from '../src/store/in-memory.ts';
import { loadExactCounter } from '../src/tokens/load-counter.ts';
import { type BenchRecord, largeSessions, readConversations } from './replay/data.ts';

const { values } = parseArgs({
  options: {
    from: { type: 'string', default: '0' },
    to: { type: 'string', default: '18' },
    records: { type: 'boolean', default: false },
    items: { type: 'boolean', default: false },
  },
});

/** Requests that a summary takes. */
const requestsASummary = 3;

const counter = await loadExactCounter('o200k_base');
const settings: FoldSettings = {
  ...(values.items
    ? { items: { kind: 'model' } }
    : values.records
      ? { subgoals: { kind: 'model' } }
      : { summaries: { kind: 'model' } }),
  cacheMarks: false,
  models: { '*': { windowTokens: 200_000, tokenizer: counter } },
  triggers: {
    tokenBudget: values.items
      ? { triggerTokens: 24_000, targetTokens: 20_000 }
      : { triggerTokens: 60_000, targetTokens: 25_000 },
    cacheRent: false,
    coldCache: false,
  },
};
const counts = { sessions: 0, requests: 0, folds: 0, 'folds with a text': 0, written: 0 };
const summarizer = {
  name: 'scripted',
  summarize() {
    return Promise.resolve(`The work went on, part ${++counts.written}.`);
  },
};
const level = values.items ? 'items' : values.records ? 'subgoal' : 'history';
/** The numbers of the texts that a sent request had. */
const used = new Set<string>();

await main();

async function main(): Promise<void> {
  const records = readConversations();
  if (records === undefined) {
    console.log('bench/written-ahead.ts skipped: there are no recorded conversations in ../shared/data.');
    return;
  }
  const sessions = values.items ? searches() : largeSessions(records);
  for (const record of sessions.slice(Number(values.from), Number(values.to))) await play(record);
  console.table([{ ...counts, used: used.size }]);
}

/** Returns conversations in which an agent looks up twenty recorded questions each. */
function searches(): readonly BenchRecord[] {
  const file = new URL('../../shared/data/qa-hotpotqa-dev.jsonl.gz', import.meta.url);
  const asked = gunzipSync(readFileSync(file))
    .toString()
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Question);
  return [0, 20, 40].map((from): BenchRecord => {
    const messages = asked.slice(from, from + 20).flatMap(({ question, docs, answers }, at) => {
      const articles = docs.map(({ title, sentences }) => ({ title, body: sentences.join('') }));
      const id = `call_${from + at}`;
      const call = { name: 'search', arguments: JSON.stringify({ query: question }) };
      return [
        { role: 'user', content: question },
        { role: 'assistant', content: null, tool_calls: [{ id, type: 'function', function: call }] },
        { role: 'tool', tool_call_id: id, content: JSON.stringify(articles) },
        { role: 'assistant', content: answers.join(', ') },
      ];
    });
    return { id: `searches-${from}`, source: 'searches', messages, coldAt: [] };
  });
}

type Question = {
  readonly question: string;
  readonly answers: readonly string[];
  readonly docs: readonly { readonly title: string; readonly sentences: readonly string[] }[];
};

async function play(record: BenchRecord): Promise<void> {
  const body = conversationBody(record, 15_000, counter);
  const recording = readRecording({ id: record.id, source: record.source, format: chat, body }, counter);
  const client = createClient(recording);
  const reading = { digest: sha256, blocks: new Map() };
  const secret = new Uint8Array(32).fill(1);
  const engine = createDefaultEngine(settings, createEncryptedStore({ store: inMemoryStore(), secret }));
  let running: { readonly until: number; readonly job: SummaryJob } | undefined;
  counts.sessions++;
  for (const [at, step] of recording.steps.entries()) {
    client.reach(step.at);
    if (running !== undefined && at >= running.until) {
      await running.job.write(summarizer);
      running = undefined;
    }
    const { conversation } = client.request((bytes) => chat.codec.read(bytes, reading), 0);
    const prepared = await engine.prepare({ codec: chat.codec, body: conversation.body, tenant: 'bench' });
    const { steps, compressions } = prepared.report;
    const texts = compressions.filter((one) => one.level === level);
    const sent = new TextDecoder().decode(prepared.body);
    for (const [, part] of sent.matchAll(/The work went on, part (\d+)\./g)) used.add(part!);
    counts.requests++;
    counts.folds += Number(steps.some(({ edits }) => edits > 0));
    counts['folds with a text'] += Number(texts.length > 0);
    if (running === undefined && (await prepared.summary?.claim(60_000)))
      running = { until: at + requestsASummary, job: prepared.summary! };
  }
}
