import { describe, expect, it } from 'vitest';
import { carriesToken, joinedCredentials, hasCredential } from './tenant.ts';
import type { HeaderList } from '../http/http.ts';

describe('the credential of a request', () => {
  it('is only the key, however it is sent', () => {
    const sent = [
      [['authorization', 'Bearer k']],
      [['authorization', 'bearer  k']],
      [['x-api-key', 'k']],
      [['api-key', 'k']],
      [['x-goog-api-key', 'k']],
    ] as const;
    for (const headers of sent) expect(joinedCredentials(headers, '/v1/x')).toBe('k');
    expect(joinedCredentials([], '/v1/x?alt=sse&key=k')).toBe('k');
  });

  it('is all of them if there are several, so that users of one shared key stay separate', () => {
    const shared = ['authorization', 'Bearer proxy'] as const;
    expect(joinedCredentials([shared, ['x-api-key', 'alice']], '/')).toBe('alice\nproxy');
    expect(joinedCredentials([shared, ['x-api-key', 'proxy']], '/')).toBe('proxy');
  });

  it('may be missing', () => {
    expect(joinedCredentials([['host', 'x']], '/v1/x')).toBeUndefined();
  });

  it('is not a cookie, which a load balancer may change within a conversation', () => {
    expect(
      joinedCredentials(
        [
          ['authorization', 'Bearer k'],
          ['cookie', '__cf_bm=1'],
        ],
        '/',
      ),
    ).toBe('k');
    expect(joinedCredentials([['cookie', 'session=bob']], '/')).toBeUndefined();
  });
});

const token = 'administrator-16';

function asked(headers: HeaderList, target = '/v1/models') {
  return { method: 'GET', target, headers, body: undefined, signal: new AbortController().signal };
}

describe("the gateway's own token", () => {
  const carried: readonly (readonly [HeaderList, string])[] = [
    [[['authorization', `Bearer ${token}`]], '/v1/models'],
    [[['authorization', token]], '/v1/models'],
    [[['authorization', `Basic ${btoa(`admin:${token}`)}`]], '/v1/models'],
    [[['x-api-key', token]], '/v1/models'],
    [[['api-key', token]], '/v1/models'],
    [[['x-goog-api-key', token]], '/v1/models'],
    [[['cookie', `a=b; token=${token}`]], '/v1/models'],
    [[['x-other', token]], '/v1/models'],
    [
      [
        ['x-api-key', 'sk-ant-real'],
        ['authorization', `Bearer ${token}`],
      ],
      '/v1/messages',
    ],
    [[], `/v1/models?key=${token}`],
    [[], `/v1/models?token=${token.replace('-', '%2D')}`],
    [[], `/v1/models/${token}`],
  ];

  it.each(carried)('is found anywhere in a request: %j %s', (headers, target) => {
    expect(carriesToken(asked(headers, target), token)).toBe(true);
  });

  it('is found nowhere else', () => {
    const headers: HeaderList = [
      ['authorization', 'Bearer administrator-17'],
      ['x-other', 'Basic %%%'],
      ['proxy-authorization', 'Basic !'],
    ];
    expect(carriesToken(asked(headers, '/v1/models?key=%zz&a=%'), token)).toBe(false);
  });

  it('is accepted next to other credentials', () => {
    expect(
      hasCredential(
        asked([
          ['x-api-key', 'other'],
          ['authorization', `Bearer ${token}`],
        ]),
        token,
      ),
    ).toBe(true);
    expect(hasCredential(asked([['authorization', 'Bearer administrator-17']]), token)).toBe(false);
    expect(hasCredential(asked([]), token)).toBe(false);
  });
});
