/**
 * Structured output with hidden recalls, parsed by the official SDKs, through the gateway and with `leporello/fetch`: the model writes words, recalls,
 * and then writes the JSON.
 */
import Anthropic from '@anthropic-ai/sdk';
import { zodOutputFormat } from '@anthropic-ai/sdk/helpers/zod';
import { GoogleGenAI } from '@google/genai';
import OpenAI from 'openai';
import { zodResponseFormat, zodTextFormat } from 'openai/helpers/zod';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { createLeporelloFetch } from '../../../src/adapters/fetch.ts';
import { startFakeProvider } from '../../support/fake-provider/fake-provider.ts';
import type { Script, ScriptRequest, Turn, TurnPart } from '../../support/fake-provider/script.ts';
import { stubIdsIn } from '../../support/stub-texts.ts';
import { type Format, formats, postStream, shapes } from '../bodies.ts';
import { withoutEcho } from '../replies.ts';
import { foldingEarly, startStack } from '../stack.ts';

const schema = z.object({ state: z.string() });
const words = 'Let me look at the log.';
const usage = { input: 1_000, output: 10, cacheRead: 0, cacheWrite: 0 };

function turn(...parts: readonly TurnPart[]): Turn {
  return { type: 'turn', parts, usage, chunkSize: 100 };
}

const json = (state: string): TurnPart => ({ type: 'text', text: JSON.stringify({ state }) });

/** The model recalls the first original, or whatever there is, with these words ahead, then says what it found. */
function recalling(ahead: string): Script {
  return ({ body, index }: ScriptRequest) => {
    if (index !== 0) return turn(json(`all is well after ${index}`));
    const [id] = stubIdsIn(JSON.stringify(body));
    const call = { type: 'tool-call', name: 'read_memory', arguments: { id: id ?? 'mem_0000000000000000' } };
    return turn({ type: 'text', text: ahead }, { id: 'r1', ...call } as TurnPart);
  };
}

type Parsed = {
  readonly parsed: unknown;
  readonly text: string;
  readonly input: unknown;
  readonly reply: unknown;
};
type Ask = (target: Target, messages: readonly unknown[], streaming: boolean) => Promise<Parsed>;
type Target = { readonly url: string; readonly fetch?: typeof fetch };

const common = { apiKey: 'dummy', maxRetries: 0 };
/** The fields of a request besides messages and stream. The types of the bodies are as wide as the tests of all formats need. */
const fieldsOf = (format: Format) => shapes[format].settings as Record<string, never>;

const asks: Readonly<Record<Format, Ask>> = {
  async chat({ url, fetch }, messages, streaming) {
    const client = new OpenAI({ baseURL: `${url}/v1`, ...common, ...(fetch && { fetch }) });
    const request = {
      ...fieldsOf('chat'),
      model: 'gpt-4o',
      messages: messages as OpenAI.ChatCompletionMessageParam[],
      tools: [
        { type: 'function' as const, function: { name: 'run', strict: true, parameters: noParameters } },
      ],
      response_format: zodResponseFormat(schema, 'state'),
    };
    const { choices, usage: used } = streaming
      ? await client.chat.completions
          .stream({ ...request, stream_options: { include_usage: true } })
          .finalChatCompletion()
      : await client.chat.completions.parse(request);
    const { message } = choices[0]!;
    return {
      parsed: message.parsed,
      text: message.content ?? '',
      input: used?.prompt_tokens,
      reply: [message],
    };
  },
  async responses({ url, fetch }, input, streaming) {
    const client = new OpenAI({ baseURL: `${url}/v1`, ...common, ...(fetch && { fetch }) });
    const request = {
      ...fieldsOf('responses'),
      model: 'gpt-4o',
      store: false,
      input: input as OpenAI.Responses.ResponseInputItem[],
      tools: [{ type: 'function' as const, name: 'run', strict: true, parameters: noParameters }],
      text: { format: zodTextFormat(schema, 'state') },
    };
    const response = streaming
      ? await client.responses.stream(request).finalResponse()
      : await client.responses.parse(request);
    return {
      parsed: response.output_parsed,
      text: response.output_text,
      input: response.usage?.input_tokens,
      reply: response.output,
    };
  },
  async messages({ url, fetch }, messages, streaming) {
    const client = new Anthropic({ baseURL: url, ...common, ...(fetch && { fetch }) });
    const request = {
      ...fieldsOf('messages'),
      model: 'claude-sonnet-5',
      max_tokens: 100,
      messages: messages as Anthropic.MessageParam[],
      output_config: { format: zodOutputFormat(schema) },
    };
    const message = streaming
      ? await client.messages.stream(request).finalMessage()
      : await client.messages.parse(request);
    const said = message.content.map((block) => (block.type === 'text' ? block.text : ''));
    return {
      parsed: message.parsed_output,
      text: said.join(''),
      input: message.usage.input_tokens,
      reply: [{ role: 'assistant', content: message.content }],
    };
  },
  async gemini({ url, fetch }, contents, streaming) {
    const client = new GoogleGenAI({
      apiKey: 'dummy',
      httpOptions: { baseUrl: url, ...(fetch && { fetch }) },
    });
    const request = {
      model: 'gemini-3-pro',
      contents: contents as never,
      config: {
        tools: [{ functionDeclarations: [{ name: 'run' }] }],
        responseMimeType: 'application/json',
        responseJsonSchema: z.toJSONSchema(schema),
      },
    };
    let text = '';
    let input: unknown;
    const chunks = streaming
      ? await client.models.generateContentStream(request)
      : [await client.models.generateContent(request)];
    for await (const chunk of chunks) {
      text += chunk.text ?? '';
      input = chunk.usageMetadata?.promptTokenCount ?? input;
    }
    return { parsed: JSON.parse(text), text, input, reply: [{ role: 'model', parts: [{ text }] }] };
  },
};

