import { describe, expect, it } from 'vitest';
import type { Script, TurnPart } from '../support/fake-provider/script.ts';
import { formats, postStream, shapes } from './bodies.ts';
import { replies, withoutEcho } from './replies.ts';
import { offering, startStack } from './stack.ts';

/** Reads until the text so far matches. */
async function readUntil(reader: ReadableStreamDefaultReader<Uint8Array>, wanted: RegExp): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  while (!wanted.test(text)) {
    const { done, value } = await reader.read();
    if (done) throw new Error(`The stream ended before ${wanted}: ${text}`);
    text += decoder.decode(value, { stream: true });
  }
  return text;
}

const parts: readonly TurnPart[] = [
  { type: 'text', text: 'I will run it, and then we shall see.' },
  { type: 'tool-call', id: 'call_1', name: 'run', arguments: { command: 'make test' } },
];

describe.each(formats)('a %s stream', (format) => {
  it('reaches the client byte for byte if the recall tool is offered and not called', async () => {
    await using recorded = await startStack(() => ({ type: 'turn', parts }));
    const upstream = await (await postStream(recorded.provider.url, format)).text();
    const headers = { 'content-type': 'text/event-stream; charset=utf-8' };
    await using stack = await startStack(
      () => ({
        type: 'raw',
        status: 200,
        headers,
        chunks: upstream.match(/[^]{1,50}/gu)!,
      }),
      offering,
    );
    expect(await (await postStream(stack.url, format)).text()).toBe(upstream);
    expect(new TextDecoder().decode(stack.provider.requests[0]!.body)).toContain('read_memory');
  });

  it('is not held back: text before a pause arrives during the pause', async () => {
    const gate = Promise.withResolvers<void>();
    await using stack = await startStack(() => ({
      type: 'turn',
      parts,
      pauseBeforePart: { 1: gate.promise },
    }));
    const response = await postStream(stack.url, format);
    const reader = response.body!.getReader();
    // The pause ends only after the text was read; if it were held back, this would wait forever.
    expect(await readUntil(reader, /shall see/)).not.toContain('make test');
    gate.resolve();
    await readUntil(reader, /make/);
    await reader.cancel();
  });

  it('delivers text before a recall before the recall is answered', async () => {
    const gate = Promise.withResolvers<void>();
    const script: Script = async ({ index }) => {
      if (index === 0) {
        return {
          type: 'turn',
          parts: [
            { type: 'text', text: 'One moment. ' },
            {
              type: 'tool-call',
              id: 'private',
              name: 'read_memory',
              arguments: { id: 'mem_0000000000000000' },
            },
          ],
        };
      }
      await gate.promise;
      return { type: 'turn', parts: [{ type: 'text', text: 'Here it is.' }] };
    };
    await using stack = await startStack(script, offering);
    const reader = (await postStream(stack.url, format)).body!.getReader();
    const before = await readUntil(reader, /moment/);
    await stack.provider.received(2);
    gate.resolve();
    const after = await readUntil(reader, replies[format].streamEnd);
    expect(withoutEcho(before + after)).not.toMatch(/read_memory|private|mem_0000/);
    expect(before + after).toContain('Here it');
    const answered = new TextDecoder().decode(stack.provider.requests[1]!.body);
    expect(answered).toContain('No memory with id');
  });

  it('has the outcome and the receipt id in its headers', async () => {
    await using stack = await startStack(() => ({ type: 'turn', parts }), offering);
    const response = await postStream(stack.url, format);
    await response.text();
    expect(response.headers.get('x-leporello-outcome')).toBe('untouched');
    const [before, after] = ['before', 'after'].map((which) =>
      Number(response.headers.get(`x-leporello-tokens-${which}`)),
    );
    expect(before).toBeGreaterThan(10);
    // The difference is the definition of the recall tool.
    expect(after! - before!).toBeGreaterThan(40);
    expect(after! - before!).toBeLessThan(200);
    const id = response.headers.get('x-leporello-receipt')!;
    const receipt = await fetch(`${stack.url}/_leporello/receipts/${id}`, {
      headers: { 'x-api-key': 'dummy' },
    });
    expect(await receipt.json()).toMatchObject({
      id,
      path: (shapes[format].streamPath ?? shapes[format].path).split('?')[0],
      upstreamStatus: 200,
      recalls: [],
      usage: { cacheRead: 0 },
    });
  });

  it('is canceled upstream when the client disconnects', async () => {
    await using stack = await startStack(() => ({ type: 'hang', afterEvents: 3, parts }));
    const response = await postStream(stack.url, format);
    const reader = response.body!.getReader();
    await reader.read();
    await reader.cancel();
    expect(await stack.provider.requests[0]!.ended).toBe('broken-off');
  });

  it('breaks for the client when the upstream connection breaks', async () => {
    await using stack = await startStack(() => ({ type: 'cut', afterEvents: 3, parts }));
    const response = await postStream(stack.url, format);
    await expect(response.text()).rejects.toThrow();
  });

  it('ends normally if the model only recalls', async () => {
    await using stack = await startStack(
      () => ({
        type: 'turn',
        parts: [{ type: 'tool-call', name: 'read_memory', arguments: { id: 'mem_0000000000000000' } }],
      }),
      { ...offering, recall: { maxRounds: 2 } },
    );
    const text = await (await postStream(stack.url, format)).text();
    // There are two rounds, one that says that no more are allowed, and the model's answer to it.
    expect(stack.provider.requests.length).toBe(4);
    expect(new TextDecoder().decode(stack.provider.requests[3]!.body)).toContain(
      'No more memory can be read',
    );
    expect(text).toMatch(replies[format].streamEnd);
    expect(withoutEcho(text)).not.toContain('read_memory');
  });

  it('contains the calls of the client without a recall between them, and stays valid', async () => {
    await using stack = await startStack(
      () => ({
        type: 'turn',
        parts: [
          { type: 'tool-call', name: 'read_memory', arguments: { id: 'mem_0000000000000000' } },
          ...parts,
        ],
      }),
      offering,
    );
    const text = await (await postStream(stack.url, format)).text();
    expect(stack.provider.requests.length).toBe(1);
    expect(text).toContain('make test'.slice(0, 4));
    expect(withoutEcho(text)).not.toContain('read_memory');
    expect(text).toMatch(replies[format].endWithCalls);
    expect(text).toMatch(replies[format].firstCall);
  });
});
