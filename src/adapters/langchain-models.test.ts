import { BaseChatModel } from '@langchain/core/language_models/chat_models';
import {
  AIMessage,
  AIMessageChunk,
  type BaseMessage,
  HumanMessage,
  SystemMessage,
  ToolMessage,
} from '@langchain/core/messages';
import { ChatGenerationChunk, type ChatResult } from '@langchain/core/outputs';
import { ChatOpenAI } from '@langchain/openai';
import { createAgent, providerStrategy, tool } from 'langchain';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { folding, foldingEarly, log, memoryIdIn } from '../../test/support/folded-logs.ts';
import { createLeporello } from '../library/leporello.ts';
import { leporelloMiddleware, leporelloModel } from './langchain.ts';

const call = (id: string, name: string, args: Record<string, unknown>) => ({ id, name, args });

/** The messages of a tool loop whose results fill the window. */
function longHistory(): BaseMessage[] {
  return [
    new SystemMessage('Be brief.'),
    new HumanMessage('Read all.'),
    ...Array.from({ length: 26 }, (_, at) => [
      new AIMessage({ id: `a${at}`, content: '', tool_calls: [call(`c${at}`, 'read', { at })] }),
      new ToolMessage({ tool_call_id: `c${at}`, name: 'read', content: log(at), metadata: { at } }),
    ]).flat(),
  ];
}

const read = tool(({ at }: { at: number }) => log(at), {
  name: 'read',
  schema: z.object({ at: z.number() }),
});

type Fields = { readonly outputVersion?: 'v1' };

/** A model that does not stream. It returns the messages of a script as they are, and keeps what was bound. */
class PlainModel extends BaseChatModel {
  readonly model = 'gpt-4o';
  readonly script: (messages: readonly BaseMessage[], index: number) => AIMessage;
  readonly bound: unknown[] = [];
  asked: BaseMessage[][] = [];

  constructor(script: PlainModel['script'], fields: Fields = {}) {
    super(fields);
    this.script = script;
  }

  override _llmType(): string {
    return 'plain';
  }

  override get profile(): BaseChatModel['profile'] {
    return { structuredOutput: true };
  }

  override bindTools(...bound: unknown[]): this {
    this.bound.push(bound);
    return this;
  }

  override async _generate(messages: BaseMessage[]): Promise<ChatResult> {
    this.asked.push(messages);
    const message = this.script(messages, this.asked.length - 1);
    return { generations: [{ message, text: message.text }] };
  }
}

type Pieces = readonly NonNullable<AIMessageChunk['tool_call_chunks']>[number][];

/** A model that streams the pieces of calls, each in a chunk of its own. */
class PiecesModel extends PlainModel {
  readonly pieces: (messages: readonly BaseMessage[], index: number) => Pieces;

  constructor(pieces: PiecesModel['pieces'], fields: Fields = {}) {
    super(() => new AIMessage(''), fields);
    this.pieces = pieces;
  }

  override async *_streamResponseChunks(messages: BaseMessage[]): AsyncGenerator<ChatGenerationChunk> {
    this.asked.push(messages);
    for (const piece of this.pieces(messages, this.asked.length - 1)) {
      const message = new AIMessageChunk({ content: '', tool_call_chunks: [piece] });
      yield new ChatGenerationChunk({ text: '', message });
    }
  }
}

const foldedModel = (inner: BaseChatModel) => leporelloModel(inner, createLeporello(folding));
const withRead = (inner: BaseChatModel) => foldedModel(inner).bindTools!([read]);

async function streamed(model: ReturnType<typeof withRead>): Promise<AIMessageChunk> {
  const chunks: AIMessageChunk[] = [];
  for await (const chunk of await model.stream(longHistory())) chunks.push(chunk);
  return chunks.reduce((one, other) => one.concat(other));
}

const callsIn = ({ tool_calls: calls = [] }: AIMessage) => calls.map(({ name, args }) => [name, args]);

