import {
  AIMessage,
  type AIMessageChunk,
  type BaseMessage,
  HumanMessage,
  SystemMessage,
  ToolMessage,
} from '@langchain/core/messages';
import { MemorySaver } from '@langchain/langgraph';
import { type AgentMiddleware, createAgent, summarizationMiddleware, tool } from 'langchain';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { eventually } from '../../test/support/eventually.ts';
import { folding, foldingEarly, log, memoryIdIn } from '../../test/support/folded-logs.ts';
import { type ChatScript, ScriptedChatModel } from '../../test/support/scripted-chat-model.ts';
import { createLeporello, type LeporelloOptions } from '../library/leporello.ts';
import { inMemoryStore } from '../store/in-memory.ts';
import { leporelloMiddleware, leporelloModel } from './langchain.ts';

const call = (id: string, name: string, args: Record<string, unknown>) => ({ id, name, args });

/** The messages of a tool loop whose results fill the window. */
function longHistory(): BaseMessage[] {
  return [
    new SystemMessage('Be brief.'),
    new HumanMessage({
      id: 'h1',
      content: [
        { type: 'text', text: 'Read all.' },
        { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw==' } },
      ],
    }),
    ...Array.from({ length: 26 }, (_, at) => [
      new AIMessage({
        id: `a${at}`,
        content: [
          { type: 'thinking', thinking: `Thought ${at}.`, signature: `s${at}` },
          { type: 'server_tool_use', id: `p${at}`, name: 'search', input: {} },
        ],
        tool_calls: [call(`c${at}`, 'read', { at })],
        additional_kwargs: { kept: at },
      }),
      new ToolMessage({
        id: `t${at}`,
        tool_call_id: `c${at}`,
        name: 'read',
        content: log(at),
        artifact: { at },
      }),
    ]).flat(),
  ];
}

const read = tool(({ at }: { at: number }) => log(at), {
  name: 'read',
  schema: z.object({ at: z.number() }),
});

function open(script: ChatScript, options: LeporelloOptions = folding) {
  const inner = new ScriptedChatModel(script);
  const folded = leporelloModel(inner, createLeporello(options)).bindTools!([read]);
  return { inner, folded };
}

describe('leporelloModel', () => {
  it('gives messages that fit to the model as the very same objects', async () => {
    const { inner, folded } = open(() => ({ text: 'Hi.' }));
    const messages = longHistory().slice(0, 6);
    expect((await folded.invoke(messages)).text).toBe('Hi.');
    expect(inner.asked[0]!.map((message, at) => message === messages[at])).toEqual(messages.map(() => true));
    expect(inner.offered).toEqual([['read', 'read_memory']]);
  });

  it('changes nothing but the results that it folds, and no message of the program', async () => {
    const { inner, folded } = open(() => ({ text: 'Hi.' }));
    const messages = longHistory();
    await folded.invoke(messages);
    const sent = inner.asked[0]!;
    expect(sent.length).toBe(messages.length);
    const changed = sent.flatMap((message, at) => (message === messages[at] ? [] : [at]));
    expect(changed.length).toBeGreaterThan(5);
    for (const at of changed) {
      const [before, after] = [messages[at] as ToolMessage, sent[at] as ToolMessage];
      expect(after.content).toMatch(/^\[Folded/);
      for (const key of ['id', 'tool_call_id', 'name', 'artifact', 'type'] as const)
        expect(after[key]).toEqual(before[key]);
    }
    expect(messages.map((message) => message.toDict())).toEqual(
      longHistory().map((message) => message.toDict()),
    );
  });

  it('answers recalls inside the reply, and puts them back for another process', async () => {
    const shared = { ...folding, store: inMemoryStore(), secret: new Uint8Array(32).fill(1) };
    const first = open(
      (messages, index) =>
        index === 0
          ? { text: 'Let me see. ', calls: [call('r1', 'read_memory', { id: memoryIdIn(messages) })] }
          : {
              text: 'It is well.',
              calls: [
                call('c99', 'read', { at: 99 }),
                call('r2', 'read_memory', { id: memoryIdIn(messages, 1) }),
              ],
            },
      shared,
    );
    const history = longHistory();
    const reply: AIMessageChunk = await first.folded.invoke(history);
    expect(reply.content).toBe('Let me see. It is well.');
    expect(reply.tool_calls).toEqual([call('c99', 'read', { at: 99 })]);
    expect(reply.usage_metadata).toMatchObject({ input_tokens: 200, output_tokens: 10, total_tokens: 210 });
    const [asked, recalled] = first.inner.asked[1]!.slice(-2) as [AIMessage, ToolMessage];
    expect(asked.content).toBe('Let me see. ');
    expect(asked.tool_calls?.map(({ id, name }) => [id, name])).toEqual([['r1', 'read_memory']]);
    expect([recalled.tool_call_id, recalled.name, recalled.content]).toEqual(['r1', 'read_memory', log(0)]);

    // The recalls of a reply are stored while the program already has it.
    await eventually(async () => {
      const second = open(() => ({ text: 'Bye.' }), shared);
      const result = new ToolMessage({ tool_call_id: 'c99', name: 'read', content: 'fine' });
      await second.folded.invoke([...history, reply, result]);
      const later = second.inner.asked[0]!;
      const spelled = (messages: readonly BaseMessage[]) =>
        messages.map(({ type, content }) => [type, content]);
      expect(spelled(later.slice(0, -3))).toEqual(spelled(first.inner.asked[1]!));
      const [mixed, answer, own] = later.slice(-3) as [AIMessage, ToolMessage, ToolMessage];
      expect([mixed.content, mixed.tool_calls?.map(({ id }) => id)]).toEqual(['It is well.', ['c99', 'r2']]);
      expect([answer.tool_call_id, answer.content]).toEqual(['r2', log(1)]);
      expect(own).toBe(result);
    });
  });

  it('streams the rounds of a reply as one message', async () => {
    const { folded } = open((messages, index) =>
      index === 0
        ? { text: 'One moment. ', calls: [call('r1', 'read_memory', { id: memoryIdIn(messages) })] }
        : { text: 'Found. ', calls: [call('c99', 'read', { at: 99 })] },
    );
    const chunks: AIMessageChunk[] = [];
    for await (const chunk of await folded.stream(longHistory())) chunks.push(chunk);
    expect(JSON.stringify(chunks)).not.toContain('read_memory');
    expect(new Set(chunks.map(({ id }) => id)).size).toBe(1);
    const whole = chunks.reduce((one, other) => one.concat(other));
    expect(whole.content).toBe('One moment. Found. ');
    expect(whole.tool_calls?.map(({ id, name, args }) => ({ id, name, args }))).toEqual([
      call('c99', 'read', { at: 99 }),
    ]);
    expect(whole.usage_metadata).toMatchObject({ input_tokens: 200, output_tokens: 10 });
    expect(whole.response_metadata).toEqual({ round: 2 });
  });

  it('answers the tool for notes as it answers recalls, plain and streamed', async () => {
    const script: ChatScript = (_, index) =>
      index === 0
        ? { text: 'I note it. ', calls: [call('n1', 'save_context', { text: 'It is due on Friday.' })] }
        : { text: 'Done.', calls: [call('c99', 'read', { at: 99 })] };
    const options = { ...folding, offerNotes: true };
    const [plain, streamed] = [open(script, options), open(script, options)];
    const reply: AIMessageChunk = await plain.folded.invoke(longHistory());
    expect([reply.content, reply.tool_calls?.length]).toEqual(['I note it. Done.', 1]);
    const chunks: AIMessageChunk[] = [];
    for await (const chunk of await streamed.folded.stream(longHistory())) chunks.push(chunk);
    expect(JSON.stringify(chunks)).not.toContain('save_context');
    for (const { inner } of [plain, streamed]) {
      expect(inner.offered[0]).toEqual(['read', 'read_memory', 'save_context']);
      expect(inner.asked[1]!.at(-1)!.text).toBe('Saved. The newest saved texts stay in view.');
    }
  });

  it('folds further when the provider finds the messages too long, and rejects with any other error', async () => {
    const refusal = (status: number, message: string) =>
      Object.assign(new Error(message), { status, error: { message } });
    const { inner, folded } = open((_, index) => {
      if (index === 0)
        throw refusal(
          400,
          "This model's maximum context length is 9000 tokens. However, your messages resulted in 15000 tokens.",
        );
      return { text: 'Fits.' };
    });
    expect((await folded.invoke(longHistory())).text).toBe('Fits.');
    const [first, second] = inner.asked.map((messages) => JSON.stringify(messages).length);
    expect(second).toBeLessThan(first!);
    const limited = refusal(401, 'no');
    const refused = open(() => {
      throw limited;
    });
    await expect(refused.folded.invoke(longHistory())).rejects.toBe(limited);
  });

  it('refuses anything but what createLeporello returned, at once', () => {
    const message = 'The first argument is {}, but must be what createLeporello() returned.';
    expect(() => leporelloMiddleware({} as never)).toThrow(message);
    expect(() => leporelloModel(new ScriptedChatModel(() => ({ text: '' })), {} as never)).toThrow(message);
  });
});

describe('leporelloMiddleware', () => {
  it('works beside a summarizer, which shortens the state itself', async () => {
    const inner = new ScriptedChatModel((_, index) =>
      index < 30 ? { text: '', calls: [call(`c${index}`, 'read', { at: index })] } : { text: 'Done.' },
    );
    const writer = new ScriptedChatModel(() => ({ text: 'Some logs were read.' }));
    // Its types do not allow exact optional properties.
    const options = { model: writer, trigger: { messages: 40 }, keep: { messages: 20 } } as never;
    const summarizer = summarizationMiddleware(options) as unknown as AgentMiddleware;
    const agent = createAgent({
      model: inner,
      tools: [read],
      checkpointer: new MemorySaver(),
      middleware: [summarizer, leporelloMiddleware(createLeporello(foldingEarly))],
    });
    const { messages } = await agent.invoke(
      { messages: [new HumanMessage('Read all.')] },
      { recursionLimit: 200, configurable: { thread_id: 'one' } },
    );
    expect(messages.at(-1)?.text).toBe('Done.');
    expect(writer.asked.length).toBeGreaterThan(0);
    expect(inner.asked.length).toBe(31);
    expect(JSON.stringify(inner.asked)).toContain('[Folded');
    expect(JSON.stringify(messages)).not.toContain('[Folded');
  });

  it('lets the model recall with a tool of the agent, if it is told to', async () => {
    const count = 26;
    const inner = new ScriptedChatModel((messages, index) => {
      if (index < count) return { text: '', calls: [call(`c${index}`, 'read', { at: index })] };
      const id = memoryIdIn(messages);
      return index === count
        ? { text: '', calls: [call('r1', 'read_memory', { id })] }
        : { text: messages.at(-1)!.text.includes(log(0).slice(0, 20)) ? 'Found.' : 'Not found.' };
    });
    const middleware = leporelloMiddleware(createLeporello(folding), { recall: 'tool' });
    const agent = createAgent({ model: inner, tools: [read], middleware: [middleware] });
    const { messages } = await agent.invoke(
      { messages: [new HumanMessage('Read all.')] },
      { recursionLimit: 200 },
    );
    const results = messages.filter((message) => ToolMessage.isInstance(message));
    expect(results.slice(0, count).map(({ content }) => content)).toEqual(
      Array.from({ length: count }, (_, at) => log(at)),
    );
    expect(results.slice(count).map(({ name, content }) => [name, content])).toEqual([
      ['read_memory', expect.stringContaining(log(0).slice(0, 20))],
    ]);
    expect(messages.at(-1)!.text).toBe('Found.');
    expect(inner.offered.at(-1)).toEqual(['read', 'read_memory']);
    expect(JSON.stringify(inner.asked[count])).toContain('[Folded');
  });

  it('shortens a list that would fill the window when it arrives, unless it is told not to', async () => {
    const item = (at: number) => ({
      title: `${at}`,
      body: `Item ${at} is here. ${'It has many more words that say little. '.repeat(8)}`,
    });
    const list = JSON.stringify(
      Array.from({ length: 160 }, (_, at) =>
        at === 99 ? { title: '99', body: `The lighthouse keeper left at noon. ${item(99).body}` } : item(at),
      ),
    );
    const find = tool(() => list, { name: 'find', schema: z.object({}) });
    const resultWith = async (shrinkResults: false | undefined) => {
      const inner = new ScriptedChatModel((_, index) =>
        index === 0 ? { text: '', calls: [call('c1', 'find', {})] } : { text: 'Done.' },
      );
      const middleware = leporelloMiddleware(
        createLeporello(folding),
        shrinkResults === false ? { shrinkResults } : {},
      );
      const agent = createAgent({ model: inner, tools: [find], middleware: [middleware] });
      const { messages } = await agent.invoke({
        messages: [new HumanMessage('When did the lighthouse keeper leave?')],
      });
      return messages.find((message) => ToolMessage.isInstance(message))?.content;
    };
    const shorter = await resultWith(undefined);
    expect(typeof shorter === 'string' && shorter.length < list.length).toBe(true);
    expect(shorter).toContain('The lighthouse keeper left at noon. Item 99 is here.');
    expect(shorter).toMatch(/mem_[a-z0-9]{16}/);
    expect(await resultWith(false)).toBe(list);
  });
});
