/** Results of which each counts as 10,000 tokens, so that the figures of a receipt are round. Pure. */
import type { TokenCounter } from '../../src/tokens/token-counter.ts';
import { requestBody, shapes } from './bodies.ts';

/** Counts a result as 10,000 tokens and everything else as 0. */
export const resultCounter: TokenCounter = {
  name: 'results',
  exact: true,
  count: (text) => (text.length > 2_000 && text.startsWith('result ') ? 10_000 : 0),
  image: () => 0,
  overhead: { message: 0, tool: 0, tools: 0, request: 0 },
};

/** Settings with which a conversation of four counted results is folded to two, and nothing else folds. */
export const countedSettings = {
  tenant: 'local',
  models: { '*': { windowTokens: 200_000, tokenizer: resultCounter } },
  triggers: {
    mustFit: false,
    windowFraction: false,
    cacheRent: false,
    coldCache: false,
    tokenBudget: { triggerTokens: 35_000, targetTokens: 20_000 },
  },
  calibration: false,
} as const;

/** Returns a request to Messages with this many jobs, each with a result. `fields` are those of the request. */
export function countedBody(jobs: number, fields: Readonly<Record<string, unknown>> = {}): string {
  const { messages, user, job } = shapes.messages;
  const done = Array.from({ length: jobs }, (_, at) => job(`call_${at}`, result(at)));
  return requestBody('messages', { ...fields, [messages]: [user('Run all jobs.'), ...done.flat()] });
}

/** Returns lines that all differ. */
function result(at: number): string {
  let seed = at + 1;
  const word = () => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed.toString(36);
  };
  return `result ${at}\n${Array.from({ length: 80 }, () => `${word()} ${word()} ${word()} ${word()}\n`).join('')}`;
}
