/** Builds the requests of agents that read one file after the other. Each request adds one call with its result. They are the same in every run. */
import { callWithResult } from '../scaling/bodies.ts';

const tools = [
  {
    type: 'function',
    function: {
      name: 'read',
      description: 'Reads a file.',
      parameters: { type: 'object', properties: { path: { type: 'string' } } },
    },
  },
];

/** Returns the request body of an agent that has read `files` files. */
export function bodyAfter(agent: number, files: number): string {
  const read = Array.from({ length: files }, (_, at) => callWithResult(agent * 10_000 + at, resultBytes));
  return JSON.stringify({
    model: 'gpt-4o',
    tools,
    messages: [
      { role: 'system', content: `You are agent ${agent}.` },
      {
        role: 'user',
        content: 'Find the file with the wrong value. Never change a file. Say which line it is.',
      },
      ...read.flat(),
    ],
  });
}

/** About 1,000 tokens. */
const resultBytes = 2_400;
