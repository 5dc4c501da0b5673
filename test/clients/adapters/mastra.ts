/**
 * Plays the long loop of the adapters with an agent of Mastra, whose model is wrapped by the middleware of `leporello/ai-sdk`: 60 steps that overflow
 * a window of 32,000 tokens, with three recalls. Mastra is installed from npm, at a pinned version, like the clients.
 */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { createOpenAI } from '@ai-sdk/openai';
import { wrapLanguageModel } from 'ai';
import { z } from 'zod';
import { leporelloMiddleware } from '../../../src/adapters/ai-sdk.ts';
import { createLeporello, inMemoryStore, type Store } from '../../../src/index.ts';
import {
  contentOf,
  expectedTexts,
  firstDifference,
  model as scriptedModel,
  paths,
  question,
  settings,
  tool,
} from '../../e2e/adapters/long-loop.ts';
import { startFakeProvider } from '../../support/fake-provider/fake-provider.ts';
import { installPackage } from '../install.ts';
import type { MatrixRow } from '../matrix.ts';

const version = '1.71.0';

/** The parts of Mastra that are used here. */
type Mastra = {
  readonly Agent: new (
    options: object,
  ) => {
    generate(question: string, options: object): Promise<unknown>;
    stream(question: string, options: object): Promise<{ readonly fullStream: AsyncIterable<unknown> }>;
  };
  readonly createTool: (options: object) => object;
};

/** Plays the loop plain, again with another instance on the same store, and streamed. */
export async function playMastra(): Promise<MatrixRow & { readonly problem?: string }> {
  const from = createRequire(join(await installPackage(`@mastra/core@${version}`), 'package.json'));
  const load = (name: string): Promise<unknown> => import(pathToFileURL(from.resolve(name)).href);
  const mastra = {
    ...((await load('@mastra/core/agent')) as Pick<Mastra, 'Agent'>),
    ...((await load('@mastra/core/tools')) as Pick<Mastra, 'createTool'>),
  };
  const store = inMemoryStore();
  const plain = await play(mastra, store, false);
  const again = await play(mastra, store, false);
  const streamed = await play(mastra, inMemoryStore(), true);
  const row: MatrixRow = {
    name: `@mastra/core ${version} with leporello/ai-sdk`,
    runtime: `Node ${process.versions.node}`,
    fold: word(plain.largest < 32_000 && plain.untouched > 32_000),
    recall: word(plain.problem === undefined),
    stream: word(streamed.problem === undefined && streamed.largest < 32_000),
    restart: word(firstDifference(plain.sent, again.sent) === undefined),
  };
  const problem = plain.problem ?? again.problem ?? streamed.problem;
  return problem === undefined ? row : { ...row, problem };
}

function word(holds: boolean): string {
  return holds ? 'yes' : 'FAILED';
}

async function play({ Agent, createTool }: Mastra, store: Store, streaming: boolean) {
  const provider = await startFakeProvider({ script: scriptedModel() });
  try {
    const tokens: { readonly before: number; readonly after: number }[] = [];
    const middleware = leporelloMiddleware(createLeporello({ ...settings, store }), {
      onPrepared: ({ report: { tokensBefore = 0, tokensAfter = 0 } }) =>
        void tokens.push({ before: tokensBefore, after: tokensAfter }),
    });
    const chat = createOpenAI({ baseURL: `${provider.url}/v1`, apiKey: 'dummy' }).chat('gpt-4o');
    const toolsRun: string[] = [];
    const readLog = createTool({
      id: tool.name,
      description: tool.description,
      inputSchema: z.object({ path: z.string() }),
      execute: async ({ path }: { readonly path: string }) => {
        toolsRun.push(path);
        return contentOf(path);
      },
    });
    const agent = new Agent({
      id: 'reader',
      name: 'Reader',
      instructions: 'Be brief.',
      model: wrapLanguageModel({ model: chat, middleware }),
      tools: { [tool.name]: readLog },
    });
    const options = { maxSteps: 100, maxRetries: 0 };
    const seen: unknown[] = [];
    if (streaming)
      for await (const part of (await agent.stream(question, options)).fullStream) seen.push(part);
    else seen.push(await agent.generate(question, options));
    const shown = JSON.stringify(seen, withoutBodies);
    const missing = expectedTexts.filter((text) => !shownTexts(shown, text, streaming));
    const leaked = ['read_memory', 'mem_', '[Folded'].filter((text) => shown.includes(text));
    const problems = [
      ...missing.map((text) => `the program did not see ${text}`),
      ...leaked.map((text) => `the program saw ${text}`),
      ...(toolsRun.join() === paths.join() ? [] : [`it read ${toolsRun.join()}`]),
    ];
    return {
      sent: provider.requests.map(({ body }) => new TextDecoder().decode(body)),
      untouched: Math.max(...tokens.map(({ before }) => before)),
      largest: Math.max(...tokens.map(({ after }) => after)),
      problem: problems[0],
    };
  } finally {
    await provider.close();
  }
}

/** Leaves out the raw bodies that Mastra shows beside a reply: they are what was sent, and what the provider answered. */
function withoutBodies(key: string, value: unknown): unknown {
  return key === 'body' ? undefined : value;
}

/** True if the program saw a text, whole or in pieces. */
function shownTexts(shown: string, text: string, streaming: boolean): boolean {
  if (!streaming) return shown.includes(text.trim());
  const said = [...shown.matchAll(/"text":"((?:[^"\\]|\\.)*)"/g)].map(([, piece]) => piece).join('');
  return said.includes(text.trim());
}
