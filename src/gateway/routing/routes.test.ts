import { describe, expect, it } from 'vitest';
import { defaultUpstreams, routeOf } from './routes.ts';
import { sessionOf } from './tenant.ts';

const urls = {
  ...defaultUpstreams,
  openai: 'https://one.example/v1',
  anthropic: 'https://two.example',
  gemini: 'https://three.example',
};
const route = (method: string, target: string, headers: readonly (readonly [string, string])[] = []) => {
  const { kind, ...rest } = routeOf(method, target, headers, urls);
  return [kind, 'codec' in rest ? rest.codec.name : undefined, 'url' in rest ? rest.url : undefined];
};

describe('routes', () => {
  it('recognize model calls with and without a version, and keep the query', () => {
    expect(route('POST', '/v1/chat/completions')).toEqual([
      'model',
      'openai-chat',
      'https://one.example/v1/chat/completions',
    ]);
    expect(route('POST', '/chat/completions')).toEqual([
      'model',
      'openai-chat',
      'https://one.example/v1/chat/completions',
    ]);
    for (const target of ['/v1/responses', '/responses']) {
      expect(route('POST', `${target}?x=1`)).toEqual([
        'model',
        'openai-responses',
        'https://one.example/v1/responses?x=1',
      ]);
      expect(route('POST', `${target}/input_tokens`)).toEqual([
        'count',
        'openai-responses',
        'https://one.example/v1/responses/input_tokens',
      ]);
    }
    expect(route('POST', '/v1/messages?beta=true')).toEqual([
      'model',
      'anthropic-messages',
      'https://two.example/v1/messages?beta=true',
    ]);
    expect(route('POST', '/v1/messages/count_tokens')).toEqual([
      'count',
      'anthropic-messages',
      'https://two.example/v1/messages/count_tokens',
    ]);
  });

  it('are found with a version in front, as for a base URL that ends in /v1 where the client adds a version itself', () => {
    const stream = '/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse';
    for (const target of [
      '/v1/messages?beta=true',
      '/v1/messages/count_tokens',
      '/v1/chat/completions',
      '/v1/files',
      stream,
    ])
      expect(route('POST', `/v1${target}`)).toEqual(route('POST', target));
    expect(route('GET', '/v1/v1beta/models')).toEqual([
      'pass',
      'gemini',
      'https://three.example/v1beta/models',
    ]);
    expect(route('POST', '/v1/v1/compress')[0]).toBe('own');
    expect(route('POST', '/v1/v10/messages')[0]).toBe('refused');
  });

  it('recognize models that are named in the path', () => {
    const base = 'https://three.example/v1beta/models/gemini-3-pro';
    expect(route('POST', '/v1beta/models/gemini-3-pro:generateContent')).toEqual([
      'model',
      'gemini',
      `${base}:generateContent`,
    ]);
    expect(route('POST', '/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse')).toEqual([
      'model',
      'gemini',
      `${base}:streamGenerateContent?alt=sse`,
    ]);
    const inForm = (query: string) =>
      route('POST', `/v1beta/models/gemini-3-pro:streamGenerateContent${query}`)[0];
    expect(['', '?alt=json', '?alt=proto', '?$alt=json'].map(inForm)).toEqual([
      'model',
      'model',
      'pass',
      'pass',
    ]);
    expect(route('POST', '/v1/models/gemini-3-pro:countTokens')).toEqual([
      'count',
      'gemini',
      'https://three.example/v1/models/gemini-3-pro:countTokens',
    ]);
    expect(route('POST', '/v1beta/models/gemini-3-pro:embedContent')[0]).toBe('pass');
    expect(route('GET', '/v1beta/models')).toEqual(['pass', 'gemini', 'https://three.example/v1beta/models']);
  });

  it("pass everything else under /v1 to the client's provider", () => {
    expect(route('GET', '/v1/models')).toEqual(['pass', 'openai-chat', 'https://one.example/v1/models']);
    expect(route('GET', '/v1/models', [['anthropic-version', '2023-06-01']])).toEqual([
      'pass',
      'anthropic-messages',
      'https://two.example/v1/models',
    ]);
    expect(route('GET', '/v1/chat/completions')).toEqual([
      'pass',
      'openai-chat',
      'https://one.example/v1/chat/completions',
    ]);
    const responses = [
      ['POST', '/compact'],
      ['GET', '/resp_1'],
      ['GET', '/resp_1/input_items?limit=2'],
      ['DELETE', '/resp_1'],
      ['POST', '/resp_1/cancel'],
    ] as const;
    for (const [method, rest] of responses) {
      const url = `https://one.example/v1/responses${rest}`;
      expect(route(method, `/v1/responses${rest}`)).toEqual(['pass', 'openai-chat', url]);
      // With any key that a host of the format accepts, with and without the version.
      expect(route(method, `/responses${rest}`, [['x-api-key', 'k']])).toEqual(['pass', 'openai-chat', url]);
    }
    expect(route('POST', '/v1/messages/batches')).toEqual([
      'pass',
      'anthropic-messages',
      'https://two.example/v1/messages/batches',
    ]);
  });

  it("recognize the gateway's own paths and nothing else", () => {
    expect(route('GET', '/healthz')[0]).toBe('own');
    expect(route('GET', '/_leporello/receipts?limit=3')[0]).toBe('own');
    expect(route('GET', '/')[0]).toBe('refused');
    expect(route('GET', '/responsesx')[0]).toBe('refused');
    expect(route('GET', '/v2/models')[0]).toBe('refused');
  });

  it('leave a malformed % in the name of a model to the provider', () => {
    expect(route('POST', '/v1beta/models/a%zz:generateContent')).toEqual([
      'model',
      'gemini',
      'https://three.example/v1beta/models/a%zz:generateContent',
    ]);
  });

  it('encode bytes above 0x7F and backslashes so that each transport sends the same', () => {
    expect(route('GET', '/v1/models/\u00c3\u00a9\\b?a=\u65e5')[2]).toBe(
      'https://one.example/v1/models/%C3%A9%5Cb?a=%E6%97%A5',
    );
    expect(route('GET', '/v1/models/\ud800')[2]).toBe('https://one.example/v1/models/%EF%BF%BD');
  });

  it('fold calls of Vertex AI when geminiUrl is a Vertex AI endpoint', () => {
    const path = '/v1/projects/p/locations/us-central1/publishers/google/models/gemini-3-pro:generateContent';
    expect(route('POST', path)).toEqual(['model', 'gemini', `https://three.example${path}`]);
    const express = '/v1beta1/publishers/google/models/gemini-3-pro:streamGenerateContent?alt=sse';
    expect(route('POST', express)).toEqual(['model', 'gemini', `https://three.example${express}`]);
    const claude =
      '/v1/projects/p/locations/us-east5/publishers/anthropic/models/claude-sonnet-5-5:streamRawPredict';
    expect(route('POST', claude)).toEqual(['pass', 'gemini', `https://three.example${claude}`]);
  });

  it.each([
    ['https://host.example', 'https://host.example/v1/chat/completions'],
    ['https://host.example/', 'https://host.example/v1/chat/completions'],
    ['https://host.example/api/v1', 'https://host.example/api/v1/chat/completions'],
    ['https://host.example/api/paas/v4/', 'https://host.example/api/paas/v4/chat/completions'],
    ['https://host.example/v1beta', 'https://host.example/v1beta/chat/completions'],
  ])('have the version only once after %s', (openai, url) => {
    const found = routeOf('POST', '/v1/chat/completions', [], { ...urls, openai });
    expect('url' in found && found.url).toBe(url);
  });
});

