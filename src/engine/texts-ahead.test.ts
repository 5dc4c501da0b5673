import { expect, it } from 'vitest';
import { openaiChat } from '../codecs/openai-chat/index.ts';
import { createDefaultEngine } from '../library/default-engine.ts';
import { createEncryptedStore } from '../store/encrypted-store.ts';
import { inMemoryStore } from '../store/in-memory.ts';
import { chatBody, type Step } from '../../test/support/chat-conversation.ts';

const secret = new Uint8Array(32).fill(7);

/** A list of 20 items, about 5,000 tokens. */
function listOf(page: number): string {
  const items = Array.from({ length: 20 }, (_, at) => {
    const id = page * 100 + at;
    const parts = Array.from({ length: 12 }, (__, part) => `Lamp ${id} had part ${part} of brass and glass.`);
    return { id, text: `${parts.join(' ')} It burned for ${id * 7} days.` };
  });
  return JSON.stringify(items);
}

function pages(count: number, from: number): readonly Step[] {
  return Array.from({ length: count }, (_, at) => ({
    calls: [{ name: 'run', input: `{"page":${from + at}}`, result: listOf(from + at) }],
  }));
}

function openEngine() {
  return createDefaultEngine(
    {
      shrinks: false,
      cacheMarks: false,
      items: { kind: 'model' },
      triggers: {
        tokenBudget: { triggerTokens: 14_000, targetTokens: 11_000, bufferTokens: 1 },
        cacheRent: false,
        coldCache: false,
      },
    },
    createEncryptedStore({ store: inMemoryStore(), secret }),
  );
}

function request(steps: readonly Step[]) {
  const body = chatBody([{ system: 'You are an agent.' }, ...steps], { tools: ['run'], model: 'gpt-4o' });
  return { codec: openaiChat, body, tenant: 'tenant' };
}

it('texts are written ahead for a conversation, whatever a longer one with the same system prompt had', async () => {
  const talk = Array.from({ length: 40 }, (_, at): Step[] => [{ user: `And ${at}?` }, { assistant: 'Yes.' }]);
  const short = request([{ user: 'Short: read the lists.' }, ...pages(3, 0)]);
  const long = request([{ user: 'Long: read the lists.' }, ...talk.flat(), ...pages(3, 50)]);
  const engine = openEngine();
  expect((await engine.prepare(long)).summary?.writes).toBe('texts');
  expect((await engine.prepare(short)).summary?.writes).toBe('texts');
});