describe('a model that does not stream', () => {
  it('keeps its calls when it is streamed', async () => {
    const inner = new PlainModel(
      () => new AIMessage({ content: 'One.', tool_calls: [call('a', 'read', { at: 1 })] }),
    );
    const message = await streamed(withRead(inner));
    expect([message.text, callsIn(message)]).toEqual(['One.', [['read', { at: 1 }]]]);
  });

  it('runs the tools of an agent whose messages are streamed', async () => {
    const inner = new PlainModel((_, index) =>
      index === 0
        ? new AIMessage({ content: '', tool_calls: [call('a', 'read', { at: 1 })] })
        : new AIMessage('Done.'),
    );
    const middleware = [leporelloMiddleware(createLeporello(folding))];
    const agent = createAgent({ model: inner, tools: [read], middleware });
    const parts: unknown[] = [];
    const stream = await agent.stream(
      { messages: [new HumanMessage('Read.')] },
      { streamMode: 'messages' as const },
    );
    for await (const part of stream) parts.push(part);
    expect([inner.asked.length, JSON.stringify(parts).includes('Done.')]).toEqual([2, true]);
  });
});

describe('a streamed recall beside a call of the program', () => {
  it.each([
    ['without indexes', {}, {}],
    ['with the same index', { index: 0 }, { index: 0 }],
    ['with indexes', { index: 0 }, { index: 1 }],
  ])('leaves the call, %s', async (_, one, two) => {
    const inner = new PiecesModel((messages) => [
      { ...one, id: 'r', name: 'read_memory', args: JSON.stringify({ id: memoryIdIn(messages) }) },
      { ...two, id: 'a', name: 'read', args: '{"at":1}' },
    ]);
    const message = await streamed(withRead(inner));
    expect(callsIn(message)).toEqual([['read', { at: 1 }]]);
    expect(JSON.stringify(message)).not.toContain('read_memory');
  });
});

describe('a recall', () => {
  const recall = (messages: readonly BaseMessage[]) => call('r', 'read_memory', { id: memoryIdIn(messages) });

  it('is not in the content of version 1 that the program gets', async () => {
    const fields = { outputVersion: 'v1' } as const;
    const plain = new PlainModel(
      (messages, index) =>
        index === 0
          ? new AIMessage({ content: 'Let me see. ', tool_calls: [recall(messages)] })
          : new AIMessage({ content: 'Done.', tool_calls: [call('a', 'read', { at: 1 })] }),
      fields,
    );
    const pieces = new PiecesModel(
      (messages, index) =>
        index === 0
          ? [{ index: 0, id: 'r', name: 'read_memory', args: JSON.stringify(recall(messages).args) }]
          : [{ index: 0, id: 'a', name: 'read', args: '{"at":1}' }],
      fields,
    );
    for (const message of [await withRead(plain).invoke(longHistory()), await streamed(withRead(pieces))]) {
      expect(JSON.stringify(message)).not.toContain('read_memory');
      expect(callsIn(message)).toEqual([['read', { at: 1 }]]);
    }
    expect([plain.asked.length, pieces.asked.length]).toEqual([2, 2]);
  });

  it('is answered when its arguments are no JSON, plain and streamed', async () => {
    const args = '{"id": "mem_';
    const plain = new PlainModel((_, index) =>
      index === 0
        ? new AIMessage({
            content: '',
            invalid_tool_calls: [{ id: 'r', name: 'read_memory', args, error: 'no JSON' }],
          })
        : new AIMessage({
            content: 'Done.',
            invalid_tool_calls: [{ id: 'a', name: 'read', args: '{', error: 'no JSON' }],
          }),
    );
    const pieces = new PiecesModel((_, index) =>
      index === 0
        ? [{ index: 0, id: 'r', name: 'read_memory', args: 'none' }]
        : [{ index: 0, id: 'a', name: 'read', args: '{"at":1}' }],
    );
    const reply: AIMessage = await withRead(plain).invoke(longHistory());
    // The program sees its own broken call, as without Leporello.
    expect([reply.text, reply.invalid_tool_calls?.map(({ name }) => name)]).toEqual(['Done.', ['read']]);
    expect(callsIn(await streamed(withRead(pieces)))).toEqual([['read', { at: 1 }]]);
    for (const { asked } of [plain, pieces]) {
      const [asking, answer] = asked[1]!.slice(-2) as [AIMessage, ToolMessage];
      expect([callsIn(asking), answer.tool_call_id]).toEqual([[['read_memory', {}]], 'r']);
    }
  });
});

