/**
 * Runs an agent of the AI SDK for 60 steps in a window of 32,000 tokens, and prints what it cost. The model is scripted: it reads 60 logs and
 * recalls two that were folded. Run it from a checkout: `npm run example examples/ai-sdk.ts`.
 */
import { createOpenAI } from '@ai-sdk/openai';
import { generateText, isStepCount, tool, wrapLanguageModel } from 'ai';
import { z } from 'zod';
import { leporelloMiddleware } from '../src/adapters/ai-sdk.ts';
import { createLeporello } from '../src/index.ts';
import { type Script, startFakeProvider } from '../test/support/index.ts';

// In your own program, import { createLeporello } from 'leporello', and { leporelloMiddleware } from 'leporello/ai-sdk'.
const steps = 60;

/** Reads one log after the other; then recalls two of them by words, and answers. */
const script: Script = ({ index }) => {
  const parts =
    index < steps
      ? [{ type: 'tool-call', name: 'read_log', arguments: { service: index } } as const]
      : index < steps + 2
        ? [
            {
              type: 'tool-call',
              name: 'read_memory',
              arguments: { query: `port of service ${index - steps}` },
            } as const,
          ]
        : [{ type: 'text', text: 'Service 0 has port 4000, service 1 has port 4001.' } as const];
  return { type: 'turn', parts };
};

const log = (service: number) =>
  `service ${service} started\nport of service ${service}: ${4_000 + service}\n${`service ${service} is well\n`.repeat(180)}`;

await using provider = await startProvider();
const sizes: { readonly before: number; readonly after: number; readonly trigger: string | undefined }[] = [];
const model = wrapLanguageModel({
  model: createOpenAI({ baseURL: `${provider.url}/v1`, apiKey: 'any' }).chat('gpt-4o'),
  middleware: leporelloMiddleware(createLeporello({ models: { 'gpt-4o': { windowTokens: 32_000 } } }), {
    onPrepared: ({ report: { tokensBefore = 0, tokensAfter = 0, trigger } }) =>
      sizes.push({ before: tokensBefore, after: tokensAfter, trigger }),
  }),
});

const { text, responseMessages } = await generateText({
  model,
  prompt: 'Which ports do services 0 and 1 have? Read all logs first.',
  stopWhen: isStepCount(steps + 10),
  tools: {
    read_log: tool({
      description: 'Returns the log of a service.',
      inputSchema: z.object({ service: z.number() }),
      execute: ({ service }) => log(service),
    }),
  },
});

const sum = (all: readonly number[]) => all.reduce((total, one) => total + one, 0);
const [before, after] = [sizes.map((size) => size.before), sizes.map((size) => size.after)];
console.log(text);
console.log(`The program keeps ${responseMessages.length} messages; the recalls are not among them.`);
console.log(
  `Requests of the program: ${sizes.length}; requests to the provider: ${provider.requests.length}.`,
);
console.log(`Folds: ${sizes.filter(({ trigger }) => trigger !== undefined).length}.`);
console.log(`Largest request: ${Math.max(...after)} tokens; untouched ${Math.max(...before)}.`);
console.log(`Tokens of all requests: ${sum(after)}; untouched ${sum(before)}.`);

async function startProvider() {
  const started = await startFakeProvider({ script });
  return { ...started, [Symbol.asyncDispose]: () => started.close() };
}
