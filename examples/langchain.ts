/**
 * Runs an agent of LangChain.js for 60 steps in a window of 32,000 tokens. The state keeps every result. The model is scripted: it reads 60 logs
 * and recalls two that were folded. Run it from a checkout: `npm run example examples/langchain.ts`.
 */
import { ChatOpenAI } from '@langchain/openai';
import { createAgent, tool } from 'langchain';
import { z } from 'zod';
import { leporelloMiddleware } from '../src/adapters/langchain.ts';
import { createLeporello } from '../src/index.ts';
import { type Script, startFakeProvider } from '../test/support/index.ts';

// In your own program, import { createLeporello } from 'leporello', and { leporelloMiddleware } from 'leporello/langchain'.
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
const largest = { before: 0, after: 0 };
const readLog = tool(
  ({ service }: { service: number }) =>
    `service ${service} started\nport of service ${service}: ${4_000 + service}\n${`service ${service} is well\n`.repeat(180)}`,
  {
    name: 'read_log',
    description: 'Returns the log of a service.',
    schema: z.object({ service: z.number() }),
  },
);
const agent = createAgent({
  model: new ChatOpenAI({ model: 'gpt-4o', apiKey: 'any', configuration: { baseURL: `${provider.url}/v1` } }),
  tools: [readLog],
  middleware: [
    leporelloMiddleware(createLeporello({ models: { 'gpt-4o': { windowTokens: 32_000 } } }), {
      onPrepared({ report: { tokensBefore = 0, tokensAfter = 0 } }) {
        largest.before = Math.max(largest.before, tokensBefore);
        largest.after = Math.max(largest.after, tokensAfter);
      },
    }),
  ],
});

const { messages } = await agent.invoke(
  { messages: [{ role: 'user', content: 'Which ports do services 0 and 1 have? Read all logs first.' }] },
  { recursionLimit: 2 * steps + 20 },
);
console.log(messages.at(-1)?.text);
console.log(`The state has ${messages.length} messages; the recalls are not among them.`);
console.log(`Requests to the provider: ${provider.requests.length}.`);
console.log(`Largest request: ${largest.after} tokens; untouched ${largest.before}.`);
await provider.close();
