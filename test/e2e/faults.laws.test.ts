import { setTimeout } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { LeporelloError } from '../../src/errors.ts';
import { inMemoryStore } from '../../src/store/in-memory.ts';
import type { Store } from '../../src/store/store.ts';
import { formats, longBody, post, requestBody, shapes } from './bodies.ts';
import { masked, replies } from './replies.ts';
import { startStack } from './stack.ts';

const hello = () => ({ type: 'turn', parts: [{ type: 'text', text: 'Hello.' }] }) as const;
const small = { models: { '*': { windowTokens: 12_000 } } };

/** The common part of all providers' error bodies. */
type ErrorBody = { readonly error: { readonly message: string } };

describe.each(formats)('no %s request is lost', (format) => {
  const { messages, content, user, withRules } = shapes[format];
  const expected = replies[format];

  it.each([
    ['a body that is not JSON', 'not json at all'],
    ['truncated JSON', requestBody(format).slice(0, -5)],
    ['an array', '[1,2,3]'],
    ['messages of the wrong type', requestBody(format, { [messages]: { role: 7 } })],
    ['a message of the wrong type', requestBody(format, { [messages]: [7] })],
    ['content of the wrong type', requestBody(format, { [messages]: [{ role: 'user', [content]: 7 }] })],
    ['missing messages', '{"model":"m"}'],
    ['tools of the wrong type', requestBody(format, { tools: 'none' })],
    ['an empty body', ''],
    ['a key that occurs twice', `{"${messages}":[],"${messages}":[]}`],
  ])('%s is sent to the provider unchanged, and its refusal is returned unchanged', async (_, body) => {
    await using stack = await startStack(hello);
    const direct = await post(stack.provider.url, format, body);
    const through = await post(stack.url, format, body);
    expect(new TextDecoder().decode(stack.provider.requests[1]!.body)).toBe(body);
    expect(through.status).toBe(direct.status);
    expect(masked(await through.text())).toBe(masked(await direct.text()));
    expect(through.headers.get('x-leporello-outcome')).toBe('untouched');
  });

  it('results without a call and repeated call ids are left to the provider', async () => {
    await using stack = await startStack(hello, small);
    const body = JSON.parse(longBody(format, 30)) as Record<string, object[]>;
    const all = body[messages]!;
    const twice = { ...body, [messages]: [...all, ...all.slice(1)] };
    const repeated = await post(stack.url, format, JSON.stringify(twice));
    expect(repeated.status).toBe(200);
    expect(repeated.headers.get('x-leporello-outcome')).toBe('compacted');
    const orphan = await post(
      stack.url,
      format,
      JSON.stringify({ ...body, [messages]: [all[0], ...all.slice(2)] }),
    );
    expect(orphan.status).toBe(400);
  });

  it("a body over the limit is answered 413 in the provider's format", async () => {
    await using stack = await startStack(hello);
    const body = new Blob([
      requestBody(format).slice(0, -1),
      `,"pad":"`,
      ...Array.from({ length: 200 }, () => 'x'.repeat(1_000_000)),
      '"}',
    ]);
    const response = await post(stack.url, format, body);
    expect(response.status).toBe(413);
    const { error } = (await response.json()) as ErrorBody;
    expect(error).toMatchObject(expected.bodyTooLarge);
    expect(error.message).toBe(
      `The body has ${body.size} bytes, but limits.maxBodyBytes (LEPORELLO_LIMITS_MAX_BODY_BYTES) allows only 67108864: send a smaller body, or raise that limit.`,
    );
    expect(stack.provider.requests.length).toBe(0);
  });

  it.each([429, 500, 529])('status and body of an upstream %i are returned unchanged', async (status) => {
    const body = { error: { type: 'some_error', message: 'Try later.', big: '12345678901234567890' } };
    await using stack = await startStack(() => ({
      type: 'error',
      status,
      body,
      headers: { 'retry-after': '7' },
    }));
    const response = await post(stack.url, format, requestBody(format));
    expect(response.status).toBe(status);
    expect(response.headers.get('retry-after')).toBe('7');
    expect(await response.json()).toEqual(body);
  });

  it("an overflow that no fold can prevent is the provider's own error, and names the parts that are too large", async () => {
    const error = { message: expected.overflow, type: 'invalid_request_error', code: 'some_code' };
    await using stack = await startStack(
      () => ({ type: 'error', status: 400, body: { type: 'error', error } }),
      { models: { '*': { windowTokens: 2_000 } } },
    );
    const body = withRules('Obey. '.repeat(5_000), [user('Go')]);
    const response = await post(stack.url, format, requestBody(format, body));
    expect(response.status).toBe(400);
    const refusal = (await response.json()) as { error: Record<string, string> };
    expect(refusal.error).toMatchObject({ type: 'invalid_request_error', code: 'some_code' });
    expect(
      refusal.error['message']!.startsWith(
        `${expected.overflow} Leporello could not fold the request any further: `,
      ),
    ).toBe(true);
    expect(refusal.error['message']).toMatch(expected.rulesTooLarge);
  });

  it("an upstream that is down is a 502 in the provider's format", async () => {
    await using stack = await startStack(hello, {}, { upstreamUrl: 'http://127.0.0.1:9' });
    const response = await post(stack.url, format, requestBody(format));
    expect(response.status).toBe(502);
    expect(response.headers.get('x-leporello-receipt')).not.toBeNull();
    const { error } = (await response.json()) as ErrorBody;
    expect(error).toMatchObject(expected.upstreamDown);
    expect(error.message).toMatch(/^http:\/\/127\.0\.0\.1:9 could not be reached/);
    expect(error.message).toContain('leporello doctor checks it.');
  });

  it('a store that cannot write prevents a fold that only saves money, but not the request', async () => {
    const refuse = () => Promise.reject(new LeporelloError('store-failed', 'The file is read-only.'));
    const store = { ...inMemoryStore(), putMany: refuse, putUnless: refuse };
    await using stack = await startStack(
      hello,
      { shrinks: false, triggers: { tokenBudget: { triggerTokens: 12_000, targetTokens: 6_000 } } },
      { store },
    );
    const body = longBody(format, 30);
    const response = await post(stack.url, format, body);
    expect(response.status).toBe(200);
    expect(response.headers.get('x-leporello-outcome')).toBe('failed');
    expect(new TextDecoder().decode(stack.provider.requests[0]!.body)).toBe(body);
    expect(stack.logged.join()).toContain('store-failed: The file is read-only.');
  });

  it.each([
    ['rejects', () => Promise.reject(new LeporelloError('store-failed', 'The file is read-only.'))],
    ['never answers', () => new Promise<never>(() => {})],
  ])('a store that %s does not prevent the fold of a request that would not fit', async (_, answer) => {
    const broken = { getMany: answer, getFirst: answer, putMany: answer, putUnless: answer };
    const store = { ...inMemoryStore(), ...broken };
    await using stack = await startStack(hello, { ...small, prepareDeadlineMs: 30 }, { store });
    const sent = () => new TextDecoder().decode(stack.provider.requests.at(-1)!.body);
    for (const jobs of [30, 30, 31]) {
      const response = await post(stack.url, format, longBody(format, jobs));
      expect([response.status, response.headers.get('x-leporello-outcome')]).toEqual([200, 'compacted']);
      expect(Number(response.headers.get('x-leporello-tokens-after'))).toBeLessThan(12_000);
    }
    expect(stack.provider.requests.length).toBe(3);
    const [first, again] = stack.provider.requests.map(({ body }) => new TextDecoder().decode(body));
    expect(again).toBe(first);
    expect(sent().length).toBeLessThan(longBody(format, 31).length);
  });

  it('a fold that is still being recorded at the deadline is sent as recorded', async () => {
    const late = inMemoryStore();
    const store: Store = {
      ...late,
      putUnless: async (guards, entries) => {
        await setTimeout(300);
        return late.putUnless(guards, entries);
      },
    };
    const budget = {
      shrinks: false,
      triggers: { tokenBudget: { triggerTokens: 12_000, targetTokens: 6_000 } },
    } as const;
    await using stack = await startStack(hello, { ...budget, prepareDeadlineMs: 100 }, { store });
    for (let time = 0; time < 2; time++) {
      await post(stack.url, format, longBody(format, 30));
      await setTimeout(400);
    }
    const [first, again] = stack.provider.requests.map(({ body }) => new TextDecoder().decode(body));
    expect(again).toBe(first);
  });

  it('a store that hangs delays the request until the deadline and does not lose it', async () => {
    const store = { ...inMemoryStore(), getMany: () => new Promise<never>(() => {}) };
    await using stack = await startStack(hello, { prepareDeadlineMs: 20 }, { store });
    const response = await post(stack.url, format, requestBody(format));
    expect(response.status).toBe(200);
    expect(response.headers.get('x-leporello-outcome')).toBe('failed');
    expect(new TextDecoder().decode(stack.provider.requests[0]!.body)).toBe(requestBody(format));
  });

  it('a store that hangs on writes does not make a request without a fold fail', async () => {
    const store = { ...inMemoryStore(), putUnless: () => new Promise<never>(() => {}) };
    await using stack = await startStack(hello, {}, { store });
    const response = await post(stack.url, format, requestBody(format));
    expect(response.status).toBe(200);
    expect(response.headers.get('x-leporello-outcome')).not.toBe('failed');
  });

  it('a 200 in an unknown format is returned unchanged', async () => {
    const chunks = ['{"weird":', 'true}'];
    await using stack = await startStack(() => ({
      type: 'raw',
      status: 200,
      headers: { 'content-type': 'application/json' },
      chunks,
    }));
    const response = await post(stack.url, format, requestBody(format));
    expect(await response.text()).toBe('{"weird":true}');
  });
});
