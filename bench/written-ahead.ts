/**
 * Counts the summaries that a model would write ahead of folds, and those that a fold uses, on recorded coding sessions; with `--records` the records
 * of sub-goals. Run `npm run bench bench/written-ahead.ts [-- --records] [--from N] [--to N]`; it reads ../shared/data and prints the counts.
 *
 * Traps: (1) No model is asked: the summary is one sentence, so folds save more than with a real one. (2) A summary takes three requests. (3) The budget is
 * low (60,000 tokens down to 25,000) and the triggers that watch cache costs are off, so that folds need summaries.
 */
import { parseArgs } from 'node:util';
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
  },
});

/** Requests that a summary takes. */
const requestsASummary = 3;

const counter = await loadExactCounter('o200k_base');
const settings: FoldSettings = {
  ...(values.records ? { subgoals: { kind: 'model' } } : { summaries: { kind: 'model' } }),
  cacheMarks: false,
  models: { '*': { windowTokens: 200_000, tokenizer: counter } },
  triggers: {
    tokenBudget: { triggerTokens: 60_000, targetTokens: 25_000 },
    cacheRent: false,
    coldCache: false,
  },
};
const counts = { sessions: 0, requests: 0, folds: 0, 'folds with a text': 0, written: 0, used: 0 };
const summarizer = {
  name: 'scripted',
  summarize() {
    counts.written++;
    return Promise.resolve('The work went on.');
  },
};
const level = values.records ? 'subgoal' : 'history';

await main();

async function main(): Promise<void> {
  const records = readConversations();
  if (records === undefined) {
    console.log('bench/written-ahead.ts skipped: there are no recorded conversations in ../shared/data.');
    return;
  }
  const sessions = largeSessions(records).slice(Number(values.from), Number(values.to));
  for (const record of sessions) await play(record);
  console.table([counts]);
}

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
    const used = texts.filter(({ by }) => by === 'summarizer' || by === 'both');
    counts.requests++;
    counts.folds += Number(steps.some(({ edits }) => edits > 0));
    counts['folds with a text'] += Number(texts.length > 0);
    counts.used += used.length;
    if (running === undefined && (await prepared.summary?.claim(60_000)))
      running = { until: at + requestsASummary, job: prepared.summary! };
  }
}
