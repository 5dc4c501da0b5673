/**
 * The programs that every runtime plays with the real packages of a framework: an agent reads 20 logs in a small window and recalls one that was folded,
 * plain, streamed, and again from a second instance on the same store. The provider is a `fetch` in the same process. Each framework is imported
 * where it is used, so that a bundle has only what its program needs.
 */
import { createLeporello, inMemoryStore, type Leporello } from '../../../src/index.ts';
import { check, digest, log, type RuntimeResult, settings as shared } from './program.ts';

/** Runs an agent whose model asks `fetch`, with this `leporello` or without any, and resolves to its answer. */
type Agent = (run: {
  readonly fetch: typeof fetch;
  readonly leporello: Leporello | undefined;
  readonly isStreamed: boolean;
}) => Promise<string>;

const settings = { ...shared, secret: new Uint8Array(32).fill(7) };

const baseURL = 'https://provider.test/v1';
const apiKey = 'dummy';
const steps = 20;
const question = 'Read all logs.';
const description = 'Returns a log.';
const answer = 'All is well.';

/** Returns a model of the AI SDK, with Leporello or without. */
async function sdkModel(fetch: typeof globalThis.fetch, leporello: Leporello | undefined) {
  const { wrapLanguageModel } = await import('ai');
  const { createOpenAI } = await import('@ai-sdk/openai');
  const inner = createOpenAI({ baseURL, apiKey, fetch }).chat('gpt-4o');
  if (!leporello) return inner;
  const { leporelloMiddleware } = await import('../../../src/adapters/ai-sdk.ts');
  return wrapLanguageModel({ model: inner, middleware: leporelloMiddleware(leporello) });
}

export const aiSdk: Agent = async ({ fetch, leporello, isStreamed }) => {
  const { generateText, isStepCount, jsonSchema, streamText, tool } = await import('ai');
  const options = {
    model: await sdkModel(fetch, leporello),
    prompt: question,
    maxRetries: 0,
    stopWhen: isStepCount(100),
    tools: {
      read: tool({
        description,
        inputSchema: jsonSchema<{ at: number }>({ type: 'object', properties: { at: { type: 'number' } } }),
        execute: ({ at }) => log(at),
      }),
    },
  };
  return isStreamed ? streamText(options).text : (await generateText(options)).text;
};

/** The parts of Mastra that are used here. */
type Mastra = {
  readonly Agent: new (
    options: object,
  ) => Readonly<
    Record<'generate' | 'stream', (question: string, options: object) => Promise<{ text: Promise<string> }>>
  >;
  readonly createTool: (options: object) => object;
};

export const mastra: Agent = async ({ fetch, leporello, isStreamed }) => {
  // It is no dependency of ours, so it is not in the bundle.
  const modules = ['agent', 'tools'].map((name) => import(`@mastra/core/${name}`) as Promise<Mastra>);
  const { Agent: AgentOf, createTool }: Mastra = Object.assign({}, ...(await Promise.all(modules)));
  const { z } = await import('zod');
  const agent = new AgentOf({
    id: 'reader',
    name: 'Reader',
    instructions: 'Be brief.',
    model: await sdkModel(fetch, leporello),
    tools: {
      read: createTool({
        id: 'read',
        description,
        inputSchema: z.object({ at: z.number() }),
        execute: async ({ at }: { readonly at: number }) => log(at),
      }),
    },
  });
  const { text } = await agent[isStreamed ? 'stream' : 'generate'](question, {
    maxSteps: 100,
    maxRetries: 0,
  });
  return text;
};

export const langchain: Agent = async ({ fetch, leporello, isStreamed }) => {
  const { createAgent, tool } = await import('langchain');
  const { ChatOpenAI } = await import('@langchain/openai');
  const { z } = await import('zod');
  const agent = createAgent({
    model: new ChatOpenAI({ model: 'gpt-4o', apiKey, maxRetries: 0, configuration: { baseURL, fetch } }),
    middleware: leporello ? [await langchainFolding(leporello)] : [],
    tools: [
      tool(({ at }: { at: number }) => log(at), {
        name: 'read',
        description,
        schema: z.object({ at: z.number() }),
      }),
    ],
  });
  const input = { messages: [{ role: 'user' as const, content: question }] };
  const config = { recursionLimit: 400 };
  if (!isStreamed) return (await agent.invoke(input, config)).messages.at(-1)!.text;
  let text = '';
  for await (const [chunk] of await agent.stream(input, { ...config, streamMode: 'messages' }))
    if (chunk.getType() === 'ai') text += chunk.text;
  return text;
};

async function langchainFolding(leporello: Leporello) {
  const { leporelloMiddleware } = await import('../../../src/adapters/langchain.ts');
  return leporelloMiddleware(leporello);
}

