import { describe, expect, it } from 'vitest';
import { hashOf } from '../../src/gateway/retrieve.ts';
import type { TenantSetting } from '../../src/gateway/routing/tenant.ts';
import type { ScriptRequest, Turn } from '../support/fake-provider/script.ts';
import { type Format, formats, longBody, post, requestBody, shapes } from './bodies.ts';
import { type Stack, startStack } from './stack.ts';

type Head = Readonly<Record<string, string>>;

const adminToken = 'operator-operator';

function jwt(claims: object): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  return `${part({ alg: 'RS256' })}.${part(claims)}.c2lnbmVk`;
}

/** A model that says hello, then recalls the original named in its first request, then answers. */
function remembers() {
  let id = '';
  let asked = 0;
  const script = ({ body }: ScriptRequest): Turn => {
    asked += 1;
    id ||= /mem_[0-9a-z]{16}/.exec(JSON.stringify(body))?.[0] ?? '';
    if (asked === 2)
      return {
        type: 'turn',
        parts: [{ type: 'tool-call', id: 'r', name: 'read_memory', arguments: { id } }],
      };
    return { type: 'turn', parts: [{ type: 'text', text: asked === 1 ? 'Hello.' : 'Found.' }] };
  };
  return { script, id: () => id };
}

function sentTo(stack: Stack, at: number): string {
  return new TextDecoder().decode(stack.provider.requests[at]!.body);
}

function commonLength(one: string, other: string): number {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at++;
  return at;
}

/** Plays 30 jobs with the first token, then 32 with the second. The provider gets three requests; the last one has the recalled text. */
async function playRefresh(format: Format, tenant: TenantSetting, heads: readonly [Head, Head]) {
  const model = remembers();
  // Cache breakpoints move between requests and would make the compared bytes differ.
  const stack = await startStack(model.script, {
    cacheMarks: false,
    tenant,
    adminToken,
    models: { '*': { windowTokens: 12_000 } },
  });
  const first = await post(stack.url, format, longBody(format, 30), heads[0]);
  expect(first.headers.get('x-leporello-outcome')).toBe('compacted');
  const second = await post(stack.url, format, longBody(format, 32), heads[1]);
  const look = async (path: string, head: Head = {}) => {
    const response = await fetch(`${stack.url}/_leporello/${path}`, { headers: head });
    return { status: response.status, text: await response.text() };
  };
  const dispose = () => stack[Symbol.asyncDispose]();
  return { stack, id: model.id(), answer: await second.text(), look, [Symbol.asyncDispose]: dispose };
}

const refreshed: readonly (readonly [string, TenantSetting, readonly [Head, Head]])[] = [
  ['local', 'local', [{ authorization: 'Bearer token-a' }, { authorization: 'Bearer token-b' }]],
  [
    'a header of a proxy',
    { header: 'X-Tenant' },
    [
      { authorization: 'Bearer token-a', 'x-tenant': 'alice@example.com' },
      { authorization: 'Bearer token-b', 'x-tenant': 'alice@example.com' },
    ],
  ],
  [
    'a claim',
    { claim: 'sub' },
    [
      { authorization: `Bearer ${jwt({ iss: 'https://auth.example', sub: 'alice', exp: 1 })}` },
      { authorization: `Bearer ${jwt({ iss: 'https://auth.example', sub: 'alice', exp: 2 })}` },
    ],
  ],
];

describe.each(refreshed)('with a tenant by %s', (_, tenant, heads) => {
  it.each(formats)(
    'a new token within a session changes no byte that was sent, and recalls still work (%s)',
    async (format) => {
      await using played = await playRefresh(format, tenant, heads);
      const { stack, id, answer } = played;
      const [before, after, withMemory] = [0, 1, 2].map((at) => sentTo(stack, at));
      // Only the closing brackets of the messages and the body differ.
      expect(commonLength(before!, after!)).toBe(before!.length - 2);
      expect(id).toMatch(/^mem_/);
      expect(withMemory).toContain('step 50 took 350 ms');
      expect(withMemory!.startsWith(after!.slice(0, -2))).toBe(true);
      expect(answer).toContain('Found.');
    },
  );
});

describe('with each credential as a tenant', () => {
  it('a new token is another tenant: no earlier fold is repeated', async () => {
    await using played = await playRefresh('chat', 'credential', refreshed[0]![2]);
    const { stack, id, look } = played;
    expect(commonLength(sentTo(stack, 0), sentTo(stack, 1))).toBeLessThan(1_000);
    expect((await look(`memory/${id}`, { authorization: 'Bearer token-a' })).status).toBe(200);
    expect((await look(`memory/${id}`, { authorization: 'Bearer token-b' })).status).toBe(404);
  });

  it('a new cookie is not a new tenant', async () => {
    const heads = [{ cookie: '__cf_bm=1' }, { cookie: '__cf_bm=2' }] as const;
    await using played = await playRefresh('messages', 'credential', heads);
    const { stack } = played;
    expect(commonLength(sentTo(stack, 0), sentTo(stack, 1))).toBe(sentTo(stack, 0).length - 2);
  });
});

