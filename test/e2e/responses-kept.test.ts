/**
 * Tests a Responses client that continues a reply with private recalls by `previous_response_id`. The provider stores every response and
 * refuses a request that leaves a call without output; it must accept them all.
 */
import OpenAI from 'openai';
import { describe, expect, it } from 'vitest';
import { inMemoryStore } from '../../src/store/in-memory.ts';
import type { Store } from '../../src/store/store.ts';
import type { Receipt } from '../../src/receipts/receipt.ts';
import type { JsonObject, Reply, ScriptRequest, Turn, TurnPart } from '../support/fake-provider/script.ts';
import { longBody, post, requestBody } from './bodies.ts';
import { type Stack, startStack } from './stack.ts';

type Params = OpenAI.Responses.ResponseCreateParamsNonStreaming;
type Body = Pick<Params, 'model' | 'tools' | 'input' | 'previous_response_id' | 'store'>;
type Play = Pick<Turn, 'parts' | 'finish'>;

const small = { models: { '*': { windowTokens: 12_000 } } };
const long: Body = { ...(JSON.parse(longBody('responses', 30)) as Body), store: true };
const text = (said: string): TurnPart => ({ type: 'text', text: said });
const call = (name: string, args: JsonObject = {}): TurnPart => ({
  type: 'tool-call',
  name,
  arguments: args,
});
const thought: TurnPart = { type: 'thinking', text: 'Which was it?', signature: 'c2VhbGVk' };
/** A recall; `plays` adds the id. */
const recall = call('read_memory', { query: 'step 0' });

/** Plays one turn per request. A recall gets the id of a stub in the request. */
function plays(...turns: readonly Play[]): (request: ScriptRequest) => Turn {
  return ({ index, body }) => {
    const id = /mem_[0-9a-z]{16}/.exec(JSON.stringify(body))?.[0] ?? 'mem_none';
    const { parts, ...rest } = turns[index]!;
    return {
      type: 'turn',
      ...rest,
      parts: parts.map((part) => (part === recall ? call('read_memory', { id }) : part)),
    };
  };
}

function clientOf(url: string, apiKey = 'dummy', defaultHeaders: Record<string, string> = {}): OpenAI {
  return new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0, defaultHeaders });
}

/** Returns the receipts, newest first. */
async function receiptsOf({ url }: Stack): Promise<readonly Receipt[]> {
  const response = await fetch(`${url}/_leporello/receipts`, { headers: { authorization: 'Bearer dummy' } });
  return ((await response.json()) as { receipts: Receipt[] }).receipts;
}

function ask(client: OpenAI, body: Body, streamed: boolean): Promise<OpenAI.Responses.Response> {
  return streamed ? client.responses.stream(body).finalResponse() : client.responses.create(body);
}

/** Returns the client's next request: the outputs of the calls in the reply, or a text. */
function nextOf(reply: OpenAI.Responses.Response): Body {
  const outputs = reply.output.flatMap((item) =>
    item.type === 'function_call'
      ? [{ type: 'function_call_output' as const, call_id: item.call_id, output: 'ok' }]
      : [],
  );
  const { model, tools } = long;
  return {
    model: model!,
    tools: tools!,
    previous_response_id: reply.id,
    input: outputs.length > 0 ? outputs : 'Thank you.',
  };
}

function sentTo({ provider }: Stack, at: number): JsonObject & { readonly input: unknown } {
  return JSON.parse(new TextDecoder().decode(provider.requests[at]!.body)) as JsonObject & { input: unknown };
}

/** Summarizes each item in a few words: text, call name, or the call that it is the output of. */
function outline(input: unknown): readonly string[] {
  if (typeof input === 'string') return [input];
  return (input as readonly JsonObject[]).map((item) => {
    const { type, name, output, call_id: id } = item;
    if (type === 'function_call') return `${String(name)} ${String(id)}`;
    if (type !== 'function_call_output') return JSON.stringify(item['content'] ?? type);
    const content = /Memory was not read|No more memory|job 0: step 0/.exec(String(output))?.[0];
    return `output of ${String(id)}: ${content ?? String(output)}`;
  });
}

