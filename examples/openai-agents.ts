/**
 * Runs an agent of OpenAI Agents JS for 60 steps in a window of 32,000 tokens. Its session keeps every result. The model is scripted: it reads 60
 * logs and recalls two that were folded. Run it from a checkout: `npm run example examples/openai-agents.ts`.
 */
import { Agent, MemorySession, OpenAIProvider, Runner, tool } from '@openai/agents';
import OpenAI from 'openai';
import { z } from 'zod';
import { leporelloProvider } from '../src/adapters/openai-agents.ts';
import { createLeporello } from '../src/index.ts';
import { type Script, startFakeProvider } from '../test/support/index.ts';

// In your own program, import { createLeporello } from 'leporello', and { leporelloProvider } from 'leporello/openai-agents'.
const steps = 60;

/** Reads one log after the other; then recalls two of them by words, and answers. */
const script: Script = ({ index }) => {
  if (index < steps)
    return { type: 'turn', parts: [{ type: 'tool-call', name: 'read_log', arguments: { service: index } }] };
  if (index < steps + 2) {
    const query = `port of service ${index - steps}`;
    return { type: 'turn', parts: [{ type: 'tool-call', name: 'read_memory', arguments: { query } }] };
  }
  return {
    type: 'turn',
    parts: [{ type: 'text', text: 'Service 0 has port 4000, service 1 has port 4001.' }],
  };
};

const provider = await startFakeProvider({ script });
const openAIClient = new OpenAI({ baseURL: `${provider.url}/v1`, apiKey: 'any' });
const largest = { before: 0, after: 0 };
const modelProvider = leporelloProvider(
  new OpenAIProvider({ openAIClient, useResponses: true }),
  createLeporello({ models: { 'gpt-5': { windowTokens: 32_000 } } }),
  {
    onPrepared({ report: { tokensBefore = 0, tokensAfter = 0 } }) {
      largest.before = Math.max(largest.before, tokensBefore);
      largest.after = Math.max(largest.after, tokensAfter);
    },
  },
);

const agent = new Agent({
  name: 'Reader',
  model: 'gpt-5',
  tools: [
    tool({
      name: 'read_log',
      description: 'Returns the log of a service.',
      parameters: z.object({ service: z.number() }),
      execute: ({ service }) =>
        `service ${service} started\nport of service ${service}: ${4_000 + service}\n${`service ${service} is well\n`.repeat(180)}`,
    }),
  ],
});
const session = new MemorySession();
const runner = new Runner({ modelProvider, tracingDisabled: true });
const question = 'Which ports do services 0 and 1 have? Read all logs first.';
const result = await runner.run(agent, question, { session, maxTurns: steps + 10 });

console.log(result.finalOutput);
console.log(`The session has ${(await session.getItems()).length} items; the recalls are not among them.`);
console.log(`Requests to the provider: ${provider.requests.length}.`);
console.log(`Largest request: ${largest.after} tokens; untouched ${largest.before}.`);
await provider.close();