describe('the data under /_leporello/', () => {
  it('for a local tenant: visible to direct requests from this machine, with any credential or none', async () => {
    await using played = await playRefresh('chat', 'local', refreshed[0]![2]);
    const { id, look } = played;
    expect((await look(`memory/${id}`)).text).toContain('job 0: step 50 took 350 ms');
    expect((await look(`memory/${id}`, { authorization: 'Bearer token-c' })).status).toBe(200);
    expect(JSON.parse((await look('receipts')).text)).toMatchObject({ receipts: [{}, {}] });
    for (const limit of ['1', '0.5', '-1']) {
      const { receipts } = JSON.parse((await look(`receipts?limit=${limit}`)).text) as {
        receipts: unknown[];
      };
      expect([limit, receipts.length]).toEqual([limit, 1]);
    }
    // A proxy on this machine may serve several people.
    for (const name of ['x-forwarded-for', 'forwarded', 'via', 'x-real-ip']) {
      expect((await look(`memory/${id}`, { [name]: '203.0.113.9' })).status).toBe(404);
      expect((await look('receipts', { [name]: '203.0.113.9', authorization: 'Bearer token-a' })).text).toBe(
        '{"receipts":[]}\n',
      );
    }
  });

  it('for a header of a proxy: only that of the tenant, and nothing without the header', async () => {
    await using played = await playRefresh('chat', { header: 'x-tenant' }, refreshed[1]![2]);
    const { stack, id, look } = played;
    const alice = { 'x-tenant': 'alice@example.com' };
    const bob = { 'x-tenant': 'bob@example.com', authorization: 'Bearer token-a' };
    expect((await look(`memory/${id}`, alice)).status).toBe(200);
    expect((await look(`memory/${id}`, bob)).status).toBe(404);
    expect((await look('receipts', bob)).text).toBe('{"receipts":[]}\n');
    expect((await look(`memory/${id}`, { authorization: 'Bearer token-a' })).status).toBe(403);
    expect((await look(`memory/${id}`, { authorization: `Bearer ${adminToken}` })).status).toBe(200);
    expect((await look('../healthz')).status).toBe(200);
    // The same conversation of another tenant starts from scratch, with its own ids.
    await post(stack.url, 'chat', longBody('chat', 30), bob);
    expect(sentTo(stack, 3)).not.toContain(id);
  });

  it('for a claim: nothing, because anybody can forge a claim; the administrator sees it', async () => {
    await using played = await playRefresh('chat', { claim: 'sub' }, refreshed[2]![2]);
    const { stack, id, look } = played;
    const forged = { authorization: `Bearer ${jwt({ iss: 'https://auth.example', sub: 'alice' })}` };
    const text =
      '{"error":{"type":"permission_error","message":"This gateway reads the tenant from a token that it does not verify, so the token opens no stored data: send the adminToken to /_leporello/*, and a key without that claim to /v1/compress and /v1/retrieve."}}\n';
    for (const path of ['receipts', 'totals', `memory/${id}`]) {
      expect(await look(path, forged)).toEqual({ status: 403, text });
    }
    const hash = hashOf(id);
    const sent = { messages: [{ role: 'user', content: 'Hello.' }], hash };
    for (const path of ['compress', 'retrieve', 'retrieve/tool_call']) {
      const response = await fetch(`${stack.url}/v1/${path}`, {
        method: 'POST',
        headers: forged,
        body: JSON.stringify(sent),
      });
      expect([path, response.status, await response.text()]).toEqual([path, 403, text]);
    }
    expect((await look(`../v1/retrieve/${hash}`, forged)).status).toBe(403);
    // Tokens without claims are tenants themselves.
    expect((await look('receipts', { authorization: 'Bearer opaque' })).text).toBe('{"receipts":[]}\n');
    expect((await look(`memory/${id}`, { authorization: `Bearer ${adminToken}` })).status).toBe(200);
  });
});

describe('the header that names the tenant', () => {
  it('is not sent to the provider', async () => {
    await using stack = await startStack([], { tenant: { header: 'x-tenant' } });
    await post(stack.url, 'chat', requestBody('chat'), { 'x-tenant': 'alice', 'x-other': '1' });
    await fetch(`${stack.url}/v1/models`, { headers: { 'x-tenant': 'alice', 'x-other': '1' } });
    for (const { headers } of stack.provider.requests) {
      expect(new Map(headers).get('x-other')).toBe('1');
      expect(new Map(headers).has('x-tenant')).toBe(false);
    }
    expect(stack.provider.requests.length).toBe(2);
  });

  it('is required: without it nothing is sent, and the client gets an error in its own format', async () => {
    await using stack = await startStack([], { tenant: { header: 'x-tenant' } });
    const message =
      'The request has no header x-tenant: the proxy in front of this gateway must set one, to name the tenant, and remove any other.';
    for (const format of formats) {
      const response = await post(stack.url, format, requestBody(format), { 'x-tenant': ' ' });
      expect([response.status, await response.json()]).toMatchObject([401, { error: { message } }]);
    }
    expect(stack.provider.requests).toEqual([]);
    expect((await fetch(stack.url + shapes.chat.path.replace('chat/completions', 'models'))).status).toBe(
      404,
    );
  });
});
