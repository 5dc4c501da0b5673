/**
 * Plays the long loop with an agent of Mastra, whose model is wrapped by the middleware of `leporello/ai-sdk`: the framework's own messages and memory
 * must be complete, and the provider must get what it gets through the gateway. Mastra is installed from the npm registry, once; if that fails, these tests
 * are skipped, and a line says so.
 */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { type LanguageModel, wrapLanguageModel } from 'ai';
import { beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type AdapterOptions, leporelloMiddleware } from '../../../src/adapters/ai-sdk.ts';
import { createLeporello, type FoldReport, inMemoryStore } from '../../../src/index.ts';
import { installPackage, mastraPackage } from '../../clients/install.ts';
import {
  contentOf,
  expectedTexts,
  firstDifference,
  paths,
  question,
  searching,
  settings,
  tool,
} from './long-loop.ts';
import { type AtUrl, expectFoldedRun, expectSameEdits, playLoop, ways } from './play-loop.ts';

const folder = await installPackage(mastraPackage).catch((error: unknown) => {
  process.stdout.write(`Skipped: the tests with Mastra, which could not be installed. ${String(error)}\n`);
  return undefined;
});

/** The parts of Mastra that are used here. */
type Result = {
  readonly runId: string;
  readonly finishReason?: string;
  readonly suspendPayload?: { readonly toolCallId: string };
  readonly messages: readonly MastraMessage[];
  readonly steps: readonly {
    readonly text: string;
    readonly reasoningText?: string;
    readonly toolResults: readonly { readonly payload: { readonly result: unknown } }[];
  }[];
};
type Streamed = { readonly fullStream: AsyncIterable<unknown>; getFullOutput(): Promise<Result> };
type MastraMessage = {
  readonly content: { readonly parts: readonly MastraPart[] };
};
type MastraPart = {
  readonly type: string;
  readonly toolInvocation?: { readonly result?: unknown };
};
type MastraAgent = {
  generate(messages: unknown, options: object): Promise<Result>;
  stream(messages: unknown, options: object): Promise<Streamed>;
  approveToolCallGenerate(options: object): Promise<Result>;
  approveToolCall(options: object): Promise<Streamed>;
};
type Mastra = {
  readonly Agent: new (options: object) => MastraAgent;
  readonly createTool: (options: object) => object;
  readonly Mastra: new (options: object) => { getAgent(name: string): MastraAgent };
  readonly InMemoryStore: new () => object;
};

let mastra: Mastra;

beforeAll(async () => {
  if (folder === undefined) return;
  const from = createRequire(join(folder, 'package.json'));
  const names = ['agent', 'tools', 'mastra', 'storage'].map((name) => from.resolve(`@mastra/core/${name}`));
  const modules = await Promise.all(names.map((name) => import(pathToFileURL(name).href) as Promise<Mastra>));
  mastra = Object.assign({}, ...modules) as Mastra;
}, 60_000);

type Wrapped = Parameters<typeof wrapLanguageModel>[0]['model'];

const apiKey = 'dummy';
/** A tool that Anthropic runs. The scripted provider uses it without being asked. */
const search = createAnthropic({ apiKey }).tools.webSearch_20250305({});
const providers: Readonly<Record<string, AtUrl<LanguageModel>>> = {
  'chat completions': (url, fetch) =>
    createOpenAI({ baseURL: `${url}/v1`, apiKey, ...(fetch && { fetch }) }).chat('gpt-4o'),
  messages: (url, fetch) =>
    createAnthropic({ baseURL: `${url}/v1`, apiKey, ...(fetch && { fetch }) })('claude-sonnet-5'),
};

/** One red pixel. */
const png =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==';
/** The path that a person has to approve. */
const asked = 'log-30';

type Run = {
  readonly modelAt: (url: string) => LanguageModel;
  readonly streaming: boolean;
  readonly thinks: boolean;
  readonly searches?: readonly number[];
};

/** Plays the conversation. One call waits for approval, and the question has an image. Returns everything that the program saw. */
const play = ({ modelAt, streaming, ...says }: Run) =>
  playLoop(says, async (url, read) => {
    const reader = new mastra.Agent({
      id: 'reader',
      name: 'Reader',
      instructions: 'Be brief.',
      model: modelAt(url),
      tools: {
        web_search: search,
        [tool.name]: mastra.createTool({
          id: tool.name,
          description: tool.description,
          inputSchema: z.object({ path: z.string() }),
          requireApproval: ({ path }: { readonly path: string }) => path === asked,
          execute: async (args: { readonly path: string }) => read(args),
        }),
      },
    });
    const app = new mastra.Mastra({ agents: { reader }, storage: new mastra.InMemoryStore(), logger: false });
    const agent = app.getAgent('reader');
    const content = [
      { type: 'text', text: question },
      { type: 'image', image: `data:image/png;base64,${png}`, mimeType: 'image/png' },
    ];
    const options = { maxSteps: 100, maxRetries: 0, modelSettings: { maxOutputTokens: 1_000 } };
    const events: unknown[] = [];
    const whole = async (stream: Streamed) => {
      for await (const event of stream.fullStream) events.push(event);
      return stream.getFullOutput();
    };
    const messages = [{ role: 'user', content }];
    let result = streaming
      ? await whole(await agent.stream(messages, options))
      : await agent.generate(messages, options);
    const results = [result];
    while (result.finishReason === 'suspended') {
      const { runId, suspendPayload } = result;
      const approval = { ...options, runId, toolCallId: suspendPayload?.toolCallId };
      result = streaming
        ? await whole(await agent.approveToolCall(approval))
        : await agent.approveToolCallGenerate(approval);
      results.push(result);
    }
    return { results, events };
  });

