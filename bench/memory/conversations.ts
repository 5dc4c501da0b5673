/** Generates conversations of a coding agent that have nothing in common: words, numbers and paths from a seed, about four bytes a token. */
import { randomNumbers } from '../tokens/arithmetic.ts';

const words =
  'the build failed because a test in this module expects another value than before and returned error while reading config file for user session request cache index token server client update merge branch commit change function class import export default const return await async value name type string number list map set'.split(
    ' ',
  );

export type Generated = {
  /** Returns the body of a Chat Completions request with this many calls more than the first one. */
  readonly body: (turns: number) => Uint8Array;
};

/** Returns a conversation of about `bytes` bytes in calls with results of about 4 kB. */
export function generate(seed: number, bytes: number): Generated {
  const next = randomNumbers(seed * 7_919 + 1);
  const line = (at: number): string => {
    const text = Array.from({ length: 11 }, () => words[next(words.length)]).join(' ');
    return `${at}: ${text} ${next(100_000)}`;
  };
  const turn = (at: number): readonly object[] => {
    const call = {
      name: 'read',
      arguments: JSON.stringify({ path: `src/${words[next(words.length)]}/${at}.ts` }),
    };
    const content = Array.from({ length: 50 }, (_, number) => line(number)).join('\n');
    return [
      {
        role: 'assistant',
        content: `${line(0)}.`,
        tool_calls: [{ id: `call_${seed}_${at}`, type: 'function', function: call }],
      },
      { role: 'tool', tool_call_id: `call_${seed}_${at}`, content },
    ];
  };
  const messages: object[] = [
    { role: 'system', content: 'You are a careful engineer. '.repeat(100) },
    { role: 'user', content: `Find out why build ${seed} is red.` },
  ];
  let length = 0;
  for (let at = 0; length < bytes; at++) {
    const added = turn(at);
    messages.push(...added);
    length += JSON.stringify(added).length;
  }
  const first = messages.length;
  const parameters = { type: 'object', properties: { path: { type: 'string' } } };
  const tools = [{ type: 'function', function: { name: 'read', description: 'Reads a file.', parameters } }];
  return {
    body(turns) {
      while (messages.length < first + 2 * turns) messages.push(...turn(messages.length));
      const sent = messages.slice(0, first + 2 * turns);
      return new TextEncoder().encode(JSON.stringify({ model: 'gpt-4.1', tools, messages: sent }));
    },
  };
}
