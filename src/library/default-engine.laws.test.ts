import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { chatBody, type Step } from '../../test/support/chat-conversation.ts';
import { openaiChat } from '../codecs/openai-chat/index.ts';
import { createLearned } from '../engine/state.ts';
import type { EngineRequest } from '../engine/types.ts';
import { foldThread } from '../gateway/fold-thread/fold-thread.ts';
import { createEncryptedStore } from '../store/encrypted-store.ts';
import { inMemoryStore } from '../store/in-memory.ts';
import { createKeptReplies } from '../store/hidden-recalls.ts';
import { sqliteStore } from '../store/sqlite/sqlite.ts';
import type { Store } from '../store/store.ts';
import { createDefaultEngine, type FoldSettings } from './default-engine.ts';

const secret = new Uint8Array(32).fill(3);
const folder = mkdtempSync(join(tmpdir(), 'leporello-engines-'));
let files = 0;
const newFile = (): string => join(folder, `${files++}.db`);
afterAll(() => rmSync(folder, { recursive: true }));

const engineOn = (store: Store, settings: FoldSettings = {}) =>
  createDefaultEngine(settings, createEncryptedStore({ store, secret }));

const listing = (word: string, lines: number): string =>
  Array.from(
    { length: lines },
    (_, at) => `${at + 100}\tconst ${word}${at} = compute(${at}, '${word}');`,
  ).join('\n');

const call = (word: string, lines = 60): Step => ({
  calls: [{ name: 'run', input: JSON.stringify({ word }), result: listing(word, lines) }],
});

const requestOf = (steps: readonly Step[]): EngineRequest => ({
  codec: openaiChat,
  body: chatBody(steps, { tools: ['run'], model: 'gpt-4o' }),
  tenant: 'tenant',
});

const messagesOf = (body: Uint8Array): readonly string[] =>
  (JSON.parse(new TextDecoder().decode(body)) as { messages: object[] }).messages.map((message) =>
    JSON.stringify(message),
  );

describe('requests of one engine at once', () => {
  it('are sent as an engine sends them that has only one of them', async () => {
    const engine = engineOn(inMemoryStore());
    const start: readonly Step[] = [{ user: 'Go.' }, call('one', 400), call('two', 400), call('six', 400)];
    await engine.prepare(requestOf([...start, call('alpha', 400)]));
    // Reading so many messages is paused, and the other branch is read meanwhile.
    const many = Array.from(
      { length: 8_000 },
      (_, at): Step => (at % 2 ? { user: `u${at}` } : { assistant: `a${at}` }),
    );
    const branch: readonly Step[] = [...start, call('omega', 400), { assistant: 'Yes.' }, { user: 'On.' }];
    await Promise.all([
      engine.prepare(requestOf([...start, call('alpha', 400), ...many])),
      engine.prepare(requestOf(branch)),
    ]);
    const next = requestOf([...branch, { assistant: 'More.' }, { user: 'And on.' }]);
    const { body } = await engine.prepare(next);
    expect(body).toEqual((await engineOn(inMemoryStore()).prepare(next)).body);
  });

  it('are sent the same bytes when they are the same request, even if one has no time left to fold', {
    repeats: 20,
  }, async () => {
    const engine = engineOn(await sqliteStore({ file: newFile() }), {
      shrinks: false,
      triggers: { tokenBudget: { triggerTokens: 8_200, targetTokens: 4_000, bufferTokens: 0 } },
    });
    const request = requestOf([
      { user: 'Read.' },
      ...Array.from({ length: 60 }, (_, at) => call(`n${at}_`, 120)),
    ]);
    const [one, other] = await Promise.all([
      engine.prepare(request),
      engine.prepare({ ...request, leftMs: () => 0 }),
    ]);
    expect(one.body).toEqual(other.body);
  });
});

describe('a branch that was sent without a fold', () => {
  const settings: FoldSettings = {
    shrinks: false,
    triggers: { tokenBudget: { triggerTokens: 8_200, targetTokens: 4_000, bufferTokens: 0 } },
  };
  const base: readonly Step[] = [{ user: 'Read.' }, ...Array.from({ length: 7 }, (_, at) => call(`n${at}_`))];
  const sent = requestOf([...base, { assistant: 'Small.' }, { user: 'Next.' }]);
  const folded = requestOf([...base, call('big', 200)]);
  const next = requestOf([...base, { assistant: 'Small.' }, { user: 'Next.' }, call('t')]);

  it('does not take over the fold of another branch that another engine of the process made', async () => {
    const store = await sqliteStore({ file: newFile() });
    const [one, other] = [engineOn(store, settings), engineOn(store, settings)];
    const first = await one.prepare(sent);
    await first.known;
    const fold = await other.prepare(folded);
    await fold.known;
    const second = await other.prepare(next);
    expect([first, fold].map(({ outcome }) => outcome.status)).toEqual(['untouched', 'compacted']);
    expect(messagesOf(second.body).slice(0, messagesOf(first.body).length)).toEqual(messagesOf(first.body));
    await store.close();
  });

  it('does not do so when it grows into the thread for large bodies', async () => {
    const store = await sqliteStore({ file: newFile() });
    const encryptedStore = createEncryptedStore({ store, secret });
    const keptReplies = createKeptReplies({ encryptedStore });
    const learned = createLearned({});
    const local = createDefaultEngine(settings, encryptedStore, { keptReplies, learned });
    const log = { info: () => undefined, warn: () => undefined };
    const thread = foldThread({ fromBytes: sent.body.length + 1 });
    const budget = { max: 64e6, used: new Uint32Array(3) };
    const parts = { local, settings, budget, secret, store, encryptedStore, keptReplies, learned, log };
    const engine = thread.engineFor(parts);
    const first = await engine.prepare(sent);
    await first.known;
    const fold = await engine.prepare(folded);
    await fold.known;
    const second = await engine.prepare(next);
    expect([first, fold].map(({ outcome }) => outcome.status)).toEqual(['untouched', 'compacted']);
    expect(messagesOf(second.body).slice(0, messagesOf(first.body).length)).toEqual(messagesOf(first.body));
    await thread.close();
    await store.close();
  });
});
