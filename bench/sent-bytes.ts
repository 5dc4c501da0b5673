/**
 * Hashes every body that would be sent for the recorded conversations. To check that a change does not alter behavior, run it before and
 * after the change and compare the lines. Run `node bench/sent-bytes.ts [LIMIT]`; LIMIT is the number of conversations, by default all. It
 * takes about five minutes.
 *
 * Trap: secret and clock are fixed, because ids depend on them, so folds for cold caches are not covered.
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

type Variant = {
  readonly name: string;
  readonly codec: Codec;
  readonly model: string;
  readonly settings: FoldSettings;
  /** 1 sends every request of a conversation; 3 sends every third. */
  readonly step: 1 | 3;
};

const smallWindow = { '*': { windowTokens: 32_000 } };

const variants: readonly Variant[] = [
  { name: 'chat', codec: openaiChat, model: 'gpt-4o', settings: {}, step: 1 },
  { name: 'anthropic', codec: anthropicMessages, model: 'claude-sonnet-4-5', settings: {}, step: 1 },
  {
    name: 'chat, small window, summaries',
    codec: openaiChat,
    model: 'gpt-4o',
    settings: { models: smallWindow, summaries: { kind: 'extractive' } },
    step: 3,
  },
  {
    name: 'anthropic, small window, sub-goals',
    codec: anthropicMessages,
    model: 'claude-sonnet-4-5',
    settings: { models: smallWindow, preset: 'production' },
    step: 3,
  },
  {
    name: 'chat, small window, no shrinks',
    codec: openaiChat,
    model: 'gpt-4o',
    settings: { models: smallWindow, shrinks: false },
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
  for (const variant of variants) {
    const hash = createHash('sha256');
    let requests = 0;
    for (const record of records) requests += await play(record, variant, (body) => hash.update(body));
    console.log(`${hash.digest('hex').slice(0, 16)}  ${requests} requests  ${variant.name}`);
  }
}

async function play(
  record: BenchRecord,
  variant: Variant,
  onSent: (body: Uint8Array) => unknown,
): Promise<number> {
  const store = createEncryptedStore({ store: inMemoryStore(), secret: new Uint8Array(32).fill(7) });
  const engine = createDefaultEngine(variant.settings, store, { clock: () => 1_700_000_000_000 });
  const { messages } = record;
  let requests = 0;
  for (const [index, message] of messages.entries()) {
    if (message.role !== 'assistant' || index === 0 || index % variant.step !== 0) continue;
    const chat = new TextEncoder().encode(
      JSON.stringify({ model: variant.model, tools: [tool], messages: messages.slice(0, index) }),
    );
    const body = variant.codec === openaiChat ? chat : asAnthropic(chat);
    const { body: out } = await engine.prepare({ codec: variant.codec, body, tenant: 'bench' });
    onSent(out);
    requests++;
  }
  return requests;
}
