import { expect, it } from 'vitest';
import { openaiChat } from '../codecs/openai-chat/index.ts';
import { chatBody, type Step } from '../../test/support/chat-conversation.ts';
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

it('messages that were dropped are named after their calls, as the log names them', async () => {
  const encryptedStore = createEncryptedStore({ store: inMemoryStore(), secret: new Uint8Array(32) });
  const tokenBudget = { triggerTokens: 2_000, targetTokens: 1_920, bufferTokens: 0 };
  const settings = { strategies: ['drop-oldest'], shrinks: false, triggers: { tokenBudget } } as const;
  const engine = createDefaultEngine(settings, encryptedStore);
  const call = (name: string, input: object, result: string) => ({
    name,
    input: JSON.stringify(input),
    result,
  });
  const read = (at: number) =>
    call('read_file', { path: `src/f${at}.ts` }, `line ${at} of the file. `.repeat(30));
  const steps: readonly Step[] = [
    { user: 'Find the bug in the parser, please.' },
    { calls: [read(1)] },
    { calls: [read(2), read(3), call('run', { command: 'npm test' }, 'ok. '.repeat(40))] },
    { assistant: `Now I know where it is.${' The loop ends one line too early.'.repeat(8)}` },
    { user: 'Then read the rest.' },
    ...Array.from({ length: 6 }, (_, at): Step => ({ calls: [read(at + 10)] })),
  ];
  const titles: string[] = [];
  for (let count = 5; count <= steps.length; count++) {
    const body = chatBody(steps.slice(0, count), { tools: ['read_file', 'run'], model: 'm' });
    const { detail } = await engine.prepare({ codec: openaiChat, body, tenant: 'one' });
    titles.push(...(await detail!())!.edits.map(({ message, title }) => `${message}: ${title}`));
  }
  expect(titles).toEqual([
    '0: 7 messages: read_file ×3, run',
    '7: assistant: Now I know where it is. The loop ends one line too early. …',
    '9: read_file src/f10.ts',
  ]);
});
