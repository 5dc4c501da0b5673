import { expect, it } from 'vitest';
import { type Caches, createCaches } from '../../caches.ts';
import { openaiChat } from '../../codecs/openai-chat/index.ts';
import { createLearned } from '../../engine/state.ts';
import type { Engine } from '../../engine/types.ts';
import { createDefaultEngine } from '../../library/default-engine.ts';
import { createEncryptedStore } from '../../store/encrypted-store.ts';
import { createKeptReplies } from '../../store/hidden-recalls.ts';
import { inMemoryStore } from '../../store/in-memory.ts';
import { type Step, chatBody } from '../../../test/support/chat-conversation.ts';
import { foldThread } from './fold-thread.ts';

/** 16 conversations of 2 MB take 86 MB, and the 64 smaller ones before them 20 MB. */
const fullBytes = 95e6;
const secret = new Uint8Array(32).fill(3);
/** To look for repeated lines would take most of the time. */
const settings = { shrinks: false } as const;

/** Returns the bodies of a conversation, turn by turn. */
function growing(kB: number, name: string): () => Uint8Array {
  const steps: Step[] = [{ user: `Find out why ${name} is red.` }];
  const add = () => {
    const at = steps.length;
    const lines = Array.from(
      { length: 60 },
      (_, line) => `${line * at} ${name} job ${at * 61 + line} took ${line * 37} ms`,
    );
    steps.push({ calls: [{ name: 'run', input: `{"log":${at}}`, result: lines.join('\n') }] });
  };
  const body = () => chatBody(steps, { tools: ['run'], model: 'gpt-4.1' });
  while (steps.length * 3_000 < kB * 1_000) add();
  return () => {
    add();
    return body();
  };
}

const conversations = (count: number, kB: number) =>
  Array.from({ length: count }, (_, at) => growing(kB, `build ${kB}-${at}`));

async function send(engine: Engine, next: () => Uint8Array): Promise<void> {
  const { known } = await engine.prepare({ codec: openaiChat, body: next(), tenant: 'tenant' });
  await known;
}

/** Sends 64 conversations that end after two turns, then three turns of 16 of 2 MB, and calls `after` after each request of these. */
async function serve(engine: Engine, after: (turn: number) => void): Promise<void> {
  const ended = [...conversations(32, 20), ...conversations(32, 200)];
  for (const next of [...ended, ...ended]) await send(engine, next);
  const large = conversations(16, 2_000);
  for (const turn of [1, 2, 3])
    for (const next of large) {
      await send(engine, next);
      after(turn);
    }
}

it('an engine finds each turn of large conversations in its cache once others have ended', {
  timeout: 240_000,
}, async () => {
  const open = createCaches(fullBytes / 1e6);
  let misses = 0;
  const caches: Caches = (name, bytesOf) => {
    const cache = open(name, bytesOf);
    const get = cache.get.bind(cache);
    if (name === 'seen bodies')
      cache.get = (key) => {
        const found = get(key);
        if (found === undefined) misses += 1;
        return found;
      };
    return cache;
  };
  const encryptedStore = createEncryptedStore({ store: inMemoryStore({ maxBytes: 1e9 }), secret, caches });
  const missesIn: number[] = [];
  await serve(createDefaultEngine(settings, encryptedStore, { caches }), (turn) => {
    missesIn[turn] = (missesIn[turn] ?? 0) + misses;
    misses = 0;
  });
  expect(missesIn.slice(2)).toEqual([0, 0]);
});

it('a fold thread drops nothing of large conversations once others have ended', {
  timeout: 480_000,
}, async () => {
  const full = await heldByThread(fullBytes);
  const roomy = await heldByThread(fullBytes * 10);
  expect(full.held).toEqual(roomy.held);
  expect(full.most).toBeLessThan(fullBytes * 1.13);
  expect(roomy.most).toBeGreaterThan(fullBytes);
});

/** Returns the bytes that the thread for large bodies holds after each request of 2 MB, and the most that all engines held together. */
async function heldByThread(bytes: number) {
  const store = inMemoryStore({ maxBytes: 1e9 });
  const thread = foldThread();
  const { memory, budget } = thread.openMemory(bytes);
  const caches = createCaches(memory);
  const encryptedStore = createEncryptedStore({ store, secret, caches });
  const keptReplies = createKeptReplies({ encryptedStore, caches });
  const learned = createLearned({ caches });
  const local = createDefaultEngine(settings, encryptedStore, { caches, keptReplies, learned });
  const log = { info: () => {}, warn: () => {}, error: () => {} };
  const engine = thread.engineFor({
    local,
    settings,
    secret,
    store,
    encryptedStore,
    keptReplies,
    learned,
    log,
  });
  const held: number[] = [];
  let most = 0;
  await serve(engine, () => {
    held.push(budget.used[1]! + budget.used[2]!);
    most = Math.max(
      most,
      budget.used.reduce((sum, used) => sum + used),
    );
  });
  await thread.close();
  return { held, most };
}
