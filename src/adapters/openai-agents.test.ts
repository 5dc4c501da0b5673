import { Agent, type AgentInputItem, type Model, Runner, tool, Usage } from '@openai/agents';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { eventually } from '../../test/support/eventually.ts';
import { folding, log, memoryIdIn } from '../../test/support/folded-logs.ts';
import { createLeporello, type LeporelloOptions } from '../library/leporello.ts';
import { inMemoryStore } from '../store/in-memory.ts';
import { leporelloModel, leporelloProvider } from './openai-agents.ts';

type Request = Parameters<Model['getResponse']>[0];
type Reply = Awaited<ReturnType<Model['getResponse']>>;
type Output = Reply['output'];
type AgentsEvent =
  ReturnType<Model['getStreamedResponse']> extends AsyncIterable<infer Event> ? Event : never;

const said = (text: string): Output[number] => ({
  type: 'message',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text }],
});
const call = (callId: string, name: string, args: object): Output[number] => ({
  type: 'function_call',
  callId,
  name,
  arguments: JSON.stringify(args),
  status: 'completed',
});
const result = (callId: string, name: string, text: string): AgentInputItem => ({
  type: 'function_call_result',
  callId,
  name,
  status: 'completed',
  output: { type: 'text', text },
});

/** A model of the Agents SDK that answers from a script, and keeps what it was asked. */
function scripted(
  reply: (request: Request, index: number) => Output,
): Model & { readonly asked: readonly Request[] } {
  const asked: Request[] = [];
  const answer = (request: Request): Reply => {
    asked.push(request);
    const output = reply(request, asked.length - 1);
    return {
      output,
      usage: new Usage({ requests: 1, inputTokens: 100, outputTokens: 5, totalTokens: 105 }),
      responseId: `r${asked.length}`,
    };
  };
  return {
    asked,
    getResponse: async (request) => answer(request),
    async *getStreamedResponse(request): AsyncGenerator<AgentsEvent> {
      const { output, responseId = '' } = answer(request);
      yield { type: 'response_started' };
      for (const item of output)
        if (item.type === 'message' && item.role === 'assistant')
          for (const part of item.content)
            if (part.type === 'output_text') yield { type: 'output_text_delta', delta: part.text };
      const usage = { inputTokens: 100, outputTokens: 5, totalTokens: 105 };
      yield { type: 'response_done', response: { id: responseId, output, usage } } as AgentsEvent;
    },
  };
}

/** The items of a tool loop whose results fill the window. */
function longInput(): AgentInputItem[] {
  return [
    {
      role: 'user',
      content: [
        { type: 'input_text', text: 'Read all.' },
        { type: 'input_image', image: 'data:image/png;base64,iVBORw==' },
      ],
    },
    { type: 'shell_call', callId: 's1', action: { commands: ['ls'] } },
    {
      type: 'shell_call_output',
      callId: 's1',
      output: [{ stdout: 'a', stderr: '', outcome: { type: 'exit', exitCode: 0 } }],
    },
    ...Array.from({ length: 24 }, (_, at): AgentInputItem[] => [
      { type: 'reasoning', id: `rs${at}`, content: [], providerData: { encrypted_content: `sealed ${at}` } },
      {
        type: 'function_call',
        callId: `c${at}`,
        name: 'read',
        arguments: JSON.stringify({ at }),
        id: `fc${at}`,
        providerData: { kept: at },
      },
      result(`c${at}`, 'read', log(at)),
    ]).flat(),
  ];
}

function requestWith(input: Request['input'], others: Partial<Request> = {}): Request {
  return {
    systemInstructions: 'Be brief.',
    input,
    modelSettings: {},
    tools: [
      {
        type: 'function',
        name: 'read',
        description: 'Reads.',
        strict: true,
        parameters: { type: 'object', properties: {}, required: [], additionalProperties: false },
      },
    ],
    outputType: 'text',
    handoffs: [],
    tracing: false,
    ...others,
  };
}

function open(reply: (request: Request, index: number) => Output, options: LeporelloOptions = folding) {
  const inner = scripted(reply);
  return { inner, folded: leporelloModel(inner, createLeporello(options), { model: 'gpt-4o' }) };
}