describe('a recalled image', () => {
  it('is in a message of the user, because some providers refuse images in results', async () => {
    const image = (at: number) => ({
      type: 'image_url',
      image_url: { url: `data:image/png;base64,${btoa(`image ${at} `.repeat(600))}` },
    });
    const messages = Array.from({ length: 14 }, (_, at) => [
      new HumanMessage({ content: [{ type: 'text', text: `Look at ${at}.` }, image(at)] }),
      new AIMessage('Seen.'),
    ]).flat();
    const inner = new PlainModel((asked, index) =>
      index === 0
        ? new AIMessage({ content: '', tool_calls: [call('r', 'read_memory', { id: memoryIdIn(asked) })] })
        : new AIMessage('I see.'),
    );
    const model = leporelloModel(inner, createLeporello(foldingEarly)).bindTools!([read]);
    expect((await model.invoke([...messages, new HumanMessage('Which one?')])).text).toBe('I see.');
    const [result, shown] = inner.asked[1]!.slice(-2);
    expect(result!.content).toMatch(/^The image of mem_\w+, as it was:$/);
    expect(shown!.content).toEqual([{ type: 'text', text: '[Recalled content]' }, image(0)]);
  });

  it('is shown in the next request, if the model also called a tool of the program', async () => {
    const image = (at: number) => ({
      type: 'image_url',
      image_url: { url: `data:image/png;base64,${btoa(`image ${at} `.repeat(600))}` },
    });
    const messages: BaseMessage[] = Array.from({ length: 14 }, (_, at) => [
      new HumanMessage({ content: [{ type: 'text', text: `Look at ${at}.` }, image(at)] }),
      new AIMessage('Seen.'),
    ]).flat();
    const inner = new PlainModel((asked, index) =>
      index === 0
        ? new AIMessage({
            content: '',
            tool_calls: [
              call('r', 'read_memory', { id: memoryIdIn(asked) }),
              call('c', 'read', { at: 1 }),
              call('d', 'read', { at: 2 }),
            ],
          })
        : new AIMessage('I see.'),
    );
    const model = leporelloModel(inner, createLeporello(foldingEarly)).bindTools!([read]);
    messages.push(new HumanMessage('Which one?'));
    const reply = (await model.invoke(messages)) as AIMessage;
    expect(reply.tool_calls?.map(({ name }) => name)).toEqual(['read', 'read']);
    const answered = [1, 2].map(
      (at) => new ToolMessage({ tool_call_id: at === 1 ? 'c' : 'd', name: 'read', content: log(at) }),
    );
    expect((await model.invoke([...messages, reply, ...answered])).text).toBe('I see.');
    const [asking, ...results] = inner.asked[1]!.slice(-5);
    expect((asking as AIMessage).tool_calls?.map(({ id }) => id)).toEqual(['r', 'c', 'd']);
    expect(results.map((message) => message.type)).toEqual(['tool', 'tool', 'tool', 'human']);
    expect(results.map(({ content }) => typeof content)).toEqual(['string', 'string', 'string', 'object']);
    expect(results[3]!.content).toEqual([{ type: 'text', text: '[Recalled content]' }, image(0)]);
  });
});

describe('the settings of a call', () => {
  it('reach a model without tools, such as the schema of an answer', async () => {
    const inner = new PlainModel(() => new AIMessage('{"a":1}'));
    const middleware = [leporelloMiddleware(createLeporello(folding))];
    const responseFormat = providerStrategy(z.object({ a: z.number() }));
    const agent = createAgent({ model: inner, tools: [], responseFormat, middleware });
    const { structuredResponse } = await agent.invoke({ messages: [new HumanMessage('Count.')] });
    expect(structuredResponse).toEqual({ a: 1 });
    expect(JSON.stringify(inner.bound)).toContain('json_schema');
  });

  it('replace the bound tools', async () => {
    const inner = new PlainModel(() => new AIMessage('Fine.'));
    const find = { type: 'function', function: { name: 'find', parameters: { type: 'object' } } };
    const options: object = { tools: [find], tool_choice: 'any' };
    await withRead(inner).invoke([new HumanMessage('Find.')], options);
    expect(inner.bound).toMatchObject([
      [[find, { function: { name: 'read_memory' } }], { tool_choice: 'any' }],
    ]);
  });
});

