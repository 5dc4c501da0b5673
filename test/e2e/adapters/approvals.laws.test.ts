/**
 * The long loop with what an adapter must leave alone: an image of the user, searches that the provider ran itself, before the loop and in replies of it,
 * reasoning, and a call that a person has to approve, so that the program stops in the middle and goes on later. Each adapter plays it with the real
 * package, plain, streamed and thinking.
 */
import { createAnthropic } from '@ai-sdk/anthropic';
import { ChatAnthropic } from '@langchain/anthropic';
import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from '@langchain/core/messages';
import { Command, MemorySaver } from '@langchain/langgraph';
import { Agent, type AgentInputItem, OpenAIProvider, Runner, tool as agentsTool } from '@openai/agents';
import {
  type ModelMessage,
  generateText,
  isStepCount,
  streamText,
  tool as sdkTool,
  wrapLanguageModel,
} from 'ai';
import {
  type AgentMiddleware,
  type ToolCallRequest,
  createAgent,
  humanInTheLoopMiddleware,
  tool as langchainTool,
} from 'langchain';
import OpenAI from 'openai';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { leporelloMiddleware } from '../../../src/adapters/ai-sdk.ts';
import { leporelloMiddleware as langchainMiddleware } from '../../../src/adapters/langchain.ts';
import { leporelloProvider } from '../../../src/adapters/openai-agents.ts';
import { createLeporello, type FoldReport } from '../../../src/index.ts';
import {
  contentOf,
  expectedTexts,
  paths,
  question,
  requestsOfRun,
  searching,
  settings,
  tool,
} from './long-loop.ts';
import { expectFoldedRun, playLoop, ways } from './play-loop.ts';

type Way = (typeof ways)[number][1];
type Noting = {
  readonly onPrepared: (prepared: { readonly report: FoldReport }) => void;
};
type Seen = {
  /** The texts of the model, in order. */
  readonly said: string;
  readonly results: readonly unknown[];
  readonly approvals: number;
  /** Everything that the program keeps or was shown. */
  readonly state: unknown;
};
type Play = (url: string, read: (args: Path) => string, way: Way, noting: Noting) => Promise<Seen>;
type Path = { readonly path: string };

const apiKey = 'dummy';
const inputSchema = z.object({ path: z.string() });
/** The path that a person has to approve. */
const asked = 'log-30';
/** One red pixel. */
const png =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==';

const aiSdk: Play = async (url, read, { streaming }, noting) => {
  const anthropic = createAnthropic({ baseURL: `${url}/v1`, apiKey });
  const middleware = leporelloMiddleware(createLeporello(settings), noting);
  const found = [
    {
      type: 'web_search_result',
      url: 'https://example.com',
      title: 'The project',
      pageAge: null,
      encryptedContent: 'c2VjcmV0',
    },
  ];
  const search = { toolCallId: 'srvtoolu_1', toolName: 'web_search' } as const;
  const messages: ModelMessage[] = [
    { role: 'user', content: 'Search for the project.' },
    {
      role: 'assistant',
      content: [
        { type: 'tool-call', ...search, input: { query: 'project' }, providerExecuted: true },
        { type: 'tool-result', ...search, output: { type: 'json', value: found } },
        { type: 'text', text: 'Found.' },
      ],
    },
    {
      role: 'user',
      content: [
        { type: 'text', text: question },
        { type: 'file', mediaType: 'image/png', data: png },
      ],
    },
  ];
  const first = messages.length;
  let approvals = 0;
  for (;;) {
    const options = {
      model: wrapLanguageModel({ model: anthropic('claude-sonnet-5'), middleware }),
      messages,
      maxRetries: 0,
      stopWhen: isStepCount(100),
      tools: {
        web_search: anthropic.tools.webSearch_20250305({}),
        [tool.name]: sdkTool({
          description: tool.description,
          inputSchema,
          execute: read,
          needsApproval: ({ path }: Path) => path === asked,
        }),
      },
    };
    const result = streaming ? streamText(options) : await generateText(options);
    const content = await result.content;
    messages.push(...(await result.responseMessages));
    const requests = content.filter((part) => part.type === 'tool-approval-request');
    if (requests.length === 0) break;
    approvals += requests.length;
    messages.push({
      role: 'tool',
      content: requests.map(({ approvalId }) => ({
        type: 'tool-approval-response',
        approvalId,
        approved: true,
      })),
    });
  }
  const parts = messages
    .slice(first)
    .flatMap(({ content }): readonly { readonly type: string }[] =>
      typeof content === 'string' ? [] : content,
    );
  return {
    said: parts.map((part) => ('text' in part && part.type === 'text' ? part.text : '')).join(''),
    results: parts.flatMap((part) =>
      'toolName' in part && part.toolName === tool.name && 'output' in part
        ? [(part.output as { readonly value: unknown }).value]
        : [],
    ),
    approvals,
    state: messages,
  };
};

