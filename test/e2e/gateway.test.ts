import { describe, expect, it } from 'vitest';
import type { Receipt } from '../../src/receipts/receipt.ts';
import { formats, longBody, post, requestBody } from './bodies.ts';
import { replies, withoutEcho } from './replies.ts';
import { offering, startStack } from './stack.ts';

const hello = () => ({ type: 'turn', parts: [{ type: 'text', text: 'Hello.' }] }) as const;
const small = { models: { '*': { windowTokens: 12_000 } } };
const sentTo = (stack: { provider: { requests: readonly { body: Uint8Array }[] } }, at = 0) =>
  new TextDecoder().decode(stack.provider.requests[at]!.body);

describe.each(formats)('a %s request through the gateway', (format) => {
  it('is not changed with x-leporello-bypass: 1', async () => {
    await using stack = await startStack(hello, small);
    const response = await post(stack.url, format, longBody(format, 30), { 'x-leporello-bypass': '1' });
    expect(response.headers.get('x-leporello-outcome')).toBe('untouched');
    expect(sentTo(stack)).toBe(longBody(format, 30));
  });

  it("is sent with the client's credentials and headers, without the gateway's own", async () => {
    await using stack = await startStack(hello);
    await post(stack.url, format, requestBody(format), {
      'x-custom': 'a, b',
      'x-leporello-session': 's1',
      'anthropic-beta': 'x-1',
    });
    const headers = new Map(stack.provider.requests[0]!.headers);
    expect(headers.get('authorization')).toBe('Bearer dummy');
    expect(headers.get('x-custom')).toBe('a, b');
    expect(headers.get('anthropic-beta')).toBe('x-1');
    expect([...headers.keys()].filter((name) => name.includes('leporello'))).toEqual([]);
    expect(headers.get('content-length')).toBe(String(stack.provider.requests[0]!.body.length));
  });

  it('is compacted; its receipt and originals are only for its own credential', async () => {
    await using stack = await startStack(hello, { ...small, adminToken: 'operator-operator' });
    const response = await post(stack.url, format, longBody(format, 30), {
      'x-leporello-session': 'session-1',
    });
    expect(response.headers.get('x-leporello-outcome')).toBe('compacted');
    const before = Number(response.headers.get('x-leporello-tokens-before'));
    const after = Number(response.headers.get('x-leporello-tokens-after'));
    expect(before).toBeGreaterThan(after * 3);
    const id = response.headers.get('x-leporello-receipt')!;
    const memory = /mem_[0-9a-z]{16}/.exec(sentTo(stack))![0];
    const get = async (path: string, key: string) =>
      fetch(stack.url + path, { headers: { authorization: `Bearer ${key}` } });
    for (const key of ['dummy', 'operator-operator']) {
      const receipt = (await (await get(`/_leporello/receipts/${id}`, key)).json()) as Receipt;
      expect(receipt).toMatchObject({
        id,
        session: 'session-1',
        trigger: 'must-fit',
        tokensBefore: before,
        tokensAfter: after,
      });
      expect(
        ((await (await get('/_leporello/receipts', key)).json()) as { receipts: Receipt[] }).receipts.map(
          (one) => one.id,
        ),
      ).toEqual([id]);
      const original = await get(`/_leporello/memory/${memory}`, key);
      expect(original.status).toBe(200);
      for (const answer of [original, await get('/_leporello/receipts', key)])
        expect(['cache-control', 'x-content-type-options'].map((name) => answer.headers.get(name))).toEqual([
          'no-store',
          'nosniff',
        ]);
      expect(await original.text()).toMatch(/^"job 0: step 0 took 0 ms\\n|^\[\{"role":/);
    }
    expect((await get(`/_leporello/receipts/${id}`, 'other')).status).toBe(404);
    expect((await get(`/_leporello/memory/${memory}`, 'other')).status).toBe(404);
    expect(await (await get('/_leporello/receipts', 'other')).json()).toEqual({ receipts: [] });
  });

  it('is not continued if the reply was cut off in a recall', async () => {
    const parts = [
      { type: 'text', text: 'Half a ' },
      { type: 'tool-call', name: 'read_memory', arguments: { id: 'mem_0000000000000000' } },
    ] as const;
    const { finish, reported } = replies[format].cutOff;
    await using stack = await startStack(() => ({ type: 'turn', parts, finish }), offering);
    const text = await (await post(stack.url, format, requestBody(format))).text();
    expect(stack.provider.requests.length).toBe(1);
    expect(text).toContain('Half a ');
    expect(text).toContain(reported);
    expect(withoutEcho(text)).not.toContain('read_memory');
  });

  it('leaves neither content nor credentials in the log', async () => {
    await using stack = await startStack(hello, { ...small, prepareDeadlineMs: 1 });
    await post(stack.url, format, longBody(format, 60), { authorization: 'Bearer very-secret' });
    expect(stack.logged.join('\n')).not.toMatch(/very-secret|took 7 ms/);
  });
});

describe('the gateway', () => {
  it('logs each new fold in one line: trigger and goal, tokens before and after, what each strategy took, what stayed and why', async () => {
    await using stack = await startStack(hello, small);
    await post(stack.url, 'chat', longBody('chat', 60));
    await post(stack.url, 'chat', longBody('chat', 60));
    const folds = stack.logged
      .filter((line) => line.startsWith('folded '))
      .map((line) => JSON.parse(line.slice('folded '.length)) as Record<string, unknown>);
    // A repeated fold is not logged again.
    expect(folds).toEqual([
      {
        receipt: expect.any(String) as string,
        model: expect.any(String) as string,
        trigger: 'must-fit',
        goal: expect.stringMatching(/^\d+ tokens$/) as string,
        tokensBefore: expect.any(Number) as number,
        tokensAfter: expect.any(Number) as number,
        percentBefore: expect.closeTo(((folds[0]!['tokensBefore'] as number) / 12_000) * 100, 1) as number,
        percentAfter: expect.closeTo(((folds[0]!['tokensAfter'] as number) / 12_000) * 100, 1) as number,
        tokensKept: expect.any(Number) as number,
        took: [expect.stringMatching(/^offload-results: \d+ tokens in \d+ edits$/) as string],
        stayed: [
          expect.stringMatching(/^newest: [1-9]\d* tokens$/) as string,
          expect.stringMatching(/^not needed: [1-9]\d* tokens$/) as string,
        ],
      },
    ]);
  });

  it('answers count_tokens for the request as it would be sent', async () => {
    await using stack = await startStack(hello, small);
    const body = longBody('messages', 30);
    const headers = {
      'content-type': 'application/json',
      'x-api-key': 'dummy',
      'anthropic-version': '2023-06-01',
    };
    const counted = await fetch(`${stack.url}/v1/messages/count_tokens?beta=true`, {
      method: 'POST',
      headers,
      body,
    });
    expect(counted.status).toBe(200);
    await fetch(`${stack.url}/v1/messages?beta=true`, { method: 'POST', headers, body });
    expect(stack.provider.requests.map((request) => request.target)).toEqual([
      '/v1/messages/count_tokens?beta=true',
      '/v1/messages?beta=true',
    ]);
    expect(sentTo(stack, 0)).toBe(sentTo(stack, 1));
    expect(sentTo(stack, 0).length).toBeLessThan(body.length / 2);
  });

  it('passes other paths under /v1 through, byte for byte', async () => {
    await using stack = await startStack(hello);
    const odd = '{"model" : "m",  "input": 12345678901234567890 }';
    const response = await fetch(`${stack.url}/v1/embeddings?x=1`, {
      method: 'POST',
      body: odd,
      headers: { 'content-type': 'application/json' },
    });
    expect(response.status).toBe(404);
    expect(stack.provider.requests[0]).toMatchObject({ target: '/v1/embeddings?x=1', method: 'POST' });
    expect(sentTo(stack)).toBe(odd);
    expect(response.headers.get('x-leporello-outcome')).toBeNull();
  });

  it('explains its paths to a client that calls another one', async () => {
    await using stack = await startStack(hello);
    const response = await fetch(`${stack.url}/v2/nothing`);
    expect(response.status).toBe(404);
    expect(await response.json()).toEqual({
      error: {
        message:
          'The request was not sent: /v2/nothing belongs to no provider that this gateway knows: provider paths begin with /v1 or /v1beta, so check the base URL of the client.',
        type: 'invalid_request_error',
        param: null,
        code: null,
      },
    });
  });

  it('answers a HEAD request, with which some clients check the server', async () => {
    await using stack = await startStack(hello);
    const looked = await fetch(stack.url, { method: 'HEAD' });
    expect([looked.status, await looked.text()]).toEqual([404, '']);
    expect((await post(stack.url, 'messages', requestBody('messages'))).status).toBe(200);
  });

  it('reports that it is alive and ready', async () => {
    await using stack = await startStack(hello);
    expect(await (await fetch(`${stack.url}/healthz`)).json()).toEqual({ status: 'ok' });
    expect(await (await fetch(`${stack.url}/readyz`)).json()).toEqual({ status: 'ready' });
  });
});
