import { describe, expect, it } from 'vitest';
import { inMemoryStore } from '../../store/in-memory.ts';
import { createEncryptedStore } from '../../store/encrypted-store.ts';
import type { HeaderList } from '../http/http.ts';
import { createTenantRule, type TenantSetting } from './tenant.ts';

const encryptedStore = createEncryptedStore({ store: inMemoryStore(), secret: new Uint8Array(32).fill(3) });

function tenantOf(setting: TenantSetting, headers: HeaderList, target = '/v1/models') {
  const signal = new AbortController().signal;
  return createTenantRule(setting, encryptedStore).tenantOf({
    method: 'GET',
    target,
    headers,
    body: undefined,
    signal,
  });
}

function labelOf(setting: TenantSetting, headers: HeaderList, target?: string): string | undefined {
  return tenantOf(setting, headers, target).label;
}

const jwt = (claims: object) => `e30.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.c2ln`;
const bearer = (token: string) => ['authorization', `Bearer ${token}`] as const;

describe('the tenant of a request', () => {
  it('is its credential, with a stable label', () => {
    expect(labelOf('credential', [bearer('k')])).toBe(encryptedStore.tenantOf('k'));
    expect(labelOf('credential', [])).toBe(encryptedStore.tenantOf(undefined));
  });

  it('is the same for all requests with a label', () => {
    expect(labelOf('me', [bearer('k'), ['via', '1.1 proxy']])).toBe('me');
  });

  it('is local for all requests sent directly from this machine', () => {
    for (const headers of [[], [bearer('a')], [['x-api-key', 'b']]] as const)
      expect(labelOf('local', headers)).toBe('local');
    expect(labelOf('local', [bearer('a'), ['x-forwarded-for', '203.0.113.9']])).toBe(
      encryptedStore.tenantOf('a'),
    );
  });

  it('is the value of a header, and differs from a credential with the same text', () => {
    const rule = { header: 'X-User' };
    const alice = labelOf(rule, [['x-user', ' alice '], bearer('a')]);
    expect(alice).toBe(labelOf(rule, [bearer('b'), ['x-user', 'alice']]));
    expect(alice).toMatch(/^[0-9a-z]{16}$/);
    expect(alice).not.toBe(labelOf(rule, [['x-user', 'bob']]));
    expect(alice).not.toBe(encryptedStore.tenantOf('alice'));
  });

  it('is unknown when the header is missing, empty or repeated', () => {
    const problem = (sent: string) => ({
      label: undefined,
      problem: `The request has ${sent}: the proxy in front of this gateway must set one, to name the tenant, and remove any other.`,
    });
    expect(tenantOf({ header: 'x-user' }, [bearer('a')])).toEqual(problem('no header x-user'));
    expect(tenantOf({ header: 'x-user' }, [['x-user', '']])).toEqual(problem('no header x-user'));
    expect(
      tenantOf({ header: 'x-user' }, [
        ['x-user', 'mallory'],
        ['x-user', 'alice'],
      ]),
    ).toEqual(problem('2 headers x-user'));
  });

  it('is the value of a claim, by its issuer, unverified', () => {
    const rule = { claim: 'sub' };
    const alice = labelOf(rule, [bearer(jwt({ iss: 'a', sub: 'alice', exp: 1 }))]);
    expect(tenantOf(rule, [bearer(jwt({ iss: 'a', sub: 'alice', exp: 2 }))])).toEqual({
      label: alice,
      isVerified: false,
    });
    const others = [
      [bearer(jwt({ iss: 'b', sub: 'alice' }))],
      [bearer(jwt({ iss: 'a', sub: 'bob' }))],
      // The provider may use this credential and not the token.
      [bearer(jwt({ iss: 'a', sub: 'alice' })), ['x-api-key', 'k']],
      [bearer(jwt({ iss: 'a', sub: 'alice' })), ['x-api-key', 'l']],
    ] as const;
    const labels = [alice, ...others.map((headers) => labelOf(rule, headers))];
    expect(new Set(labels).size).toBe(labels.length);
    expect(labelOf(rule, [bearer(jwt({ sub: 'd\u00e9j\u00e0' }))])).not.toBe(
      labelOf(rule, [bearer(jwt({ sub: 'deja' }))]),
    );
  });

  it.each([
    'opaque',
    jwt({}),
    jwt({ sub: '' }),
    jwt({ sub: { a: 1 } }),
    'a.b.c',
    'a.%%%.c',
    `a.${btoa('null')}.c`,
    `a.${btoa('{')}.c`,
  ])('is the credential when %s has no such claim', (token) => {
    expect(tenantOf({ claim: 'sub' }, [bearer(token)])).toEqual({
      label: encryptedStore.tenantOf(token),
      isVerified: true,
    });
  });
});

describe('an invalid tenant setting', () => {
  it.each([
    [
      'Me',
      'tenant is "Me": it must be local, credential, a label of 1 to 64 characters of a-z, 0-9 and -, {"header": NAME} or {"claim": NAME}.',
    ],
    [
      '',
      'tenant is "": it must be local, credential, a label of 1 to 64 characters of a-z, 0-9 and -, {"header": NAME} or {"claim": NAME}.',
    ],
    [
      { claim: '' },
      'tenant is {"claim":""}: it must be local, credential, a label of 1 to 64 characters of a-z, 0-9 and -, {"header": NAME} or {"claim": NAME}.',
    ],
    [
      { header: 'x', claim: 'y' },
      'tenant is {"header":"x","claim":"y"}: it must be local, credential, a label of 1 to 64 characters of a-z, 0-9 and -, {"header": NAME} or {"claim": NAME}.',
    ],
    [
      { header: 'x y' },
      'tenant.header is "x y": it must be the name of a header that the proxy in front sets, such as x-tenant, and not of one that contains a credential.',
    ],
    [
      { header: 'Authorization' },
      'tenant.header is "Authorization": it must be the name of a header that the proxy in front sets, such as x-tenant, and not of one that contains a credential.',
    ],
  ] as const)('%j is refused at the start', (setting, message) => {
    expect(() => createTenantRule(setting, encryptedStore)).toThrow(
      expect.objectContaining({ code: 'bad-config', message }),
    );
  });
});