describe('a request of a login with ChatGPT', () => {
  const login = [['chatgpt-account-id', 'a']] as const;
  const urlOf = (path: string, upstreams = defaultUpstreams): unknown => {
    const found = routeOf('POST', path, login, upstreams);
    return [found.kind, 'url' in found && found.url];
  };

  it("goes to ChatGPT's backend, which has no version in its paths", () => {
    const base = 'https://chatgpt.com/backend-api/codex';
    expect(urlOf('/v1/responses')).toEqual(['model', `${base}/responses`]);
    expect(urlOf('/responses')).toEqual(['model', `${base}/responses`]);
    expect(urlOf('/v1/responses/compact')).toEqual(['pass', `${base}/responses/compact`]);
    expect(routeOf('GET', '/v1/models?client_version=1', login, defaultUpstreams)).toMatchObject({
      url: `${base}/models?client_version=1`,
    });
  });

  it('goes to a configured upstream', () => {
    const at = (openai: string) => urlOf('/v1/responses', { ...defaultUpstreams, openai });
    expect(at('https://host.example')).toEqual(['model', 'https://host.example/v1/responses']);
    expect(at('https://host.example/backend-api/codex/')).toEqual([
      'model',
      'https://host.example/backend-api/codex/responses',
    ]);
  });
});

describe('the session of a request', () => {
  it('is the name that its client gives it', () => {
    expect(
      sessionOf([
        ['x-claude-code-session-id', 'a'],
        ['x-leporello-session', 'b'],
      ]),
    ).toBe('b');
    expect(sessionOf([['x-other', 'a']])).toBeUndefined();
  });
});