describe('leporelloModel', () => {
  it('gives input that fits to the model as the very same object', async () => {
    const { inner, folded } = open(() => [said('Hi.')]);
    for (const input of ['Hello', longInput().slice(0, 7)]) {
      const reply = await folded.getResponse(requestWith(input));
      expect(reply.output).toEqual([said('Hi.')]);
      expect(inner.asked.at(-1)!.input).toBe(input);
    }
    expect(inner.asked[0]!.tools.map(({ name }) => name)).toEqual(['read', 'read_memory']);
  });

  it('changes nothing but the results that it folds', async () => {
    const { inner, folded } = open(() => [said('Hi.')]);
    const input = longInput();
    await folded.getResponse(requestWith(input));
    const sent = inner.asked[0]!.input as readonly AgentInputItem[];
    expect(sent.length).toBe(input.length);
    const changed = sent.flatMap((item, at) => (item === input[at] ? [] : [at]));
    expect(changed.length).toBeGreaterThan(5);
    for (const at of changed)
      expect(sent[at]).toEqual({
        ...input[at]!,
        output: { type: 'text', text: expect.stringMatching(/^\[Folded/) },
      });
    expect(input).toEqual(longInput());
  });

  it('sends arguments that it folds as the JSON of an object', async () => {
    const { inner, folded } = open(() => [said('Done.')]);
    const writes = Array.from({ length: 24 }, (_, at): AgentInputItem[] => [
      call(`w${at}`, 'write', { path: `notes/${at}.md`, content: log(at) }),
      result(`w${at}`, 'write', 'ok'),
    ]).flat();
    await folded.getResponse(requestWith([{ role: 'user', content: 'Write all.' }, ...writes]));
    const sent = (inner.asked[0]!.input as readonly AgentInputItem[]).filter(
      (item) => item.type === 'function_call',
    );
    const args = sent.map((item) => JSON.parse(item.arguments) as unknown);
    expect(args.filter((one) => JSON.stringify(one).includes('mem_')).length).toBeGreaterThan(3);
    expect(args.filter((one) => typeof one !== 'object')).toEqual([]);
  });

  it('answers recalls inside the reply, and puts them back for another process', async () => {
    const shared = { ...folding, store: inMemoryStore(), secret: new Uint8Array(32).fill(1) };
    const reasoning: Output[number] = {
      type: 'reasoning',
      id: 'rs',
      content: [],
      providerData: { encrypted_content: 'sealed' },
    };
    const first = open(
      ({ input }, index) =>
        index === 0
          ? [reasoning, said('Let me see. '), call('r1', 'read_memory', { id: memoryIdIn(input) })]
          : [
              said('It is well.'),
              call('c99', 'read', { at: 99 }),
              call('r2', 'read_memory', { id: memoryIdIn(input, 1) }),
            ],
      shared,
    );
    const input = longInput();
    const reply = await first.folded.getResponse(requestWith(input));
    expect(reply.output).toEqual([
      reasoning,
      said('Let me see. '),
      said('It is well.'),
      call('c99', 'read', { at: 99 }),
    ]);
    expect([reply.usage.requests, reply.usage.inputTokens, reply.responseId]).toEqual([2, 200, 'r2']);
    const recalled = first.inner.asked[1]!.input as readonly AgentInputItem[];
    expect(recalled.slice(-4)).toEqual([
      reasoning,
      said('Let me see. '),
      call('r1', 'read_memory', { id: memoryIdIn(first.inner.asked[0]!.input) }),
      result('r1', 'read_memory', log(0)),
    ]);

    // The recalls of a reply are stored while the program already has it.
    await eventually(async () => {
      const second = open(() => [said('Bye.')], shared);
      const own = result('c99', 'read', 'fine');
      await second.folded.getResponse(requestWith([...input, ...(reply.output as AgentInputItem[]), own]));
      const later = second.inner.asked[0]!.input as readonly AgentInputItem[];
      expect(later.slice(0, -5)).toEqual(recalled);
      expect(later.slice(-5)).toEqual([
        said('It is well.'),
        call('c99', 'read', { at: 99 }),
        call('r2', 'read_memory', { id: memoryIdIn(recalled, 1) }),
        result('r2', 'read_memory', log(1)),
        own,
      ]);
      expect(later.at(-1)).toEqual(own);
    });
  });

  it('streams the rounds of a reply as one', async () => {
    const { folded } = open(({ input }, index) =>
      index === 0
        ? [said('One moment. '), call('r1', 'read_memory', { id: memoryIdIn(input) })]
        : [said('Found.'), call('c99', 'read', { at: 99 })],
    );
    const events: unknown[] = [];
    for await (const event of folded.getStreamedResponse(requestWith(longInput()))) events.push(event);
    expect(events).toMatchObject([
      { type: 'response_started' },
      { type: 'output_text_delta', delta: 'One moment. ' },
      { type: 'output_text_delta', delta: 'Found.' },
      {
        type: 'response_done',
        response: {
          id: 'r2',
          output: [said('One moment. '), said('Found.'), call('c99', 'read', { at: 99 })],
          usage: { inputTokens: 200, outputTokens: 10 },
        },
      },
    ]);
  });

  it('answers the tool for notes as it answers recalls, plain and streamed', async () => {
    const script = (_: Request, index: number) =>
      index === 0
        ? [said('I note it. '), call('n1', 'save_context', { text: 'It is due on Friday.' })]
        : [said('Done.'), call('c99', 'read', { at: 99 })];
    const options = { ...folding, offerNotes: true };
    const [plain, streamed] = [open(script, options), open(script, options)];
    const { output } = await plain.folded.getResponse(requestWith(longInput()));
    expect(output).toEqual([said('I note it. '), said('Done.'), call('c99', 'read', { at: 99 })]);
    const events: unknown[] = [];
    for await (const event of streamed.folded.getStreamedResponse(requestWith(longInput())))
      events.push(event);
    expect(JSON.stringify(events)).not.toContain('save_context');
    for (const { inner } of [plain, streamed]) {
      expect(inner.asked[0]!.tools.map(({ name }) => name)).toEqual(['read', 'read_memory', 'save_context']);
      expect((inner.asked[1]!.input as AgentInputItem[]).at(-1)).toEqual(
        result('n1', 'save_context', 'Saved. The newest saved texts stay in view.'),
      );
    }
  });

  it.each([false, true])('reads structured output from the last round only, streamed: %s', async (stream) => {
    const inner = scripted(({ input }, index) =>
      index === 0
        ? [said('Let me look.'), call('m1', 'read_memory', { id: memoryIdIn(input) })]
        : [said('{"answer":"well"}')],
    );
    const read = tool({ name: 'read', description: 'Reads.', parameters: z.object({}), execute: () => '' });
    const outputType = z.object({ answer: z.string() });
    const agent = new Agent({
      name: 'Reader',
      model: leporelloModel(inner, createLeporello(folding), { model: 'gpt-4o' }),
      tools: [read],
      outputType,
    });
    const runner = new Runner({ tracingDisabled: true });
    if (!stream)
      return expect((await runner.run(agent, longInput())).finalOutput).toEqual({ answer: 'well' });
    const run = await runner.run(agent, longInput(), { stream: true });
    await run.completed;
    return expect(run.finalOutput).toEqual({ answer: 'well' });
  });

  it('leaves a conversation alone that the provider keeps', async () => {
    const { inner, folded } = open(() => [said('Hi.')]);
    const request = requestWith(longInput(), { previousResponseId: 'r0' });
    await folded.getResponse(request);
    for await (const event of folded.getStreamedResponse(request)) expect(event).toBeDefined();
    expect(inner.asked.map((asked) => asked === request)).toEqual([true, true]);
  });

  it('folds further when the provider finds the input too long, and rejects with any other error', async () => {
    const refusal = (status: number, message: string) =>
      Object.assign(new Error(message), { status, error: { message } });
    const tooLong =
      "This model's maximum context length is 9000 tokens. However, your messages resulted in 15000 tokens.";
    const { inner, folded } = open((_, index) => {
      if (index === 0) throw refusal(400, tooLong);
      return [said('Fits.')];
    });
    for await (const event of folded.getStreamedResponse(requestWith(longInput())))
      expect(event).toBeDefined();
    const [first, second] = inner.asked.map(({ input }) => JSON.stringify(input).length);
    expect(second).toBeLessThan(first!);
    const limited = refusal(401, 'no');
    const refused = open(() => {
      throw limited;
    });
    await expect(refused.folded.getResponse(requestWith(longInput()))).rejects.toBe(limited);
  });

  it('refuses anything but what createLeporello returned, at once', () => {
    const message = 'The first argument is {}, but must be what createLeporello() returned.';
    const model = scripted(() => []);
    expect(() => leporelloModel(model, {} as never)).toThrow(message);
    expect(() => leporelloProvider({ getModel: () => model }, {} as never)).toThrow(message);
  });
});