const noParameters = { type: 'object' as const, properties: {}, required: [], additionalProperties: false };

/** Twelve results of about 1,000 tokens each, of which the gateway folds the oldest. */
function jobs(format: Format): readonly unknown[] {
  const { user, job } = shapes[format];
  const lines = (at: number) =>
    Array.from({ length: 100 }, (_, step) => `job ${at}: step ${step} took ${step * 7} ms\n`);
  return [
    user('Run all jobs.'),
    ...Array.from({ length: 12 }, (_, at) => job(`call_${at}`, lines(at).join(''))).flat(),
    user('Tell the state as JSON.'),
  ];
}

/** Marks move from request to request, so they would make each of them differ. */
const settings = { ...foldingEarly, cacheMarks: false, shrinks: false as const };

/** Opens the gateway, or a `fetch` that folds, in front of the scripted provider. */
async function open(way: 'gateway' | 'fetch', script: Script) {
  if (way === 'gateway') {
    const stack = await startStack(script, settings);
    return {
      target: { url: stack.url },
      provider: stack.provider,
      close: () => stack[Symbol.asyncDispose](),
    };
  }
  const provider = await startFakeProvider({ script });
  const { models, triggers } = settings;
  const fetch = createLeporelloFetch({
    models: models!,
    triggers: triggers!,
    calibration: false,
    cacheMarks: false,
    shrinks: false,
    prepareDeadlineMs: 600_000,
    storeDeadlineMs: 600_000,
  });
  return { target: { url: provider.url, fetch }, provider, close: () => provider.close() };
}

const cases = formats.flatMap((format) =>
  (['gateway', 'fetch'] as const).flatMap((way) =>
    [false, true].map((streaming) => ({ format, way, streaming })),
  ),
);

describe.each(cases)(
  'structured output of $format through the $way, streaming: $streaming',
  ({ format, way, streaming }) => {
    it.each([
      ['folded', jobs(format)],
      ['with nothing to recall', [shapes[format].user('Tell the state as JSON.')]],
    ])('has no words from ahead of a recall, and later requests have both: %s', async (_, messages) => {
      const { target, provider, close } = await open(way, recalling(words));
      try {
        const first = await asks[format](target, messages, streaming);
        expect([first.parsed, first.text, first.input]).toEqual([
          { state: 'all is well after 1' },
          '{"state":"all is well after 1"}',
          2_000,
        ]);
        const next = [...messages, ...(first.reply as unknown[]), shapes[format].user('And now?')];
        expect((await asks[format](target, next, streaming)).parsed).toEqual({
          state: 'all is well after 2',
        });
        const [asked, answered, later] = provider.requests.map(({ body }) => sentIn(format, body));
        expect(stubIdsIn(JSON.stringify(asked)).length > 0).toBe(messages.length > 1);
        // The model finds its own turn, words included, with the recall and its answer, where it made them.
        expect(later!.slice(0, answered!.length)).toEqual(answered);
        expect(JSON.stringify(answered!.slice(-3))).toContain(words);
        expect(JSON.stringify(later!.slice(answered!.length)).replaceAll('\\', '')).not.toContain(words);
      } finally {
        await close();
      }
    });
  },
);