const cases: readonly {
  readonly what: string;
  readonly turns: readonly Play[];
  /** The `previous_response_id` sent for the next request, and its input if it differs from the client's. */
  readonly name: string;
  readonly input?: readonly string[];
  readonly maxRounds?: number;
}[] = [
  {
    what: 'one recall',
    turns: [{ parts: [text('Let me look. '), recall] }, { parts: [text('None.')] }],
    name: 'resp_1',
  },
  {
    what: 'several rounds',
    turns: [{ parts: [recall, recall] }, { parts: [recall] }, { parts: [text('None.')] }],
    name: 'resp_2',
  },
  {
    what: 'reasoning before each',
    turns: [{ parts: [thought, recall] }, { parts: [thought, text('None.')] }],
    name: 'resp_1',
  },
  {
    what: "a recall together with a call of the client's tool",
    turns: [{ parts: [thought, recall, call('run'), recall] }],
    name: 'resp_0',
    input: [
      'output of call_0_1: job 0: step 0',
      'output of call_0_3: job 0: step 0',
      'output of call_0_2: ok',
    ],
  },
  {
    what: "a recall, then one together with calls of the client's tools",
    turns: [{ parts: [recall] }, { parts: [call('run'), call('run'), recall] }],
    name: 'resp_1',
    input: ['output of call_1_2: job 0: step 0', 'output of call_1_0: ok', 'output of call_1_1: ok'],
  },
  {
    what: "a recall, then only calls of the client's tools",
    turns: [{ parts: [recall] }, { parts: [call('run')] }],
    name: 'resp_1',
    input: ['output of call_1_0: ok'],
  },
  {
    what: 'an answer that is cut off after a recall',
    turns: [{ parts: [recall] }, { parts: [text('There are')], finish: 'max_output_tokens' }],
    name: 'resp_1',
  },
  {
    what: 'a recall that is cut off',
    turns: [{ parts: [text('Let me look. '), recall], finish: 'max_output_tokens' }],
    name: 'resp_0',
    input: ['output of call_0_1: Memory was not read', '"Thank you."'],
  },
  {
    what: 'a model that keeps recalling',
    turns: [{ parts: [recall] }, { parts: [recall] }, { parts: [text('Once more. '), recall] }],
    name: 'resp_2',
    input: ['output of call_2_1: Memory was not read', '"Thank you."'],
    maxRounds: 1,
  },
];

