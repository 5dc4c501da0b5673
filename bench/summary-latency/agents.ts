/** Agents that read one file after the other: each request is the one before with one more call and result. The same in every run. */
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

/** The body of the request after so many files. */
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

/** Some 1,000 tokens. */
const resultBytes = 2_400;
