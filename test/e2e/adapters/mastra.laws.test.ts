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
import { beforeAll, expect } from 'vitest';
import { z } from 'zod';
import { leporelloMiddleware } from '../../../src/adapters/ai-sdk.ts';
import { installPackage, mastraPackage } from '../../clients/install.ts';
import { contentOf, expectedTexts, paths, question, searching, tool } from './long-loop.ts';
import { type AtUrl, describeAdapter, plainFormat, playLoop } from './play-loop.ts';

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

/** Leaves out the raw bodies that Mastra shows beside a reply: they are what was sent, and what the provider answered. */
function withoutBodies(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (key, inner: unknown) => (key === 'body' ? undefined : inner)));
}

/** One call waits for approval, and the question has an image. */
describeAdapter({
  name: 'leporelloMiddleware',
  formats: Object.keys(providers),
  isSkipped: folder === undefined,
  play: (format, { streaming, ...says }, folding) =>
    playLoop(says, async (url, read) => {
      const model = providers[format]!(url, folding.fetch) as Wrapped;
      const reader = new mastra.Agent({
        id: 'reader',
        name: 'Reader',
        instructions: 'Be brief.',
        model: folding.fetch
          ? model
          : wrapLanguageModel({ model, middleware: leporelloMiddleware(folding.leporello, folding.options) }),
        tools: {
          ...(format !== plainFormat && { web_search: search }),
          [tool.name]: mastra.createTool({
            id: tool.name,
            description: tool.description,
            inputSchema: z.object({ path: z.string() }),
            requireApproval: ({ path }: { readonly path: string }) => path === asked,
            execute: async (args: { readonly path: string }) => read(args),
          }),
        },
      });
      const app = new mastra.Mastra({
        agents: { reader },
        storage: new mastra.InMemoryStore(),
        logger: false,
      });
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
    }),
  check: ({ results, events, sent }, format, way) => {
    // The first result waits for the approval; the second one has the whole run.
    const [waiting, { steps, messages }] = [results[0]!, results.at(-1)!];
    expect([results.length, waiting.steps.length]).toEqual([2, paths.indexOf(asked)]);
    expect(steps.map(({ text }) => text).filter((text) => text !== '')).toEqual(expectedTexts);
    const logs = paths.map(contentOf);
    const returned = steps.flatMap(({ toolResults }) => toolResults.map(({ payload }) => payload.result));
    const isLog = (result: unknown) => typeof result === 'string';
    expect(returned.filter(isLog)).toEqual(logs);
    const found = returned.filter((result) => !isLog(result));
    // Mastra's own messages are complete. After the approval it repeats the parts of before.
    const parts = messages.flatMap(({ content }) => content.parts);
    expect(parts.filter(({ type }) => type === 'file').length).toBe(1);
    const kept = parts.flatMap(({ toolInvocation }) => toolInvocation?.result ?? []);
    expect([...new Set(kept.filter(isLog))]).toEqual(logs);
    const thoughts = steps.map(({ reasoningText = '' }) => reasoningText !== '');
    // The SDK reads no reasoning from Chat Completions.
    expect(thoughts).toEqual(steps.map(() => way.thinks && format !== plainFormat));
    for (const body of sent) expect(body.split(png).length).toBe(2);
    // The provider searched in these replies of the loop. Chat Completions has no such blocks.
    const searches = format === plainFormat ? [] : searching;
    for (const index of searches) {
      const id = `"srvtoolu_${index}"`;
      expect(sent.at(-1)!.split(id).length).toBe(3);
      expect(parts.filter((part) => JSON.stringify(part).includes(id)).length).toBeGreaterThan(0);
    }
    expect(found.length).toBe(searches.length);
    return [withoutBodies(results), withoutBodies(events)];
  },
});