export const agents: Agent = async ({ fetch, leporello, isStreamed }) => {
  const { Agent: AgentOf, OpenAIProvider, Runner, tool } = await import('@openai/agents');
  const { default: OpenAI } = await import('openai');
  const { z } = await import('zod');
  const openAIClient = new OpenAI({ baseURL, apiKey, fetch, maxRetries: 0 });
  const provider = new OpenAIProvider({ openAIClient, useResponses: false });
  const folding = async (own: Leporello) => {
    const { leporelloProvider } = await import('../../../src/adapters/openai-agents.ts');
    return leporelloProvider(provider, own);
  };
  const modelProvider = leporello ? await folding(leporello) : provider;
  const runner = new Runner({ tracingDisabled: true, modelProvider });
  const agent = new AgentOf({
    name: 'Reader',
    model: 'gpt-4o',
    tools: [
      tool({
        name: 'read',
        description,
        parameters: z.object({ at: z.number() }),
        execute: ({ at }) => log(at),
      }),
    ],
  });
  if (!isStreamed) return (await runner.run(agent, question, { maxTurns: 100 })).finalOutput ?? '';
  const result = await runner.run(agent, question, { maxTurns: 100, stream: true });
  await result.completed;
  return result.finalOutput ?? '';
};

/** Plays an agent without Leporello. Rejects if its framework does not run here. */
export async function playAlone(agent: Agent): Promise<void> {
  const { said } = await played(agent, undefined, false);
  check(said.includes(answer), `the program saw ${said.slice(0, 200)}`);
}

/** Plays everything. Rejects when something is not as expected. */
export async function play(agent: Agent): Promise<RuntimeResult> {
  const store = inMemoryStore();
  const folded = async (isStreamed: boolean) => {
    const { said, sent } = await played(agent, createLeporello({ ...settings, store }), isStreamed);
    check(said.includes(answer) && !said.includes('mem_'), `the program saw ${said.slice(0, 200)}`);
    check(sent.length === steps + 2, `${sent.length} requests were sent`);
    check(
      sent.at(-2)!.includes('[Folded') && !sent.at(-2)!.includes('log 0 line 59 is'),
      'nothing was folded',
    );
    check(sent.at(-1)!.includes('log 0 line 59 is'), 'nothing was recalled');
    return sent;
  };
  const plain = await folded(false);
  const streamed = await folded(true);
  const again = await folded(false);
  check(again.join() === plain.join(), 'a second instance sent other bytes');
  return {
    fold: await digest(plain.at(-2)!),
    recall: await digest(plain.at(-1)!),
    stream: await digest(streamed.join()),
    restart: await digest(again.join()),
  };
}

async function played(agent: Agent, leporello: Leporello | undefined, isStreamed: boolean) {
  const sent: string[] = [];
  const said = await agent({ fetch: scripted(sent), leporello, isStreamed });
  return { said, sent };
}

/** A model that reads one log after the other, recalls the first one if it was folded, and answers. */
function scripted(sent: string[]): typeof fetch {
  return async (input, init) => {
    const body = await new Request(input, init).text();
    const at = sent.push(body) - 1;
    const id = /mem_[a-z0-9]{16}/.exec(body)?.[0];
    const isRecalling = at === steps && id !== undefined;
    const call =
      at < steps
        ? { id: `c${at}`, type: 'function', function: { name: 'read', arguments: JSON.stringify({ at }) } }
        : {
            id: 'r1',
            type: 'function',
            function: { name: 'read_memory', arguments: JSON.stringify({ id }) },
          };
    const isCalling = at < steps || isRecalling;
    const message = {
      role: 'assistant',
      content: isCalling ? null : answer,
      ...(isCalling && { tool_calls: [call] }),
    };
    const finish = isCalling ? 'tool_calls' : 'stop';
    const head = { id: `x${at}`, created: 1, model: 'gpt-4o' };
    const usage = { prompt_tokens: 100, completion_tokens: 5, total_tokens: 105 };
    if (!body.includes('"stream":true'))
      return Response.json({
        ...head,
        object: 'chat.completion',
        choices: [{ index: 0, message, finish_reason: finish }],
        usage,
      });
    const delta = isCalling ? { ...message, tool_calls: [{ index: 0, ...call }] } : message;
    const chunk = (choices: readonly object[], more: object = {}) =>
      `data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', choices, ...more })}\n\n`;
    const text = [
      chunk([{ index: 0, delta, finish_reason: null }]),
      chunk([{ index: 0, delta: {}, finish_reason: finish }]),
      chunk([], { usage }),
      'data: [DONE]\n\n',
    ].join('');
    return new Response(text, { headers: { 'content-type': 'text/event-stream' } });
  };
}
