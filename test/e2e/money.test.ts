/**
 * Compares the receipts of a conversation with costs calculated by hand: five requests, with a fold and a recall in the fourth. The token
 * counter counts only results, so the figures are round.
 */
import { describe, expect, it } from 'vitest';
import type { Totals } from '../../src/receipts/totals.ts';
import type { Receipt } from '../../src/receipts/receipt.ts';
import type { ScriptedUsage, Turn, TurnPart } from '../support/fake-provider/script.ts';
import { post, postStream, requestBody } from './bodies.ts';
import { countedBody, resultCounter } from './counted-results.ts';
import { type Stack, startStack } from './stack.ts';

const settings = {
  models: { '*': { windowTokens: 200_000, tokenizer: resultCounter } },
  triggers: {
    mustFit: false,
    windowFraction: false,
    tokenBudget: { triggerTokens: 35_000, targetTokens: 20_000 },
  },
  // 10,000 tokens cost 10 cents as input, 1 cent as a cache read, 12.5 cents as a cache write.
  usdPerMillionTokens: { 'claude-sonnet-5': { input: 10, cacheRead: 1, cacheWrite: 12.5, output: 50 } },
  calibration: false,
  adminToken: 'operator-operator',
} as const;

/** Tools with the client's own cache breakpoint. */
const tools = [
  { name: 'run', input_schema: { type: 'object' }, cache_control: { type: 'ephemeral' } },
] as const;

const says = (usage: ScriptedUsage, part: TurnPart = { type: 'text', text: 'Go on.' }): Turn => ({
  type: 'turn',
  parts: [part],
  usage,
});

const script = (memory: () => string) => {
  const turns: readonly (() => Turn)[] = [
    () => says({ input: 10_000, cacheRead: 0, cacheWrite: 10_000, output: 100 }),
    () => says({ input: 20_000, cacheRead: 10_000, cacheWrite: 10_000, output: 100 }),
    () => says({ input: 30_000, cacheRead: 20_000, cacheWrite: 10_000, output: 100 }),
    // A fold reduces 40,000 tokens to 20,000, none of them cached in this form. Then one line is recalled.
    () =>
      says(
        { input: 20_000, cacheRead: 0, cacheWrite: 20_000, output: 100 },
        { type: 'tool-call', name: 'read_memory', arguments: { id: memory(), lines: '1-2' } },
      ),
    () => says({ input: 20_300, cacheRead: 20_000, cacheWrite: 300, output: 200 }),
    () => says({ input: 30_000, cacheRead: 20_000, cacheWrite: 10_000, output: 100 }),
  ];
  return ({ index }: { readonly index: number }) => turns[index]!();
};

const get = async (stack: Stack, path: string, key = 'dummy'): Promise<unknown> =>
  (await fetch(`${stack.url}/_leporello/${path}`, { headers: { authorization: `Bearer ${key}` } })).json();

