import { wrapLanguageModel } from 'ai';
import { describe, expect, it } from 'vitest';
import { folding, log, memoryIdIn } from '../../test/support/folded-logs.ts';
import {
  call,
  type Params,
  type SdkModel,
  scriptedModel,
  text,
} from '../../test/support/scripted-sdk-model.ts';
import { createLeporello } from '../library/leporello.ts';
import { leporelloMiddleware } from './ai-sdk.ts';

/** A tool loop whose results fill the window. */
const prompt: Params['prompt'] = [
  { role: 'user', content: [text('Read all.')] },
  ...Array.from({ length: 24 }, (_, at): Params['prompt'] => {
    const read = { toolCallId: `c${at}`, toolName: 'read' };
    return [
      { role: 'assistant', content: [{ type: 'tool-call', ...read, input: { at } }] },
      { role: 'tool', content: [{ type: 'tool-result', ...read, output: { type: 'text', value: log(at) } }] },
    ];
  }).flat(),
];

const tools: NonNullable<Params['tools']> = [
  { type: 'function', name: 'read', inputSchema: { type: 'object' } },
];

type StreamPart =
  Awaited<ReturnType<SdkModel['doStream']>>['stream'] extends ReadableStream<infer Part> ? Part : never;

/** Returns the parts that a program gets from the wrapped model. */
async function partsOf(model: SdkModel): Promise<readonly StreamPart[]> {
  const middleware = leporelloMiddleware(createLeporello(folding));
  const { stream } = await wrapLanguageModel({ model, middleware }).doStream({ prompt, tools });
  const parts: StreamPart[] = [];
  for await (const part of stream) parts.push(part);
  return parts;
}

/** The same model, which also sends the provider's own event ahead of each part that was read from it. */
function withRawParts(model: SdkModel): SdkModel {
  return {
    ...model,
    async doStream(params) {
      const { stream, ...others } = await model.doStream(params);
      const raws = new TransformStream<StreamPart, StreamPart>({
        transform(part, controller) {
          controller.enqueue({ type: 'raw', rawValue: { event: structuredClone(part) } });
          controller.enqueue(part);
        },
      });
      return { ...others, stream: stream.pipeThrough(raws) };
    },
  };
}

describe('leporelloMiddleware in streams', () => {
  it('shows the rounds of a reply as one message', async () => {
    const model = scriptedModel(({ prompt: asked }, index) =>
      index === 0
        ? [text('One moment. '), call('read_memory', { id: memoryIdIn(asked) }, 'r1')]
        : [text('It is well.')],
    );
    const parts = await partsOf(model);
    expect(parts).toEqual([
      { type: 'stream-start', warnings: [] },
      { type: 'text-start', id: '0' },
      { type: 'text-delta', id: '0', delta: 'One moment. ' },
      { type: 'text-end', id: '0' },
      { type: 'text-start', id: '2:0' },
      { type: 'text-delta', id: '2:0', delta: 'It is well.' },
      { type: 'text-end', id: '2:0' },
      {
        type: 'finish',
        finishReason: { unified: 'stop', raw: 'raw' },
        usage: {
          inputTokens: { total: 200, noCache: 180, cacheRead: 20, cacheWrite: undefined },
          outputTokens: { total: 10, text: 10, reasoning: 0 },
        },
      },
    ]);
  });

  it("shows the provider's own events up to a recall", async () => {
    const model = scriptedModel(({ prompt: asked }, index) =>
      index === 0
        ? [text('One moment. '), call('read_memory', { id: memoryIdIn(asked) }, 'r1')]
        : [text('It is well.')],
    );
    const parts = await partsOf(withRawParts(model));
    expect(parts.map(({ type }) => type).join(' ')).toBe(
      'raw stream-start raw text-start raw text-delta raw text-end text-start text-delta text-end finish',
    );
    expect(JSON.stringify(parts)).not.toContain('read_memory');
  });

  it("shows all of the provider's own events in a reply without a recall", async () => {
    const model = withRawParts(scriptedModel(() => [text('It is well.'), call('read', { at: 1 }, 'c1')]));
    const parts = await partsOf(model);
    const named = parts.map(({ type }) => type);
    expect(named.filter((type) => type === 'raw')).toHaveLength(parts.length / 2);
    // The end of a reply is held until it is known that no recall follows.
    expect(named.slice(-2)).toEqual(['raw', 'finish']);
  });
});