const isAsked = ({ toolCall }: ToolCallRequest) => toolCall.args['path'] === asked;
/** The types of this middleware use another zod than ours. */
const approving = (humanInTheLoopMiddleware as unknown as (options: object) => AgentMiddleware)({
  interruptOn: { [tool.name]: { allowedDecisions: ['approve'], when: isAsked } },
});

const langchain: Play = async (url, read, { streaming }, noting) => {
  const config = { recursionLimit: 400, configurable: { thread_id: 'one' } };
  const agent = createAgent({
    model: new ChatAnthropic({
      model: 'claude-sonnet-5',
      apiKey,
      maxRetries: 0,
      maxTokens: 1_000,
      anthropicApiUrl: url,
    }),
    checkpointer: new MemorySaver(),
    middleware: [approving, langchainMiddleware(createLeporello(settings), noting)],
    tools: [langchainTool(read, { ...tool, schema: inputSchema })],
  });
  const result = {
    type: 'web_search_result',
    url: 'https://example.com',
    title: 'The project',
    encrypted_content: 'c2VjcmV0',
  };
  const start = {
    messages: [
      new HumanMessage('Search for the project.'),
      new AIMessage({
        content: [
          { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'project' } },
          { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [result] },
          { type: 'text', text: 'Found.' },
        ],
      }),
      new HumanMessage({
        content: [
          { type: 'text', text: question },
          { type: 'image_url', image_url: { url: `data:image/png;base64,${png}` } },
        ],
      }),
    ],
  };
  const events: unknown[] = [];
  const go = async (input: typeof start | Command) => {
    if (!streaming) await agent.invoke(input as typeof start, config);
    else
      for await (const event of await agent.stream(input as typeof start, {
        ...config,
        streamMode: ['messages', 'updates'],
      }))
        events.push(event);
    return agent.graph.getState(config);
  };
  let approvals = 0;
  let state = await go(start);
  while (state.tasks.some(({ interrupts }) => interrupts.length > 0)) {
    approvals++;
    state = await go(new Command({ resume: { decisions: [{ type: 'approve' }] } }));
  }
  const { messages } = state.values as { readonly messages: readonly BaseMessage[] };
  const own = messages.slice(start.messages.length);
  return {
    said: own.map((message) => (AIMessage.isInstance(message) ? message.text : '')).join(''),
    results: own.flatMap((message) => (ToolMessage.isInstance(message) ? [message.content] : [])),
    approvals,
    state: [messages, events],
  };
};

