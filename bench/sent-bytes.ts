/**
 * Hashes every body that would be sent for the recorded conversations, so that a change which must not alter behavior can be checked: run it
 * before and after, and compare the lines. Run `node bench/sent-bytes.ts [LIMIT]`; LIMIT is the number of conversations, by default all. It
 * writes nothing. Some five minutes.
 *
 * Trap: ids depend on the secret, which is fixed here, and clocks stand still, so folds for cold caches are not covered.
 */
import { createHash } from 'node:crypto';
import { anthropicMessages } from '../src/codecs/anthropic-messages/index.ts';
import type { Codec } from '../src/codecs/codec.ts';
import { openaiChat } from '../src/codecs/openai-chat/index.ts';
import { createDefaultEngine, type FoldSettings } from '../src/library/default-engine.ts';
import { inMemoryStore } from '../src/store/in-memory.ts';
import { createEncryptedStore } from '../src/store/encrypted-store.ts';
import { asAnthropic } from '../test/support/as-anthropic.ts';
import { type BenchRecord, longHorizon, readConversations } from './replay/data.ts';

type Way = {
  readonly name: string;
  readonly codec: Codec;
  readonly model: string;
  readonly settings: FoldSettings;
  /** Sends every request of a conversation, or every third. */
  readonly step: 1 | 3;
};

const small = { '*': { window: 32_000 } };

const ways: readonly Way[] = [
  { name: 'chat', codec: openaiChat, model: 'gpt-4o', settings: {}, step: 1 },
  { name: 'anthropic', codec: anthropicMessages, model: 'claude-sonnet-4-5', settings: {}, step: 1 },
  {
    name: 'chat, small window, summaries',
    codec: openaiChat,
    model: 'gpt-4o',
    settings: { models: small, summaries: { kind: 'extractive' } },
    step: 3,
  },
  {
    name: 'anthropic, small window, sub-goals',
    codec: anthropicMessages,
    model: 'claude-sonnet-4-5',
    settings: { models: small, preset: 'production' },
    step: 3,
  },
  {
    name: 'chat, small window, no shrinks',
    codec: openaiChat,
    model: 'gpt-4o',
    settings: { models: small, shrinks: false },
    step: 3,
  },
];

const tool = {
  type: 'function',
  function: { name: 'run', description: 'Runs a command.', parameters: { type: 'object', properties: {} } },
};

const all = readConversations();
if (all === undefined) {
  console.log('bench/sent-bytes.ts skipped: there are no recorded conversations in ../shared/data.');
} else {
  const records = [...all.slice(0, Number(process.argv[2] ?? all.length)), ...longHorizon(all)];
  for (const way of ways) {
    const hash = createHash('sha256');
    let requests = 0;
    for (const record of records) requests += await play(record, way, (body) => hash.update(body));
    console.log(`${hash.digest('hex').slice(0, 16)}  ${requests} requests  ${way.name}`);
  }
}

async function play(record: BenchRecord, way: Way, sent: (body: Uint8Array) => unknown): Promise<number> {
  const store = createEncryptedStore({ store: inMemoryStore(), secret: new Uint8Array(32).fill(7) });
  const engine = createDefaultEngine(way.settings, store, { clock: () => 1_700_000_000_000 });
  const { messages } = record;
  let requests = 0;
  for (const [index, message] of messages.entries()) {
    if (message.role !== 'assistant' || index === 0 || index % way.step !== 0) continue;
    const chat = new TextEncoder().encode(
      JSON.stringify({ model: way.model, tools: [tool], messages: messages.slice(0, index) }),
    );
    const body = way.codec === openaiChat ? chat : asAnthropic(chat);
    const { body: out } = await engine.prepare({ codec: way.codec, body, tenant: 'bench' });
    sent(out);
    requests++;
  }
  return requests;
}