describe.each(['plain', 'streamed'])('a conversation of five requests, %s', (way) => {
  async function play(session: Record<string, string> = {}): Promise<Stack & { receipts: Receipt[] }> {
    const sent = () => new TextDecoder().decode(stack.provider.requests.at(-1)!.body);
    const stack = await startStack(
      script(() => /mem_[0-9a-z]{16}/.exec(sent())![0]),
      settings,
    );
    const receipts: Receipt[] = [];
    for (const jobs of [1, 2, 3, 4, 5]) {
      const body = countedBody(jobs, { tools });
      const response =
        way === 'plain'
          ? await post(stack.url, 'messages', body, session)
          : await postStream(stack.url, 'messages', JSON.parse(body) as Record<string, unknown>);
      expect([response.status, await response.text()]).toEqual([200, expect.stringContaining('Go on.')]);
      receipts.push((await get(stack, `receipts/${response.headers.get('x-leporello-receipt')}`)) as Receipt);
    }
    return Object.assign(stack, { receipts });
  }

  it('costs the same as unfolded until it is folded', async () => {
    await using stack = await play();
    const bills = stack.receipts.map(({ money }) => [money?.paid.total, money?.untouched.total, money?.net]);
    expect(bills).toEqual([
      [0.13, 0.13, 0],
      [0.14, 0.14, 0],
      [0.15, 0.15, 0],
      [0.28875, 0.165, -0.12375],
      [0.15, 0.17, 0.02],
    ]);
  });

  it('bears the cost of its fold and its recall in the request that made them', async () => {
    await using stack = await play();
    const { tokensBefore, tokensAfter, tokensKept, rounds, usage, money } = stack.receipts[3]!;
    expect({ tokensBefore, tokensAfter, tokensKept, rounds, usage, money }).toEqual({
      tokensBefore: 40_000,
      tokensAfter: 20_000,
      tokensKept: 0,
      rounds: [
        { input: 20_000, cacheRead: 0, cacheWrite: 20_000, output: 100 },
        { input: 20_300, cacheRead: 20_000, cacheWrite: 300, output: 200 },
      ],
      usage: { input: 40_300, cacheRead: 20_000, cacheWrite: 20_300, output: 300 },
      money: {
        paid: { uncached: 0, cacheRead: 0.02, cacheWrite: 0.25375, output: 0.015, total: 0.28875 },
        // The second prompt (0.02 read, 0.00375 written) and the output with the recall (0.005).
        recalls: 0.02875,
        // 20,000 tokens sent, 10,000 of them new: the other 10,000 cost 12.5 cents as a write instead of 1 as a read.
        fold: 0.115,
        untouched: { uncached: 0, cacheRead: 0.03, cacheWrite: 0.125, output: 0.01, total: 0.165 },
        untouchedUsage: { input: 40_000, cacheRead: 30_000, cacheWrite: 10_000, output: 200 },
        net: -0.12375,
        extraRequestsPer1000Tokens: 0,
      },
    });
    // The next request is sent without 20,000 tokens and saves 0.02 of 0.17.
    expect(stack.receipts[4]!.money).toMatchObject({ net: 0.02, extraRequestsPer1000Tokens: 0.0067 });
  });

  it('is added to the totals by session, model and tenant, for its tenant and for the administrator', async () => {
    await using stack = await play();
    const total: Omit<Totals, 'compressions'> & { readonly breakEven: object } = {
      requests: 5,
      folds: 1,
      recalls: 1,
      summaries: 0,
      tokensBefore: 150_000,
      tokensAfter: 110_000,
      answered: 5,
      usage: { input: 130_300, cacheRead: 70_000, cacheWrite: 60_300, output: 700 },
      priced: 5,
      money: {
        paid: { uncached: 0, cacheRead: 0.07, cacheWrite: 0.75375, output: 0.035, total: 0.85875 },
        recalls: 0.02875,
        folds: 0.115,
        summaries: 0,
        untouched: { uncached: 0, cacheRead: 0.1, cacheWrite: 0.625, output: 0.03, total: 0.755 },
        untouchedUsage: { input: 150_000, cacheRead: 100_000, cacheWrite: 50_000, output: 600 },
        net: -0.10375,
        tokensFolded: 20_000,
      },
      // -0.10375 pays for -0.6 requests of 0.17175; 20,000 tokens were folded.
      breakEven: { extraRequestsPer1000Tokens: -0.03 },
    };
    const session = stack.receipts[0]!.session;
    expect(session).toMatch(/^begins:[\w-]{16}$/);
    expect(await get(stack, 'totals')).toEqual({
      total,
      models: [{ model: 'claude-sonnet-5', ...total }],
      sessions: [{ session, ...total }],
    });
    expect(await get(stack, 'totals', 'operator-operator')).toEqual({
      total,
      tenants: [{ tenant: expect.any(String), ...total }],
      models: [{ tenant: expect.any(String), model: 'claude-sonnet-5', ...total }],
      sessions: [{ tenant: expect.any(String), session, ...total }],
    });
    expect(await get(stack, 'totals', 'somebody-else')).toEqual({
      total: { requests: 0, folds: 0, recalls: 0, summaries: 0, answered: 0, priced: 0 },
      models: [],
      sessions: [],
    });
  });
});

const answer = says({ input: 10_000, cacheRead: 0, cacheWrite: 10_000, output: 100 });

describe('a receipt', () => {
  it('has no cost if the price is unknown or no usage was reported', async () => {
    const unknown = JSON.stringify({
      ...(JSON.parse(countedBody(1, { tools })) as object),
      model: 'nobody-knows-it',
    });
    await using stack = await startStack([answer, { type: 'error', status: 429 }], settings);
    for (const body of [unknown, countedBody(1, { tools })]) {
      const response = await post(stack.url, 'messages', body);
      await response.text();
      const receipt = await get(stack, `receipts/${response.headers.get('x-leporello-receipt')}`);
      expect(receipt).not.toHaveProperty('money');
    }
    const { total } = (await get(stack, 'totals')) as { total: Totals };
    expect(total).toEqual({
      requests: 2,
      folds: 0,
      recalls: 0,
      summaries: 0,
      tokensBefore: 10_000,
      tokensAfter: 10_000,
      answered: 1,
      usage: answer.usage,
      priced: 0,
    });
  });

  it("has the client's session name from a header or the body; the log does not contain it", async () => {
    await using stack = await startStack(() => answer, settings);
    const keyed = requestBody('chat', { prompt_cache_key: 'key-1' });
    const long = 'x'.repeat(1_000);
    for (const [format, body, headers] of [
      ['messages', countedBody(1, { tools }), { 'x-claude-code-session-id': 'header-1' }],
      ['chat', keyed, {}],
      ['chat', keyed, { session_id: 'header-2' }],
      ['responses', requestBody('responses', { prompt_cache_key: 'key-1' }), {}],
      ['chat', requestBody('chat', { prompt_cache_key: long }), {}],
    ] as const) {
      expect((await post(stack.url, format, body, headers)).status).toBe(200);
    }
    const { sessions } = (await get(stack, 'totals')) as { sessions: (Totals & { session: string })[] };
    expect(sessions.map(({ session, requests }) => [session, requests])).toEqual([
      [long.slice(0, 200), 1],
      ['key-1', 2],
      ['header-2', 1],
      ['header-1', 1],
    ]);
    expect(stack.logged.join('\n')).not.toMatch(/key-1|header-|xxx/);
  });
});