const agents: Play = async (url, read, { streaming }, noting) => {
  const openAIClient = new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 });
  const modelProvider = leporelloProvider(
    new OpenAIProvider({ openAIClient, useResponses: true }),
    createLeporello(settings),
    noting,
  );
  const runner = new Runner({ tracingDisabled: true, modelProvider });
  const agent = new Agent({
    name: 'Reader',
    instructions: 'Be brief.',
    model: 'gpt-5',
    tools: [
      agentsTool({
        ...tool,
        parameters: inputSchema,
        execute: (args) => read(args),
        needsApproval: async (_, { path }) => path === asked,
      }),
    ],
  });
  const start: AgentInputItem[] = [
    { role: 'user', content: 'Search for the project.' },
    {
      type: 'hosted_tool_call',
      id: 'ws_1',
      name: 'web_search_call',
      status: 'completed',
      providerData: { type: 'web_search_call', action: { type: 'search', query: 'project' } },
    },
    { role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: 'Found.' }] },
    {
      role: 'user',
      content: [
        { type: 'input_text', text: question },
        { type: 'input_image', image: `data:image/png;base64,${png}` },
      ],
    },
  ];
  const events: unknown[] = [];
  const go = async (input: Parameters<typeof runner.run<typeof agent>>[1]) => {
    if (!streaming) return runner.run(agent, input, { maxTurns: 100 });
    const result = await runner.run(agent, input, { maxTurns: 100, stream: true });
    for await (const event of result) events.push(event);
    await result.completed;
    return result;
  };
  let approvals = 0;
  let result = await go(start);
  while (result.interruptions.length > 0) {
    for (const item of result.interruptions) {
      approvals++;
      result.state.approve(item);
    }
    result = await go(result.state);
  }
  const own = result.history.slice(start.length);
  return {
    said: own
      .flatMap((item) => ('role' in item && item.role === 'assistant' ? item.content : []))
      .map((part) => (part.type === 'output_text' ? part.text : ''))
      .join(''),
    results: own.flatMap((item) =>
      item.type === 'function_call_result' ? [(item.output as { readonly text: string }).text] : [],
    ),
    approvals,
    state: [result.history, events],
  };
};

/** The types of the parts on the wire that no fold may change: images, reasoning, and what the provider searched, ran and found. */
const kept =
  /^(?:(?:input_)?image|thinking|reasoning|server_tool_use|web_search_tool_result|web_search_call)$/;

function keptParts(value: unknown): readonly string[] {
  if (typeof value !== 'object' || value === null) return [];
  const { type } = value as { readonly type?: unknown };
  if (typeof type === 'string' && kept.test(type)) return [JSON.stringify(value)];
  return Object.entries(value).flatMap(([key, inner]) => (key === 'tools' ? [] : keptParts(inner)));
}

/** `parts`: how many parts of the first request are kept, an image and a search. */
describe.each([
  ['leporello/ai-sdk', aiSdk, 3],
  ['leporello/langchain', langchain, 3],
  ['leporello/openai-agents', agents, 2],
] as const)('%s', (_, play, parts) => {
  it.each(ways)('leaves images, approvals and results of the provider alone, %s', async (_way, way) => {
    const reports: FoldReport[] = [];
    const onPrepared: Noting['onPrepared'] = ({ report }) => void reports.push(report);
    const run = await playLoop({ ...way, searches: searching }, (url, read) =>
      play(url, read, way, { onPrepared }),
    );
    expect(run.approvals).toBe(1);
    expect(run.said).toBe(expectedTexts.join(''));
    expect(run.results).toEqual(paths.map(contentOf));
    expectFoldedRun(run, reports, [run.state]);
    const sent = run.sent.map((body) => keptParts(JSON.parse(body)));
    expect(sent[0]!.length).toBe(parts);
    for (const [at, now] of sent.entries())
      expect(now.slice(0, sent[at - 1]?.length ?? 0)).toEqual(sent[at - 1] ?? []);
    // The last request has what the provider said in all replies before, and the program has it, too.
    const last = sent.at(-1)!;
    const thoughts = last.filter((part) => /"type":"(?:thinking|reasoning)"/.test(part));
    expect(thoughts.length).toBe(way.thinks ? requestsOfRun - 1 : 0);
    for (const index of searching) {
      const id = new RegExp(`"(?:srvtoolu|ws)_${index}"`);
      expect(last.filter((part) => id.test(part)).length).toBe(parts - 1);
      expect(JSON.stringify(run.state)).toMatch(id);
    }
  });
});
