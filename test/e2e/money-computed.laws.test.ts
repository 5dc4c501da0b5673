/**
 * Checks the cost estimate: the same conversation is played folded and unfolded against a provider with a prefix cache, and the
 * receipts' estimate for the unfolded conversation is compared with its actual cost.
 */
import { expect, it } from 'vitest';
import type { SummedMoney, Totals } from '../../src/receipts/totals.ts';
import type { JsonObject, ScriptRequest, Turn } from '../support/fake-provider/script.ts';
import type { TokenCounter } from '../../src/tokens/token-counter.ts';
import { type Format, formats, longBody, post, shapes } from './bodies.ts';
import { startStack } from './stack.ts';

const requests = 40;

const mark = ',"cache_control":{"type":"ephemeral"}';

/**
 * Returns a provider that counts four characters as a token (less than half of Leporello's count for some models) and reads from its
 * cache the longest prefix of whole messages that an earlier prompt had. In the Messages format it caches only with breakpoints.
 */
function cachingProvider(format: Format) {
  const { messages } = shapes[format];
  const cached: string[][] = [];
  return ({ body, index }: ScriptRequest): Turn => {
    const { [messages]: said, ...fields } = body;
    const marked = [fields, ...(said as readonly JsonObject[])].map((one) => JSON.stringify(one));
    const prompt = marked.map((piece) => piece.replaceAll(mark, ''));
    const caches = format !== 'messages' || marked.join('').includes(mark);
    const tokens = (pieces: readonly string[]) => Math.ceil(pieces.join('').length / 4);
    const found = cached.map((earlier) => tokens(prompt.slice(0, common(earlier, prompt))));
    const cacheRead = caches ? Math.max(0, ...found) : 0;
    if (caches) cached.push(prompt);
    const input = tokens(prompt);
    const usage = { input, cacheRead, cacheWrite: caches ? input - cacheRead : 0, output: 50 };
    const memory = index % 9 === 8 ? /mem_[0-9a-z]{16}/.exec(prompt.join(''))?.[0] : undefined;
    const part =
      memory === undefined
        ? ({ type: 'text', text: 'Go on.' } as const)
        : ({ type: 'tool-call', name: 'read_memory', arguments: { id: memory } } as const);
    return { type: 'turn', parts: [part], usage };
  };
}

function common(one: readonly string[], other: readonly string[]): number {
  const differs = one.findIndex((piece, at) => piece !== other[at]);
  return differs < 0 ? one.length : differs;
}

/** Counts like the provider, because only the token count is known of text that was removed from a result on arrival. */
const tokenizer: TokenCounter = {
  name: 'characters / 4',
  exact: true,
  count: (text) => Math.ceil(JSON.stringify(text).length / 4),
  image: () => 0,
  overhead: { message: 15, tool: 0, tools: 0, request: 0 },
};

type Client = {
  readonly format: Format;
  readonly marks: 'marks' | 'no marks';
  readonly results: 'whole' | 'smaller';
};

/** Returns a body; a client that marks its tools gets no breakpoints from the gateway, and this provider caches everything. */
function bodyOf({ format, marks }: Client, jobs: number): string {
  const body = longBody(format, jobs);
  return marks === 'marks' ? body.replace('"name":"run","description":"Runs."', `$&${mark}`) : body;
}

async function played(client: Client, mode: 'fold' | 'observe'): Promise<Totals & { money: SummedMoney }> {
  const { format } = client;
  await using stack = await startStack(cachingProvider(format), {
    mode,
    ...(client.results === 'whole'
      ? { shrinks: false }
      : { models: { '*': { windowTokens: 1_000_000, tokenizer } } }),
    triggers: {
      mustFit: false,
      windowFraction: false,
      tokenBudget: { triggerTokens: 20_000, targetTokens: 8_000 },
    },
    usdPerMillionTokens: { '*': { input: 10, cacheRead: 1, cacheWrite: 12.5, output: 50 } },
  });
  for (let jobs = 1; jobs <= requests; jobs++)
    await (await post(stack.url, format, bodyOf(client, jobs))).text();
  const totals = await fetch(`${stack.url}/_leporello/totals`, {
    headers: { authorization: 'Bearer dummy' },
  });
  return ((await totals.json()) as { total: Totals & { money: SummedMoney } }).total;
}

const clients: readonly Client[] = [
  ...formats.map((format) => ({ format, marks: 'no marks', results: 'whole' }) as const),
  { format: 'messages', marks: 'marks', results: 'whole' },
  ...formats.map((format) => ({ format, marks: 'no marks', results: 'smaller' }) as const),
];

it.each(clients)(
  'the estimated unfolded cost of a long $format conversation with $marks and $results results is close to the actual one',
  async (client) => {
    const folded = await played(client, 'fold');
    const untouched = await played(client, 'observe');
    expect(folded).toMatchObject({ requests, priced: requests });
    if (client.results === 'whole') {
      expect(folded.folds).toBeGreaterThan(0);
      expect(folded.recalls).toBeGreaterThan(0);
    }
    expect(untouched).toMatchObject({ requests, folds: 0, recalls: 0, money: { net: 0 } });
    const error = folded.money.untouched.total / untouched.money.paid.total - 1;
    expect(Math.abs(error)).toBeLessThan(client.results === 'whole' ? 0.01 : 0.04);
  },
);