function wrapped(
  modelAt: AtUrl<LanguageModel>,
  options: AdapterOptions = {},
  leporello = createLeporello(settings),
): Run['modelAt'] {
  const middleware = leporelloMiddleware(leporello, options);
  return (url) => wrapLanguageModel({ model: modelAt(url) as Wrapped, middleware });
}

/** Leaves out the raw bodies that Mastra shows beside a reply: they are what was sent, and what the provider answered. */
function withoutBodies(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (key, inner: unknown) => (key === 'body' ? undefined : inner)));
}

describe.skipIf(folder === undefined).each(Object.entries(providers))(
  'leporelloMiddleware over %s',
  (_, modelAt) => {
    it.each(ways)('runs 60 steps through folds and hidden recalls, %s', async (_name, way) => {
      const reports: FoldReport[] = [];
      const noted = wrapped(modelAt, { onPrepared: ({ report }) => void reports.push(report) });
      const run = await play({ ...way, searches: searching, modelAt: noted });
      // The first result waits for the approval; the second one has the whole run.
      const [waiting, { steps, messages }] = [run.results[0]!, run.results.at(-1)!];
      expect([run.results.length, waiting.steps.length]).toEqual([2, paths.indexOf(asked)]);
      expect(steps.map(({ text }) => text).filter((text) => text !== '')).toEqual(expectedTexts);
      const logs = paths.map(contentOf);
      const results = steps.flatMap(({ toolResults }) => toolResults.map(({ payload }) => payload.result));
      const isLog = (result: unknown) => typeof result === 'string';
      expect(results.filter(isLog)).toEqual(logs);
      const found = results.filter((result) => !isLog(result));
      // Mastra's own messages are complete. After the approval it repeats the parts of before.
      const parts = messages.flatMap(({ content }) => content.parts);
      expect(parts.filter(({ type }) => type === 'file').length).toBe(1);
      const kept = parts.flatMap(({ toolInvocation }) => toolInvocation?.result ?? []);
      expect([...new Set(kept.filter(isLog))]).toEqual(logs);
      const thoughts = steps.map(({ reasoningText = '' }) => reasoningText !== '');
      // The SDK reads no reasoning from Chat Completions.
      expect(thoughts).toEqual(steps.map(() => way.thinks && modelAt === providers['messages']));
      for (const body of run.sent) expect(body.split(png).length).toBe(2);
      // The provider searched in these replies of the loop. Chat Completions has no such blocks.
      const searches = modelAt === providers['messages'] ? searching : [];
      for (const index of searches) {
        const id = `"srvtoolu_${index}"`;
        expect(run.sent.at(-1)!.split(id).length).toBe(3);
        expect(parts.filter((part) => JSON.stringify(part).includes(id)).length).toBeGreaterThan(0);
      }
      expect(found.length).toBe(searches.length);
      expectFoldedRun(run, reports, [withoutBodies(run.results), withoutBodies(run.events)]);
    });
  },
);

describe.skipIf(folder === undefined).each(Object.entries(providers))(
  'leporelloMiddleware over %s',
  (_, modelAt) => {
    it('sends the same from a second instance on the same store', async () => {
      const store = inMemoryStore();
      const way = { streaming: false, thinks: false };
      const sent = () =>
        play({ ...way, modelAt: wrapped(modelAt, {}, createLeporello({ ...settings, store })) });
      expect(firstDifference((await sent()).sent, (await sent()).sent)).toBeUndefined();
    });
  },
);

describe.skipIf(folder === undefined)('the same conversation', () => {
  it.each(Object.entries(providers))('is sent by the adapter as by the gateway over %s', (_, modelAt) =>
    expectSameEdits(
      ({ fetch, leporello, onPrepared }) => {
        const folding = fetch
          ? (url: string) => modelAt(url, fetch)
          : wrapped(modelAt, { onPrepared }, leporello);
        return play({ streaming: true, thinks: true, searches: searching, modelAt: folding });
      },
      150,
      34_000,
    ),
  );
});
