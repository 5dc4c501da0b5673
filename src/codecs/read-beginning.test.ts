import { describe, expect, it, vi } from 'vitest';
import { sha256 } from '../store/encrypted-store.ts';
import { anthropicMessages } from './anthropic-messages/index.ts';
import { openaiChat } from './openai-chat/index.ts';
import { openaiResponses } from './openai-responses/index.ts';
import { readBeginning } from './read-beginning.ts';

const utf8 = new TextEncoder();
const reading = () => ({ digest: sha256, blocks: new Map() });
const user = (content: string) => ({ role: 'user', content });

describe('the beginning of a request', () => {
  it('holds fields after a long list, and the first messages of that list', async () => {
    const messages = Array.from({ length: 40_000 }, (_, at) => user(`Message ${at}`));
    const body = utf8.encode(JSON.stringify({ messages, model: 'gpt-4o', prompt_cache_key: 'session' }));
    const beginning = (await readBeginning(openaiChat, body, reading()))!;
    expect(beginning).toMatchObject({ model: 'gpt-4o', sessionKey: 'session' });
    const whole = openaiChat.read(body, reading());
    expect(beginning.messages.map(({ canonical }) => canonical)).toEqual(
      whole.messages.slice(0, 16).map(({ canonical }) => canonical),
    );
  });

  it('ends before a message that is too long, and leaves out a field that is', async () => {
    const long = 'x'.repeat(300_000);
    const body = utf8.encode(
      JSON.stringify({ model: 'm', system: long, messages: [user('Go'), user(long)] }),
    );
    expect(await readBeginning(anthropicMessages, body, reading())).toMatchObject({
      model: 'm',
      preamble: [],
      messages: [{ role: 'user' }],
    });
  });

  it('names the reply that a request continues', async () => {
    const body = utf8.encode('{"input":"And now?","previous_response_id":"resp_1","model":"gpt-5"}');
    expect(await readBeginning(openaiResponses, body, reading())).toMatchObject({
      model: 'gpt-5',
      previousReplyId: 'resp_1',
    });
  });

  it.each([
    '',
    'not json',
    '[]',
    '{"model":"m"}',
    '{"messages":[],"messages":[]}',
    '{"messages":[{]}',
    '{"messages":[]',
    '{"messages":[],}',
  ])('is undefined when the body is no request: %s', async (body) => {
    expect(await readBeginning(openaiChat, utf8.encode(body), reading())).toBe(undefined);
  });

  it('lets other requests run while a long body is scanned', async () => {
    const body = utf8.encode(JSON.stringify({ messages: [user('\\"'.repeat(200_000))], model: 'm' }));
    let now = 0;
    using _ = vi.spyOn(performance, 'now').mockImplementation(() => (now += 20));
    let turns = 0;
    const turn = (): void => void (turns++, (timer = setImmediate(turn)));
    let timer = setImmediate(turn);
    expect(await readBeginning(openaiChat, body, reading())).toMatchObject({ model: 'm', messages: [] });
    clearImmediate(timer);
    expect(turns).toBeGreaterThan(0);
  });

  it('is not read in a body of very many members', async () => {
    const members = Object.fromEntries(Array.from({ length: 1_000 }, (_, at) => [`x${at}`, at]));
    const body = utf8.encode(JSON.stringify({ messages: [user('Go')], model: 'm', ...members }));
    expect(await readBeginning(openaiChat, body, reading())).toBe(undefined);
  });

  it('is not read in a body of more than 16 MiB', async () => {
    const body = utf8.encode(JSON.stringify({ messages: [user('x'.repeat(17 * 1024 * 1024))], model: 'm' }));
    expect(await readBeginning(openaiChat, body, reading())).toBe(undefined);
  });
});
