import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { assembleGateway, type GatewaySettings } from '../app.ts';
import type { GatewayRequest, HeaderList } from '../http/http.ts';
import { receiptArchive } from '../receipts/archive.ts';
import { inMemoryStore } from '../../store/in-memory.ts';

const adminToken = 'operator-operator';

function gateway(settings: GatewaySettings = { tenant: 'local' }, keeps = true) {
  const handler = assembleGateway(settings, {
    store: inMemoryStore(),
    secret: new Uint8Array(32).fill(6),
    upstream: { send: () => Promise.reject(new Error('nothing is sent')), close: () => Promise.resolve() },
    log: { info: () => undefined, warn: () => undefined },
    ...(keeps && { archive: receiptArchive() }),
  });
  return async (target: string, request: Partial<GatewayRequest> = {}) => {
    const { status, headers, body } = await handler({
      method: 'GET',
      target,
      headers: [['host', '127.0.0.1:8787']],
      body: undefined,
      signal: new AbortController().signal,
      ...request,
    });
    const text = body instanceof Uint8Array ? new TextDecoder().decode(body) : '';
    return { status, headers: new Map(headers), text };
  };
}

async function* bytes(text: string) {
  yield new TextEncoder().encode(text);
}

const pin = (headers: HeaderList) =>
  ({ method: 'POST', headers: [['host', '127.0.0.1:8787'], ...headers], body: bytes('tool=Read') }) as const;

const basic = (password: string): HeaderList => [
  ['host', 'gateway.example:8787'],
  ['authorization', `Basic ${btoa(`me:${password}`)}`],
];

it('the list of receipts names the path of older ones', async () => {
  const ask = gateway();
  const body = () => bytes('{"model":"m","messages":[{"role":"user","content":"Hi"}]}');
  for (let request = 0; request < 5; request++)
    await ask('/v1/chat/completions', { method: 'POST', body: body() });
  const pages: (readonly number[])[] = [];
  const ids = new Set<string>();
  let path: string | undefined = '/_leporello/receipts?limit=2';
  while (path !== undefined && pages.length < 9) {
    const list = JSON.parse((await ask(path)).text) as ReceiptPage;
    for (const { id } of list.receipts) ids.add(id);
    pages.push([list.receipts.length, ids.size]);
    path = list.older;
  }
  expect(pages).toEqual([
    [2, 2],
    [2, 4],
    [1, 5],
  ]);
});

type ReceiptPage = { readonly receipts: readonly { readonly id: string }[]; readonly older?: string };

describe('the pages', () => {
  it('forbid everything that does not come from the gateway itself', async () => {
    const { status, headers, text } = await gateway()('/_leporello/');
    expect(status).toBe(200);
    const style = ['page.css', 'views.css'].map((name) => readFileSync(`src/page/${name}`, 'utf8')).join('');
    const digest = hash('sha256', style, 'base64');
    expect(headers.get('content-security-policy')).toBe(
      `default-src 'none'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; style-src 'sha256-${digest}'`,
    );
    expect(headers.get('cache-control')).toBe('no-store');
    expect(text).toContain('<h1>Requests</h1>');
    expect(text.match(/<style>/g)).toHaveLength(1);
    expect(text).not.toMatch(/<script>|style=|onclick|https?:/);
  });

  it('leave no handle to a site that opened them', async () => {
    const policyFor = async (...headers: HeaderList) =>
      (await gateway()('/_leporello/', { headers })).headers.get('cross-origin-opener-policy');
    const document = ['sec-fetch-dest', 'document'] as const;
    expect(await policyFor(document, ['sec-fetch-site', 'cross-site'])).toBe('same-origin');
    expect(await policyFor(document, ['sec-fetch-site', 'same-site'])).toBe('same-origin');
    expect(await policyFor()).toBe('same-origin');
    // A person typed the address, or followed a link of these pages.
    expect(await policyFor(document, ['sec-fetch-site', 'none'])).toBeUndefined();
    expect(await policyFor(document, ['sec-fetch-site', 'same-origin'])).toBeUndefined();
  });

  it('are where a browser that opens the address of the gateway is sent, but not a program', async () => {
    const ask = gateway();
    const browser = await ask('/', { headers: [['accept', 'text/html,*/*;q=0.8']] });
    expect([browser.status, browser.headers.get('location')]).toEqual([302, '/_leporello/']);
    expect((await ask('/', { headers: [['accept', '*/*']] })).status).toBe(404);
  });

  it('are for this machine, or for the holder of the admin token', async () => {
    const direct = gateway({ tenant: 'local', adminToken });
    expect((await direct('/_leporello/')).status).toBe(200);
    expect((await direct('/_leporello/', { headers: [['x-forwarded-for', '10.0.0.1']] })).status).toBe(401);
    const remote = gateway({ tenant: 'credential', adminToken });
    const asked = await remote('/_leporello/');
    expect([asked.status, asked.headers.get('www-authenticate')]).toEqual([401, 'Basic realm="Leporello"']);
    expect((await remote('/_leporello/', { headers: basic('a-wrong-password!') })).status).toBe(401);
    expect((await remote('/_leporello/', { headers: basic(adminToken) })).status).toBe(200);
    expect((await gateway({ tenant: 'credential' })('/_leporello/live')).status).toBe(403);
    expect((await gateway({ tenant: 'acme' })('/_leporello/originals')).status).toBe(403);
  });

  it('are missing where no receipts are kept', async () => {
    expect((await gateway({ tenant: 'local' }, false)('/_leporello/')).status).toBe(404);
  });

  it('change something only for their own forms', async () => {
    const ask = gateway();
    const refused: readonly HeaderList[] = [
      [],
      [['origin', 'http://127.0.0.1:3000']],
      [['origin', 'null']],
      [['origin', 'http://evil.example']],
      [['sec-fetch-site', 'same-site']],
      [
        ['origin', 'http://127.0.0.1:8787'],
        ['sec-fetch-site', 'cross-site'],
      ],
    ];
    for (const headers of refused) expect((await ask('/_leporello/pin', pin(headers))).status).toBe(403);
    const own = pin([['origin', 'http://127.0.0.1:8787']]);
    expect((await ask('/_leporello/unpin', own)).status).toBe(303);
    expect((await ask('/_leporello/setup', pin([['origin', 'http://127.0.0.1:8787']]))).status).toBe(405);
  });
});
