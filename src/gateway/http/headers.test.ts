import { describe, expect, it } from 'vitest';
import { type HeaderList, headerOf, headersToClient, headersToUpstream, withHeaders } from './http.ts';

const hops: HeaderList = [
  ['connection', 'keep-alive, X-Hop'],
  ['connection', 'x-other-hop'],
  ['x-hop', '1'],
  ['x-other-hop', '1'],
  ['keep-alive', 'timeout=5'],
  ['te', 'trailers'],
  ['trailer', 'x-sum'],
  ['transfer-encoding', 'chunked'],
  ['upgrade', 'h2c'],
  ['http2-settings', 'AAMAAABk'],
  ['proxy-authorization', 'Basic eA=='],
  ['proxy-connection', 'keep-alive'],
];

describe('headers to the upstream', () => {
  it('keep credentials, duplicates, order and odd values verbatim', () => {
    const headers: HeaderList = [
      ['authorization', 'Bearer secret'],
      ['x-api-key', 'k'],
      ['accept', 'a'],
      ['beta', 'one'],
      ['beta', 'two, three'],
      ['x-odd', ' \u00e9 \t '],
      ['content-length', '12'],
      ['content-encoding', 'gzip'],
    ];
    expect(headersToUpstream(headers, 'same')).toEqual(headers);
  });

  it('lose hop-by-hop headers, and those that the connection header names', () => {
    expect(headersToUpstream([...hops, ['accept', '*/*']], 'same')).toEqual([['accept', '*/*']]);
  });

  it("lose the host, an answered expectation and the gateway's own headers", () => {
    const headers: HeaderList = [
      ['host', 'gateway.test'],
      ['expect', '100-continue'],
      ['x-leporello-bypass', '1'],
      ['x-leporello-anything', '1'],
      ['x-leporellos', '1'],
    ];
    expect(headersToUpstream(headers, 'same')).toEqual([['x-leporellos', '1']]);
  });

  it('lose length and digests when the body changes', () => {
    const headers: HeaderList = [
      ['content-length', '12'],
      ['content-md5', 'x'],
      ['content-digest', 'x'],
      ['content-type', 'application/json'],
    ];
    expect(headersToUpstream(headers, 'changed')).toEqual([['content-type', 'application/json']]);
  });
});

describe('headers to the client', () => {
  it('keep every set-cookie and lose hop-by-hop headers', () => {
    const headers: HeaderList = [
      ['set-cookie', 'a=1'],
      ...hops,
      ['set-cookie', 'b=2'],
      ['content-length', '3'],
      ['retry-after', '2'],
      ['x-leporello-outcome', 'forged'],
    ];
    expect(headersToClient(headers, 'same')).toEqual([
      ['set-cookie', 'a=1'],
      ['set-cookie', 'b=2'],
      ['content-length', '3'],
      ['retry-after', '2'],
    ]);
    expect(headersToClient(headers, 'changed')).toEqual([
      ['set-cookie', 'a=1'],
      ['set-cookie', 'b=2'],
      ['retry-after', '2'],
    ]);
  });
});

describe('reading and replacing', () => {
  const headers: HeaderList = [
    ['a', '1'],
    ['b', '2'],
    ['a', '3'],
  ];

  it('returns the first value, or nothing', () => {
    expect([headerOf(headers, 'a'), headerOf(headers, 'c')]).toEqual(['1', undefined]);
  });

  it('replaces all headers of the same names', () => {
    expect(withHeaders(headers, [['a', '9']])).toEqual([
      ['b', '2'],
      ['a', '9'],
    ]);
  });
});