describe.each([false, true])(
  'a client that continues a reply stored by the provider (streamed: %s)',
  (streamed) => {
    it.each(cases)(
      'is accepted after $what',
      async ({ turns, name, input = ['Thank you.'], maxRounds = 5 }) => {
        const script = plays(...turns, { parts: [text('Bye.')] }, { parts: [text('Yes?')] });
        await using stack = await startStack(script, { ...small, recall: { maxRounds } });
        const client = clientOf(stack.url);
        const first = await ask(client, long, streamed);
        expect(JSON.stringify(first.output)).not.toContain('read_memory');
        const second = await ask(client, nextOf(first), streamed);
        expect(second.output_text).toBe('Bye.');
        const sent = sentTo(stack, turns.length);
        expect([sent['previous_response_id'], outline(sent.input)]).toEqual([name, input]);
        expect(sent['tools']).toEqual(long.tools);
        expect((await ask(client, nextOf(second), streamed)).output_text).toBe('Yes?');
        expect(sentTo(stack, turns.length + 1)['previous_response_id']).toBe(second.id);
        // No request was refused and sent again.
        expect(stack.provider.requests.length).toBe(turns.length + 2);
      },
    );

    it('is accepted after a restart, and by another gateway on the same store', async () => {
      const turns = [{ parts: [recall] }, { parts: [recall, call('run')] }];
      const bye = { parts: [text('Bye.')] };
      await using stack = await startStack(plays(...turns, bye, bye), small);
      const first = await ask(clientOf(stack.url), long, streamed);
      const other = clientOf(await stack.another());
      expect((await ask(other, nextOf(first), streamed)).output_text).toBe('Bye.');
      await stack.restart();
      expect((await ask(clientOf(stack.url), nextOf(first), streamed)).output_text).toBe('Bye.');
      expect(sentTo(stack, 3)).toEqual(sentTo(stack, 2));
      expect(stack.provider.requests.length).toBe(4);
    });

    it('is accepted while the store is down, by the gateway that answered the recall', async () => {
      const store = inMemoryStore();
      const reply = plays(
        { parts: [recall] },
        { parts: [text('None.'), call('run')] },
        { parts: [text('Bye.')] },
      );
      const script = async (asked: ScriptRequest) => {
        if (asked.index > 0) await store.close();
        return reply(asked);
      };
      await using stack = await startStack(script, small, { store });
      const first = await ask(clientOf(stack.url), long, streamed);
      expect((await ask(clientOf(stack.url), nextOf(first), streamed)).output_text).toBe('Bye.');
    });

    it('is accepted with x-leporello-bypass: 1, from the process and after a restart', async () => {
      const turns = [{ parts: [recall] }, { parts: [text('None.'), call('run')] }];
      const bye = { parts: [text('Bye.')] };
      await using stack = await startStack(plays(...turns, bye, bye), small);
      const first = await ask(clientOf(stack.url), long, streamed);
      const bypass = { 'x-leporello-bypass': '1' };
      expect((await ask(clientOf(stack.url, 'dummy', bypass), nextOf(first), streamed)).output_text).toBe(
        'Bye.',
      );
      await stack.restart();
      expect((await ask(clientOf(stack.url, 'dummy', bypass), nextOf(first), streamed)).output_text).toBe(
        'Bye.',
      );
      expect([2, 3].map((at) => sentTo(stack, at)['previous_response_id'])).toEqual(['resp_1', 'resp_1']);
      expect((await receiptsOf(stack)).map(({ outcome }) => outcome)).toEqual([
        { status: 'untouched', reason: 'bypass' },
      ]);
    });

    it('is accepted when its fold is late, by the gateway that answered the recall', async () => {
      const memory = inMemoryStore();
      let hangs = false;
      const never = new Promise<never>(() => {});
      const store: Store = {
        ...memory,
        getMany: (keys) => (hangs ? never : memory.getMany(keys)),
      };
      const turns = [{ parts: [recall] }, { parts: [recall, call('run')] }, { parts: [text('Bye.')] }];
      await using stack = await startStack(plays(...turns), { ...small, prepareDeadlineMs: 500 }, { store });
      const first = await ask(clientOf(stack.url), long, streamed);
      hangs = true;
      expect((await ask(clientOf(stack.url), nextOf(first), streamed)).output_text).toBe('Bye.');
      expect(sentTo(stack, 2)['previous_response_id']).toBe('resp_1');
      expect(stack.provider.requests.length).toBe(3);
      expect((await receiptsOf(stack))[0]).toMatchObject({ model: 'gpt-4o', outcome: { status: 'failed' } });
    });

    // A client that received nothing of the stream does not know the reply's id.
    it.runIf(streamed)(
      'is accepted after a continuation that failed: the recall is answered then',
      async () => {
        const bye = plays({ parts: [recall] }, { parts: [] }, { parts: [text('Bye.')] });
        const script = (asked: ScriptRequest): Reply =>
          asked.index === 1 ? { type: 'error', status: 400 } : bye(asked);
        await using stack = await startStack(script, small);
        const client = clientOf(stack.url);
        await expect(ask(client, long, streamed)).rejects.toThrow();
        const { model, tools } = long;
        const next = { model: model!, tools: tools!, previous_response_id: 'resp_0', input: 'Thank you.' };
        expect((await ask(client, next, streamed)).output_text).toBe('Bye.');
        expect(outline(sentTo(stack, 2).input)).toEqual([
          'output of call_0_0: job 0: step 0',
          '"Thank you."',
        ]);
      },
    );

    it('is sent unchanged if the store does not answer in time, and the receipt says so', async () => {
      const store = inMemoryStore();
      const turns = [{ parts: [text('Hello.')] }, { parts: [text('Bye.')] }];
      await using stack = await startStack(plays(...turns), small, { store });
      const first = await ask(clientOf(stack.url), long, streamed);
      await store.close();
      const client = clientOf(stack.url, 'dummy', { 'x-leporello-bypass': '1' });
      expect((await ask(client, nextOf(first), streamed)).output_text).toBe('Bye.');
      expect(sentTo(stack, 1)['previous_response_id']).toBe(first.id);
      expect((await receiptsOf(stack))[0]).toMatchObject({
        outcome: {
          status: 'untouched',
          reason:
            'bypass; it continues the reply that it names, because the store did not answer in time whether the provider knows another name',
        },
      });
    });

    it("gets the provider's error for its own mistake", async () => {
      await using stack = await startStack(plays({ parts: [recall, call('run')] }), small);
      const first = await ask(clientOf(stack.url), long, streamed);
      const mistaken = { ...nextOf(first), input: 'I have no output for you.' };
      await expect(ask(clientOf(stack.url), mistaken, streamed)).rejects.toThrow(
        'No tool output found for function call call_0_1.',
      );
      expect(stack.provider.requests.length).toBe(2);
    });

    it('is sent unchanged if the reply was not stored, and for another tenant', async () => {
      const turns = plays({ parts: [recall, call('run')] }, { parts: [recall, call('run')] });
      await using stack = await startStack(turns, small);
      const notStored = await ask(clientOf(stack.url), { ...long, store: false }, streamed);
      await expect(ask(clientOf(stack.url), nextOf(notStored), streamed)).rejects.toMatchObject({
        code: 'previous_response_not_found',
      });
      const stored = await ask(clientOf(stack.url), long, streamed);
      await expect(ask(clientOf(stack.url, 'other'), nextOf(stored), streamed)).rejects.toThrow(
        'No tool output found for function call call_1_0.',
      );
      expect([1, 3].map((at) => outline(sentTo(stack, at).input))).toEqual([
        ['output of call_0_1: ok'],
        ['output of call_1_1: ok'],
      ]);
    });
  },
);

describe('a conversation stored by the provider', () => {
  it('is offered no recall tool, so that it contains no private call', async () => {
    await using stack = await startStack(plays({ parts: [text('Hello.')] }), small);
    const body = requestBody('responses', { ...long, conversation: 'conv_1' });
    expect((await post(stack.url, 'responses', body)).status).toBe(200);
    expect(new TextDecoder().decode(stack.provider.requests[0]!.body)).toBe(body);
  });
});
