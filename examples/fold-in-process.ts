/**
 * Uses the library without a gateway: it folds a request body before it is sent, answers the model's recall and restores an original.
 * Nothing is sent. Run it from a checkout: `npm run example examples/fold-in-process.ts`.
 */
import { createLeporello } from '../src/index.ts';

// In your own program, import { createLeporello } from 'leporello'.
const leporello = createLeporello({ models: { 'gpt-4o': { windowTokens: 8_000 } } });

const logs = Array.from(
  { length: 12 },
  (_, at) => `service-${at} started\n${`service-${at} is well\n`.repeat(150)}`,
);
const body = {
  model: 'gpt-4o',
  messages: [
    { role: 'user', content: 'Look at all logs.' },
    ...logs.flatMap((log, at) => [
      {
        role: 'assistant',
        content: null,
        tool_calls: [
          {
            id: `call_${at}`,
            type: 'function',
            function: { name: 'read_log', arguments: `{"service":${at}}` },
          },
        ],
      },
      { role: 'tool', tool_call_id: `call_${at}`, content: log },
    ]),
  ],
  tools: [{ type: 'function', function: { name: 'read_log', parameters: { type: 'object' } } }],
};

const prepared = await leporello.prepare({ body });
const { tokensBefore, tokensAfter, memories, trigger } = prepared.report;
console.log(
  `Outcome: ${prepared.outcome.status} by ${trigger}, ${tokensBefore} tokens before, ${tokensAfter} after, ${memories.length} originals stored.`,
);

// Send `prepared.body`, or `prepared.json()` with an SDK, to the provider. When the model calls `prepared.recallTool`, answer the call:
const answer = await leporello.recall(prepared, JSON.stringify({ id: memories[0], lines: '1-2' }));
console.log(`The model reads ${memories[0]}:\n${answer}`);

const original = await leporello.original(memories[0]!);
console.log(`The original has ${original?.length} bytes of JSON.`);
