import { APICallError, generateText, jsonSchema, tool, wrapLanguageModel } from 'ai';
import { describe, expect, it } from 'vitest';
import { folding, log } from '../../test/support/folded-logs.ts';
import { type Params, type SdkModel, scriptedModel } from '../../test/support/scripted-sdk-model.ts';
import { createLeporello, type LeporelloOptions } from '../library/leporello.ts';
import { tokenBudget } from '../triggers/limits.ts';
import { leporelloMiddleware, leporelloPrepareStep } from './ai-sdk.ts';

const text = (words: string) => ({ type: 'text', text: words }) as const;

/** A prompt of a tool loop whose results fill the window. */
function longPrompt(): Params['prompt'] {
  return [
    { role: 'user', content: [text('Read all.')] },
    ...Array.from({ length: 20 }, (_, at): Params['prompt'] => [
      {
        role: 'assistant',
        content: [{ type: 'tool-call', toolCallId: `c${at}`, toolName: 'read', input: { at } }],
      },
      {
        role: 'tool',
        content: [
          {
            type: 'tool-result',
            toolCallId: `c${at}`,
            toolName: 'read',
            output: { type: 'text', value: log(at) },
          },
        ],
      },
    ]).flat(),
  ];
}

const tools: NonNullable<Params['tools']> = [
  { type: 'function', name: 'read', inputSchema: { type: 'object' } },
];

function wrapped(model: SdkModel, options: LeporelloOptions = folding) {
  return wrapLanguageModel({ model, middleware: leporelloMiddleware(createLeporello(options)) });
}

describe('a refusal', () => {
  it('folds further when the provider finds the prompt too long, in the words of any provider', async () => {
    const refusals = [
      {
        type: 'error',
        error: { type: 'invalid_request_error', message: 'prompt is too long: 15000 tokens > 9000 maximum' },
      },
      {
        error: {
          message:
            "This model's maximum context length is 9000 tokens. However, your messages resulted in 15000 tokens.",
        },
      },
    ];
    for (const refusal of refusals) {
      const model = scriptedModel((_, index) => {
        if (index > 0) return [text('Fits.')];
        throw new APICallError({
          message: 'too long',
          url: 'x',
          requestBodyValues: {},
          statusCode: 400,
          responseBody: JSON.stringify(refusal),
        });
      });
      const reply = await wrapped(model).doGenerate({ prompt: longPrompt(), tools });
      expect(reply.content).toEqual([text('Fits.')]);
      const [first, second] = model.asked.map(({ prompt }) => JSON.stringify(prompt).length);
      expect(second).toBeLessThan(first!);
    }
  });

  it('rejects with the error of the model', async () => {
    const error = new APICallError({
      message: 'no',
      url: 'x',
      requestBodyValues: {},
      statusCode: 429,
      responseBody: '{}',
    });
    const broken = new Error('broken');
    for (const thrown of [error, broken]) {
      const model = scriptedModel(() => {
        throw thrown;
      });
      await expect(wrapped(model).doGenerate({ prompt: longPrompt(), tools })).rejects.toBe(thrown);
      await expect(wrapped(model).doStream({ prompt: longPrompt(), tools })).rejects.toBe(thrown);
    }
  });

  it('sends the prompt of the program once more when the provider refuses the folded one', async () => {
    const model = scriptedModel(({ prompt }) => {
      if (!JSON.stringify(prompt).includes('[Folded')) return [text('Fine.')];
      throw new APICallError({
        message: 'bad',
        url: 'x',
        requestBodyValues: {},
        statusCode: 400,
        responseBody: '{"error":{"message":"bad"}}',
      });
    });
    const prompt = longPrompt();
    // The window is larger than the prompt, which is folded only because it is more than the budget.
    const options = {
      ...folding,
      models: {},
      triggers: [tokenBudget({ triggerTokens: 6_000, targetTokens: 3_000 })],
    };
    const reply = await wrapped(model, options).doGenerate({ prompt, tools });
    expect(reply.content).toEqual([text('Fine.')]);
    expect(model.asked[1]!.prompt).toEqual(prompt);
    expect(model.asked[1]!.tools).toEqual(tools);
  });
});

