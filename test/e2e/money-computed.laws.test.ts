/**
 * The reckoning held against the truth: the same conversation is played folded and untouched, against a provider with a cache of
 * prefixes, and what receipts reckon for the untouched one is compared with what it really cost.
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
 * Counts four characters as a token, which of these results makes less than half of what the house counts for some models, and reads
 * from its cache as many whole messages as began an earlier prompt. Messages are cached only where they are marked.
 */
function cachingProvider(format: Format) {
  const { messages } = shapes[format];
  const kept: string[][] = [];
  return ({ body, index }: ScriptRequest): Turn => {
    const { [messages]: said, ...fields } = body;
    const marked = [fields, ...(said as readonly JsonObject[])].map((one) => JSON.stringify(one));
    const prompt = marked.map((piece) => piece.replaceAll(mark, ''));
    const caches = format !== 'messages' || marked.join('').includes(mark);
    const tokens = (pieces: readonly string[]) => Math.ceil(pieces.join('').length / 4);
    const found = kept.map((earlier) => tokens(prompt.slice(0, common(earlier, prompt))));
    const cacheRead = caches ? Math.max(0, ...found) : 0;
    if (caches) kept.push(prompt);
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

/** What was left out of a result when it came is known by its count alone, so here the house counts as the provider does. */
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

/** A client marks its tools: then nothing is marked for it, and this provider keeps all. */
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
      : { models: { '*': { window: 1_000_000, tokenizer } } }),
    triggers: { mustFit: false, windowFraction: false, tokenBudget: { trigger: 20_000, target: 8_000 } },
    prices: { '*': { input: 10, cacheRead: 1, cacheWrite: 12.5, output: 50 } },
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
  'a long $format conversation with $marks and $results results is reckoned to cost untouched what it costs untouched',
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
