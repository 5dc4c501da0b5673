/** Which path speaks which wire format, and where it goes: the one place outside codecs/ that names providers. Pure. */
import { anthropicMessages } from '../codecs/anthropic-messages/index.ts';
import type { Codec } from '../codecs/codec.ts';
import { geminiFor, gemini } from '../codecs/gemini/index.ts';
import { openaiChat } from '../codecs/openai-chat/index.ts';
import { openaiResponses } from '../codecs/openai-responses/index.ts';
import { headerOf } from './headers.ts';
import type { HeaderList } from './http.ts';

/** Base URLs of the upstreams, with or without their version segment (`/v1`). */
export type UpstreamUrls = { readonly openai: string; readonly anthropic: string; readonly gemini: string };

export const defaultUpstreams: UpstreamUrls = {
  openai: 'https://api.openai.com/v1',
  anthropic: 'https://api.anthropic.com',
  gemini: 'https://generativelanguage.googleapis.com',
};

export type Route =
  /** A model call: folded, recalled, receipted. */
  | { readonly kind: 'model'; readonly codec: Codec; readonly url: string }
  /** A count of what would be sent: folded, but no model answers. */
  | { readonly kind: 'count'; readonly codec: Codec; readonly url: string }
  /** Anything else of a provider: bytes in, bytes out. `codec` spells our own errors. */
  | { readonly kind: 'pass'; readonly codec: Codec; readonly url: string }
  /** Ours. */
  | { readonly kind: 'own'; readonly path: string; readonly query: URLSearchParams }
  | { readonly kind: 'unknown' };

export function routeOf(method: string, target: string, headers: HeaderList, urls: UpstreamUrls): Route {
  const [path = '/', query] = target.split('?', 2);
  if (isOwnPath(path)) return { kind: 'own', path, query: new URLSearchParams(query) };
  const call = method === 'POST' ? modelPaths.find((known) => known.path.test(path)) : undefined;
  if (call) return { kind: call.kind, codec: call.codec, url: joinUrl(urls[call.upstream], target) };
  const named = namedModelRoute(method, path, query);
  if (named) return { ...named, url: joinUrl(urls.gemini, target) };
  if (!/^\/(?:v1(?:beta\w*)?|responses)(?:\/|$)/.test(path)) return { kind: 'unknown' };
  const upstream = upstreamOf(path, headers);
  return { kind: 'pass', codec: codecs[upstream], url: joinUrl(urls[upstream], target) };
}

/** Paths that the gateway answers itself. */
export function isOwnPath(path: string): boolean {
  return ['/healthz', '/readyz', '/metrics'].includes(path) || path.startsWith('/_leporello/');
}

const codecs = { openai: openaiChat, anthropic: anthropicMessages, gemini } as const;

const modelPaths = [
  { path: /^(?:\/v1)?\/chat\/completions$/, kind: 'model', codec: openaiChat, upstream: 'openai' },
  { path: /^(?:\/v1)?\/responses$/, kind: 'model', codec: openaiResponses, upstream: 'openai' },
  {
    path: /^(?:\/v1)?\/responses\/input_tokens$/,
    kind: 'count',
    codec: openaiResponses,
    upstream: 'openai',
  },
  { path: /^(?:\/v1)?\/messages$/, kind: 'model', codec: anthropicMessages, upstream: 'anthropic' },
  {
    path: /^(?:\/v1)?\/messages\/count_tokens$/,
    kind: 'count',
    codec: anthropicMessages,
    upstream: 'anthropic',
  },
] as const;

/**
 * Gemini names model and action in the path: `/v1beta/models/M:streamGenerateContent?alt=sse`. A stream that is not SSE is one JSON
 * array that arrives in pieces; it is passed through.
 */
function namedModelRoute(method: string, path: string, query: string | undefined) {
  const [, model, action] = /^\/v1(?:beta\w*)?\/(?:models|tunedModels)\/([^/:]+):(\w+)$/.exec(path) ?? [];
  if (method !== 'POST' || model === undefined) return undefined;
  const streaming = action === 'streamGenerateContent';
  const codec = geminiFor({ model: decodeURIComponent(model), streaming });
  if (action === 'countTokens') return { kind: 'count', codec } as const;
  const isRead =
    action === 'generateContent' || (streaming && new URLSearchParams(query).get('alt') === 'sse');
  return { kind: isRead ? 'model' : 'pass', codec } as const;
}

/** Where a request of our own goes, beside one that went to `url`: complete, not streamed, for `model` where the path names it. */
export function promptUrl(url: string, model: string | undefined): string {
  const [path = '', query = ''] = url.split('?', 2);
  const named = /^(.*\/(?:models|tunedModels)\/)([^/:]+):\w+$/.exec(path);
  if (!named) return url;
  const asked = new URLSearchParams(query);
  asked.delete('alt');
  const rest = asked.size === 0 ? '' : `?${asked.toString()}`;
  return `${named[1]!}${model === undefined ? named[2]! : encodeURIComponent(model)}:generateContent${rest}`;
}

/** Several providers have `/v1/models` and `/v1/files`; their clients say whom they mean by their own headers. */
function upstreamOf(path: string, headers: HeaderList): keyof UpstreamUrls {
  if (/^\/v1\/(?:messages|complete)(?:\/|$)/.test(path)) return 'anthropic';
  if (/^(?:\/v1)?\/responses(?:\/|$)/.test(path)) return 'openai';
  if (path.startsWith('/v1beta') || headerOf(headers, 'x-goog-api-key') !== undefined) return 'gemini';
  const says = headerOf(headers, 'anthropic-version') ?? headerOf(headers, 'x-api-key');
  return says === undefined ? 'openai' : 'anthropic';
}

/** The version stands once: a base that ends in one (`/v1`, `/api/paas/v4`) takes the place of the client's. */
function joinUrl(base: string, target: string): string {
  const trimmed = base.replace(/\/+$/, '');
  const [, version = '/v1', rest = ''] = /^(\/v1(?:beta\w*)?(?=[/?]|$))?(.*)$/s.exec(target) ?? [];
  return /\/v\d+\w*$/.test(trimmed) ? trimmed + rest : trimmed + version + rest;
}

/** Headers that say whose a request is, over all clients and hosts of these formats. */
const credentialHeaders = ['authorization', 'x-api-key', 'api-key', 'x-goog-api-key', 'cookie'];

/**
 * The credential a request carries: the key alone where there is one, however its client sends it; all of them where there are
 * several, so that users behind one shared key stay apart. Undefined without any.
 */
export function credentialOf(headers: HeaderList, target: string): string | undefined {
  const found = headers
    .filter(([name]) => credentialHeaders.includes(name))
    .map(([name, value]) => (name === 'authorization' ? value.replace(/^bearer\s+/i, '') : value));
  const inQuery = new URLSearchParams(target.split('?', 2)[1]).get('key');
  const all = new Set(inQuery === null ? found : [...found, inQuery]);
  return all.size === 0 ? undefined : [...all].toSorted().join('\n');
}

/** What clients call their session; used to group receipts, never for correctness. */
export function sessionOf(headers: HeaderList): string | undefined {
  for (const name of [
    'x-leporello-session',
    'x-claude-code-session-id',
    'x-session-affinity',
    'session-id',
    'session_id',
  ]) {
    const value = headerOf(headers, name);
    if (value !== undefined) return value;
  }
  return undefined;
}
