import { describe, expect, it } from 'vitest';
import { refuseForeign } from './foreign-pages.ts';
import type { HeaderList } from '../http/http.ts';

const allowed = ['localhost', '127.0.0.1', '[::1]'];
const statusOf = (headers: HeaderList) =>
  refuseForeign(
    { method: 'GET', target: '/', headers, body: undefined, signal: new AbortController().signal },
    allowed,
  )?.status;

describe('the guard against web pages', () => {
  it.each(['localhost:8787', '127.0.0.1:8787', '127.0.0.1', '[::1]:8787', 'LOCALHOST:1'])(
    'lets programs through that address %s',
    (host) => {
      expect(statusOf([['host', host]])).toBeUndefined();
    },
  );

  it.each(['evil.example:8787', 'localhost.evil.example', '', '0.0.0.0:8787'])(
    'refuses requests addressed to %j, as after DNS rebinding',
    (host) => {
      expect(statusOf([['host', host]])).toBe(421);
    },
  );

  it.each(['https://evil.example', 'http://evil.example:8787', 'null'])('refuses pages of %s', (origin) => {
    expect(
      statusOf([
        ['host', 'localhost:8787'],
        ['origin', origin],
      ]),
    ).toBe(403);
  });

  it.each(['http://localhost:3000', 'https://127.0.0.1', 'app://desktop', 'vscode-webview://id'])(
    'lets %s through',
    (origin) => {
      expect(
        statusOf([
          ['host', 'localhost:8787'],
          ['origin', origin],
        ]),
      ).toBeUndefined();
    },
  );

  it.each([
    ['cross-site', 'script', 403],
    ['cross-site', 'image', 403],
    ['cross-site', 'iframe', 403],
    ['cross-site', 'empty', 403],
    ['cross-site', 'document', undefined],
    ['none', 'document', undefined],
    ['same-origin', 'empty', undefined],
  ])('answers a browser that loads it from a %s page as %s with %s', (site, dest, status) => {
    expect(
      statusOf([
        ['host', 'localhost:8787'],
        ['sec-fetch-site', site],
        ['sec-fetch-dest', dest],
      ]),
    ).toBe(status);
  });
});
