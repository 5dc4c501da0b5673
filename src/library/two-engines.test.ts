import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { chatBody, type Step } from '../../test/support/chat-conversation.ts';
import { openaiChat } from '../codecs/openai-chat/index.ts';
import { sqliteStore } from '../store/sqlite/sqlite.ts';
import { createLeporello } from './leporello.ts';

const folder = mkdtempSync(join(tmpdir(), 'leporello-two-engines-'));
afterAll(() => rmSync(folder, { recursive: true }));

const log = (job: number): string =>
  Array.from({ length: 100 }, (_, at) => `job ${job}: step ${at} took ${at} ms\n`).join('');
const call = (job: number): Step => ({ calls: [{ name: 'run', result: log(job) }] });
const bodyWith = (...more: readonly Step[]) =>
  chatBody([{ user: 'Run all jobs.' }, ...Array.from({ length: 12 }, (_, job) => call(job)), ...more], {
    tools: ['run', 'read_memory'],
    model: 'gpt-4o',
  });

/** Uses both engines of a Leporello by turns, on branches of one conversation. */
async function play(isShared: boolean) {
  const store = await sqliteStore({ file: join(folder, `${isShared}.db`), isShared });
  const leporello = createLeporello({
    store,
    secret: new Uint8Array(32).fill(3),
    shrinks: false,
    models: { 'gpt-4o': { windowTokens: 20_000 } },
  });
  const long = { user: Array.from({ length: 8 }, (_, at) => log(at + 50)).join('') };
  const results = [
    await leporello.prepare({ codec: openaiChat, body: bodyWith() }),
    await leporello.compact({ codec: openaiChat, body: bodyWith(long) }),
    await leporello.prepare({ codec: openaiChat, body: bodyWith({ user: 'Go on.' }) }),
    await leporello.prepare({ codec: openaiChat, body: bodyWith({ user: 'Go on.' }, call(201), call(202)) }),
  ];
  await store.close();
  return results.map(({ outcome, body }) => `${outcome.status} ${new TextDecoder().decode(body)}`);
}

it('prepare and compact see what the other has recorded, whether or not other processes use the store', async () => {
  const alone = await play(false);
  expect(alone.map((one) => one.split(' ')[0])).toEqual(['untouched', 'compacted', 'compacted', 'compacted']);
  expect(alone).toEqual(await play(true));
});