describe('a refusal of the request that continues after a recall', () => {
  const limited = (headers: Record<string, string>, statusCode = 429) =>
    new APICallError({
      message: 'Slow down.',
      url: 'x',
      requestBodyValues: {},
      statusCode,
      responseHeaders: headers,
      responseBody: '{}',
    });
  const recalling = (...errors: readonly Error[]) =>
    scriptedModel((_, index) => {
      if (index === 0)
        return [{ type: 'tool-call', toolCallId: 'r', toolName: 'read_memory', input: '{"query":"log 1"}' }];
      if (errors[index - 1]) throw errors[index - 1]!;
      return [text('Here it is.')];
    });
  const atOnce = { 'retry-after-ms': '1' };

  it('is sent again if that may help, plain and streamed', async () => {
    for (const errors of [[limited(atOnce)], [limited(atOnce), limited(atOnce, 529)]]) {
      const model = recalling(...errors);
      const { content } = await wrapped(model).doGenerate({ prompt: longPrompt(), tools });
      expect([content, model.asked.length]).toEqual([[text('Here it is.')], errors.length + 2]);
      const streaming = recalling(...errors);
      const { stream } = await wrapped(streaming).doStream({ prompt: longPrompt(), tools });
      const types: string[] = [];
      for await (const part of stream) types.push(part.type);
      expect(types).toEqual(['stream-start', 'text-start', 'text-delta', 'text-end', 'finish']);
      expect(streaming.asked.length).toBe(errors.length + 2);
    }
  });

  it('is sent again without the answers if it is too long', async () => {
    const model = recalling(
      new APICallError({
        message: 'too long',
        url: 'x',
        requestBodyValues: {},
        statusCode: 400,
        responseBody: '{"error":{"message":"prompt is too long: 15000 tokens > 9000 maximum"}}',
      }),
    );
    const { content } = await wrapped(model).doGenerate({ prompt: longPrompt(), tools });
    expect(content).toEqual([text('Here it is.')]);
    const noRoom = 'The context window has no room left to read memory.';
    expect(model.asked.map(({ prompt }) => JSON.stringify(prompt).includes(noRoom))).toEqual([
      false,
      false,
      true,
    ]);
  });

  it('is the error of the model if it stays, asks for a long wait, or is final', async () => {
    const often = [1, 2, 3].map(() => limited(atOnce));
    const model = recalling(...often);
    await expect(wrapped(model).doGenerate({ prompt: longPrompt(), tools })).rejects.toMatchObject({
      message: often[2]!.message,
      statusCode: 429,
      isRetryable: false,
      cause: often[2],
    });
    expect(model.asked.length).toBe(4);
    for (const error of [limited({ 'retry-after': '60' }), limited({}, 400)]) {
      const once = recalling(error);
      await expect(wrapped(once).doGenerate({ prompt: longPrompt(), tools })).rejects.toBe(error);
      expect(once.asked.length).toBe(2);
    }
  });
});

describe('the retries of the SDK', () => {
  it('do not multiply with those of a continuation', async () => {
    const busy = new APICallError({
      message: 'Slow down.',
      url: 'x',
      requestBodyValues: {},
      statusCode: 429,
      isRetryable: true,
      responseHeaders: { 'retry-after-ms': '1' },
      responseBody: '{}',
    });
    const model = scriptedModel((_, index) => {
      if (index > 0) throw busy;
      return [{ type: 'tool-call', toolCallId: 'r', toolName: 'read_memory', input: '{"query":"log 1"}' }];
    });
    const read = tool({ inputSchema: jsonSchema<object>({ type: 'object' }), execute: () => 'read' });
    const asked = generateText({ model: wrapped(model), messages: longPrompt(), tools: { read } });
    await expect(asked).rejects.toMatchObject({ statusCode: 429, isRetryable: false });
    // The first request, and three times the one that continues after the recall.
    expect(model.asked.length).toBe(4);
  });
});

describe('a prompt that cannot be written as JSON', () => {
  it('goes to the model as it is', async () => {
    const prompt: Params['prompt'] = [
      { role: 'user', content: [text('Read.')] },
      {
        role: 'assistant',
        content: [{ type: 'tool-call', toolCallId: 'c', toolName: 'read', input: { at: 5n } }],
      },
      {
        role: 'tool',
        content: [
          { type: 'tool-result', toolCallId: 'c', toolName: 'read', output: { type: 'text', value: 'x' } },
        ],
      },
    ];
    const model = scriptedModel(() => [text('Fine.')]);
    expect((await wrapped(model).doGenerate({ prompt, tools })).content).toEqual([text('Fine.')]);
    expect(model.asked[0]!.prompt).toEqual(prompt);
    const fold = leporelloPrepareStep(createLeporello(folding));
    const looped = await generateText({ model, messages: prompt, prepareStep: fold });
    expect(looped.text).toBe('Fine.');
  });
});

describe('a stream that the program stops reading', () => {
  it('ends the stream of the provider', async () => {
    let isCancelled = false;
    const model: SdkModel = {
      ...scriptedModel(() => []),
      async doStream() {
        return {
          stream: new ReadableStream({
            pull: (controller) => controller.enqueue({ type: 'text-delta', id: '0', delta: 'a' }),
            cancel() {
              isCancelled = true;
            },
          }),
        };
      },
    };
    const { stream } = await wrapped(model).doStream({ prompt: longPrompt(), tools });
    const reader = stream.getReader();
    await reader.read();
    await reader.cancel();
    expect(isCancelled).toBe(true);
  });

  it('ends the stream of the provider while it is silent, or before anything was read', async () => {
    const prompt: Params['prompt'] = [{ role: 'user', content: [text('Hi.')] }];
    for (const parts of [1, 0]) {
      const silent = Promise.withResolvers<void>();
      let cancelledFor: unknown;
      const model: SdkModel = {
        ...scriptedModel(() => []),
        async doStream() {
          let sent = 0;
          const stream: Awaited<ReturnType<SdkModel['doStream']>>['stream'] = new ReadableStream(
            {
              pull(controller) {
                if (sent++ < parts) controller.enqueue({ type: 'text-delta', id: '0', delta: 'a' });
                else silent.resolve();
              },
              cancel(reason) {
                cancelledFor = reason;
              },
            },
            { highWaterMark: 0 },
          );
          return { stream };
        },
      };
      const reader = (await wrapped(model).doStream({ prompt, tools })).stream.getReader();
      if (parts > 0) {
        await reader.read();
        const next = reader.read();
        await silent.promise;
        await reader.cancel('enough');
        expect((await next).done).toBe(true);
      } else await reader.cancel('enough');
      expect(cancelledFor).toBe('enough');
    }
  });
});
