import { expect, it } from 'vitest';
import { openaiChat } from '../codecs/openai-chat/index.ts';
import { createDefaultEngine } from '../library/default-engine.ts';
import { maxListed } from '../receipts/detail.ts';
import { createEncryptedStore } from '../store/encrypted-store.ts';
import { inMemoryStore } from '../store/in-memory.ts';

it('the detail of a request lists the newest messages of very many that were folded', async () => {
  const encryptedStore = createEncryptedStore({ store: inMemoryStore(), secret: new Uint8Array(32) });
  const engine = createDefaultEngine({ models: { '*': { windowTokens: 4_000 } } }, encryptedStore);
  const messages = Array.from({ length: maxListed + 501 }, (_, at) => ({
    role: at % 2 === 0 ? 'user' : 'assistant',
    content: `${at}`,
  }));
  const tools = [{ type: 'function', function: { name: 'read', parameters: { type: 'object' } } }];
  const body = new TextEncoder().encode(JSON.stringify({ model: 'm', tools, messages }));
  const { report, detail } = await engine.prepare({ codec: openaiChat, body, tenant: 'one' });
  expect(report.steps.length).toBeGreaterThan(0);
  const { messages: listed, messageCount } = (await detail!())!;
  expect(messageCount).toBe(maxListed + 501);
  expect(listed.map(({ index }) => index)).toEqual(Array.from({ length: maxListed }, (_, at) => 501 + at));
});