/** Returns the messages of a request. */
function sentIn(format: Format, body: Uint8Array): readonly unknown[] {
  return (JSON.parse(new TextDecoder().decode(body)) as Record<string, unknown[]>)[shapes[format].messages]!;
}

// Streams: what waits, and until when

const jsonFields: Readonly<Record<Format, object>> = {
  chat: { response_format: { type: 'json_object' } },
  messages: { output_config: { format: { type: 'json_schema', schema: { type: 'object' } } } },
  responses: { text: { format: { type: 'json_object' } } },
  gemini: { generationConfig: { responseMimeType: 'application/json' } },
};

/** Posts a request for JSON as a stream, and reads it piece by piece. */
async function openReader(url: string, format: Format, messages: readonly unknown[]) {
  const fields = { ...jsonFields[format], [shapes[format].messages]: messages };
  const { body } = await postStream(url, format, fields);
  const decoder = new TextDecoder();
  const reader = body!.getReader();
  let seen = '';
  return {
    /** Reads until the text matches, or to the end. Returns all that was read. */
    async until(wanted = /(?!)/) {
      while (!wanted.test(seen)) {
        const { done, value } = await reader.read();
        if (done) return seen;
        seen += decoder.decode(value, { stream: true });
      }
      return seen;
    },
  };
}

const short = (format: Format) => [shapes[format].user('Tell the state as JSON.')];
const thought: TurnPart = { type: 'thinking', text: 'Which log?', signature: btoa('signed') };
const clientCall: TurnPart = { type: 'tool-call', id: 'c1', name: 'run', arguments: {} };
const recallCall: TurnPart = {
  type: 'tool-call',
  id: 'r1',
  name: 'read_memory',
  arguments: { id: 'mem_0000000000000000' },
};

describe.each(formats)('a %s stream with structured output', (format) => {
  it('shows JSON at once if there is nothing to recall', async () => {
    const gate = Promise.withResolvers<void>();
    await using stack = await startStack(
      () => ({ ...turn(json('well'), clientCall), pauseBeforePart: { 1: gate.promise } }),
      settings,
    );
    const reader = await openReader(stack.url, format, short(format));
    expect(await reader.until(/well/)).not.toContain('"c1"');
    gate.resolve();
    expect(await reader.until()).toMatch(/run/);
  });

  it.runIf(format !== 'chat')('shows reasoning ahead of a text that is held back', async () => {
    const gate = Promise.withResolvers<void>();
    await using stack = await startStack(
      () => ({ ...turn(thought, json('well'), clientCall), pauseBeforePart: { 1: gate.promise } }),
      settings,
    );
    const reader = await openReader(stack.url, format, jobs(format));
    await reader.until(/Which log/);
    gate.resolve();
    expect(await reader.until()).toMatch(/well[^]*run/);
  });

  it('has the bytes of the provider if no recall follows', async () => {
    const parts = [thought, { type: 'text', text: 'It is well. ' } as const, json('well'), clientCall];
    await using recorded = await startStack(() => turn(...parts), settings);
    const direct = await (await openReader(recorded.provider.url, format, short(format))).until();
    const headers = { 'content-type': 'text/event-stream; charset=utf-8' };
    const chunks = direct.match(/[^]{1,50}/gu)!;
    await using stack = await startStack(() => ({ type: 'raw', status: 200, headers, chunks }), settings);
    for (const messages of [short(format), jobs(format)])
      expect(await (await openReader(stack.url, format, messages)).until()).toBe(direct);
  });

  it('drops a draft that the model replaces after a recall', async () => {
    await using stack = await startStack(
      ({ index }) => (index === 0 ? turn(thought, json('draft'), recallCall) : turn(json('final'))),
      settings,
    );
    const seen = await (await openReader(stack.url, format, jobs(format))).until();
    expect([/draft/.test(seen), /final/.test(seen), /read_memory/.test(withoutEcho(seen))]).toEqual([
      false,
      true,
      false,
    ]);
  });

  it('shows the words of a round after which no recall is answered any more', async () => {
    await using stack = await startStack(
      ({ index }) => turn({ type: 'text', text: `Words ${index}.` }, { ...recallCall, id: `r${index}` }),
      { ...settings, recall: { maxRounds: 1 } },
    );
    const seen = await (await openReader(stack.url, format, jobs(format))).until();
    expect([...new Set(seen.match(/Words \d/g))]).toEqual(['Words 2']);
  });
});
