import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { openaiChat } from '../codecs/openai-chat/index.ts';
import { createLeporello } from './leporello.ts';
import { bytesOfBody, codecFor } from './request-body.ts';

const formatOf = async (body: object) => (await codecFor(bytesOfBody(body))).name;
const hi = [{ role: 'user', content: 'Hi' }];
const blocks = (content: readonly object[]) => ({ messages: [...hi, { role: 'user', content }] });

describe('the wire format of a body', () => {
  it.each(['openai-chat', 'openai-responses', 'anthropic-messages', 'gemini'])(
    'is found for every recorded body of %s',
    async (format) => {
      const folder = `src/codecs/${format}/fixtures`;
      const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
        name.endsWith('.json'),
      );
      expect(files.length).toBeGreaterThan(5);
      const found = await Promise.all(
        files.map(async (name) => [name, (await codecFor(readFileSync(`${folder}/${name}`))).name]),
      );
      expect(found).toEqual(files.map((name) => [name, format]));
    },
  );

  it('is found by the tools, by members, or by the first message that only one format allows', async () => {
    const found = await Promise.all(
      [
        { messages: hi, tools: [{ name: 'read', input_schema: {} }] },
        { messages: hi, tools: [{ type: 'function', function: { name: 'read' } }] },
        { messages: hi, tools: [], system: 'Be brief.' },
        { messages: hi, max_completion_tokens: 5 },
        blocks([
          { type: 'text', text: 'a' },
          { type: 'image', source: {} },
        ]),
        blocks([
          { type: 'text', text: 'a' },
          { type: 'image_url', image_url: {} },
        ]),
        { messages: [...hi, { role: 'assistant', content: null, tool_calls: [] }] },
        { messages: [...hi, { role: 'developer', content: 'Be brief.' }] },
        { input: 'Hi' },
        { contents: [] },
      ].map(formatOf),
    );
    expect(found).toEqual([
      'anthropic-messages',
      'openai-chat',
      'anthropic-messages',
      'openai-chat',
      'anthropic-messages',
      'openai-chat',
      'openai-chat',
      'openai-chat',
      'openai-responses',
      'gemini',
    ]);
  });

  it('is Chat Completions if two formats allow the body and mean the same by it', async () => {
    expect(await formatOf({ model: 'm', messages: hi })).toBe('openai-chat');
    expect(await formatOf({ messages: [] })).toBe('openai-chat');
  });

  it('is refused for any other object, with its keys and without its content', () => {
    const refused = (body: object | string) => () => codecFor(bytesOfBody(body));
    expect(refused({ model: 'm', prompt: 'a secret' })).toThrow(
      'an object with the members model, prompt, so',
    );
    expect(refused({ messages: 'a secret' })).toThrow('an object with the members messages, so');
    expect(refused({})).toThrow('an object with no members, so');
    expect(refused('[1]')).toThrow('request.body is not one JSON object. Pass the whole body of a request');
    const many = Object.fromEntries(Array.from({ length: 10 }, (_, at) => [`k${at}`, at]));
    expect(refused(many)).toThrow('k0, k1, k2, k3, k4, k5, k6, k7 and 2 more, so');
    const own: { self?: object } = {};
    own.self = own;
    expect(refused(own)).toThrow('request.body is an object that JSON.stringify refuses.');
  });
});

describe('a body', () => {
  const result = (at: number) => ({
    role: 'tool',
    tool_call_id: `c${at}`,
    content: `line ${at}\n`.repeat(900),
  });
  const call = (at: number) => ({
    role: 'assistant',
    content: null,
    tool_calls: [{ id: `c${at}`, type: 'function', function: { name: 'read', arguments: '{}' } }],
  });
  const tools = [{ type: 'function', function: { name: 'read', parameters: { type: 'object' } } }];
  const steps = Array.from({ length: 12 }, (_, at) => [call(at), result(at)]).flat();
  const body = { model: 'gpt-4o', tools, messages: [...hi, ...steps] };
  const text = JSON.stringify(body);
  const settings = { models: { 'gpt-4o': { windowTokens: 12_000 } }, secret: new Uint8Array(32).fill(7) };

  it('is folded the same way as an object, as a text and as bytes', async () => {
    const folded = async (request: Parameters<ReturnType<typeof createLeporello>['prepare']>[0]) => {
      const prepared = await createLeporello(settings).prepare(request);
      expect(prepared.outcome).toEqual({ status: 'compacted' });
      expect(prepared.json()).toEqual(JSON.parse(new TextDecoder().decode(prepared.body)));
      return prepared.json();
    };
    const bytes = new TextEncoder().encode(text);
    const expected = await folded({ codec: openaiChat, body: bytes });
    expect(await folded({ body: bytes })).toEqual(expected);
    expect(await folded({ body: text })).toEqual(expected);
    expect(await folded({ body })).toEqual(expected);
  });

  it('is read at once: the program may change its object while it is prepared', async () => {
    const mine = { model: 'gpt-4o', messages: [...hi] };
    const pending = createLeporello(settings).prepare({ body: mine });
    mine.messages.push({ role: 'user', content: 'later' });
    expect((await pending).json()).toEqual({ model: 'gpt-4o', messages: hi });
  });

  it('is compacted for a program that keeps its messages, without a codec', async () => {
    const compacted = await createLeporello(settings).compact({ body });
    expect(Object.keys(compacted)).toEqual(['outcome', 'body', 'json', 'report']);
    expect(compacted.outcome).toEqual({ status: 'compacted' });
    expect((compacted.json() as typeof body).messages[0]).toEqual(hi[0]);
  });
});