describe('structured output', () => {
  const schema = z.object({ answer: z.string() });

  it.each(['values', 'messages'])(
    'has no words from ahead of a recall, but later requests have them: %s',
    async (mode) => {
      const inner = new PlainModel((messages, index) =>
        index === 0
          ? new AIMessage({
              content: 'Let me look.',
              tool_calls: [call('r1', 'read_memory', { id: memoryIdIn(messages) })],
            })
          : new AIMessage('{"answer":"well"}'),
      );
      const middleware = [leporelloMiddleware(createLeporello(folding))];
      const agent = createAgent({
        model: inner,
        tools: [read],
        responseFormat: providerStrategy(schema),
        middleware,
      });
      let state: unknown;
      const streamMode: ('values' | 'messages')[] = ['values', mode as 'values'];
      for await (const [kind, value] of await agent.stream({ messages: longHistory() }, { streamMode }))
        if (kind === 'values') state = value;
      const { structuredResponse, messages } = state as {
        structuredResponse: unknown;
        messages: BaseMessage[];
      };
      expect([structuredResponse, messages.at(-1)!.text]).toEqual([{ answer: 'well' }, '{"answer":"well"}']);
      await agent.invoke({ messages: [...messages, new HumanMessage('Again.')] });
      const [answered, again] = inner.asked
        .slice(1)
        .map((asked) => asked.map(({ type, text }) => [type, text]));
      expect(again!.slice(0, answered!.length)).toEqual(answered);
      expect(answered!.at(-2)).toEqual(['ai', 'Let me look.']);
      expect(again!.slice(answered!.length)).toEqual([
        ['ai', '{"answer":"well"}'],
        ['human', 'Again.'],
      ]);
    },
  );

  it.each([
    ['functionCalling', ['none', ['answer', 'read_memory'], true]],
    // Nothing is folded in a request without tools that fits.
    ['jsonSchema', ['json_schema', [], false]],
    ['jsonMode', ['json_object', [], false]],
  ] as const)('is asked for as the inner model does it: %s', async (method, expected) => {
    const seen: unknown[] = [];
    const fetch = async (_: unknown, init?: RequestInit) => {
      const { response_format: format, tools = [], messages } = JSON.parse(init?.body as string) as ChatBody;
      const names = tools.map(({ function: own }) => own.name);
      seen.push([format?.type ?? 'none', names, JSON.stringify(messages).includes('[Folded')]);
      const text = '{"answer":"well"}';
      const called = { id: 'a', type: 'function', function: { name: 'answer', arguments: text } };
      const message = names[0] === 'answer' ? { content: null, tool_calls: [called] } : { content: text };
      return Response.json({ choices: [{ index: 0, message: { role: 'assistant', ...message } }] });
    };
    const inner = new ChatOpenAI({ model: 'gpt-4o', apiKey: 'dummy', configuration: { fetch } });
    const model = foldedModel(inner).withStructuredOutput(schema, { name: 'answer', method });
    expect(await model.invoke(longHistory())).toEqual({ answer: 'well' });
    expect(seen).toEqual([expected]);
  });
});

/** The members of a request that are read here. */
type ChatBody = {
  readonly response_format?: { readonly type: string };
  readonly tools?: readonly { readonly function: { readonly name: string } }[];
  readonly messages: unknown;
};

describe('a message', () => {
  it('keeps its metadata when its result is folded', async () => {
    const inner = new PlainModel(() => new AIMessage('Fine.'));
    await withRead(inner).invoke(longHistory());
    const first = inner.asked[0]![3] as ToolMessage;
    expect([first.text.slice(0, 7), first.metadata]).toEqual(['[Folded', { at: 0 }]);
  });

  it('that cannot be written as JSON goes to the model as it is', async () => {
    const inner = new PlainModel(() => new AIMessage('Fine.'));
    const part: { type: 'odd'; self?: unknown } = { type: 'odd' };
    part.self = part;
    const message = new HumanMessage({ content: [part] });
    expect((await withRead(inner).invoke([message])).text).toBe('Fine.');
    expect(inner.asked[0]![0]).toBe(message);
  });
});
