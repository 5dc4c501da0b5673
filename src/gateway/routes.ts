/** Which path speaks which wire format, and where it goes: the one place outside codecs/ that names providers. Pure. */
import { anthropicMessages } from '../codecs/anthropic-messages/index.ts';
import type { Codec } from '../codecs/codec.ts';
import { openaiChat } from '../codecs/openai-chat/index.ts';
import { headerOf } from './headers.ts';
import type { HeaderList } from './http.ts';

/** Base URLs of the upstreams, with or without their version segment (`/v1`). */
export type UpstreamUrls = { readonly openai: string; readonly anthropic: string };

export const defaultUpstreams: UpstreamUrls = {
  openai: 'https://api.openai.com/v1',
  anthropic: 'https://api.anthropic.com',
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
  if (path === '/healthz' || path === '/readyz' || path.startsWith('/_leporello/')) {
    return { kind: 'own', path, query: new URLSearchParams(query) };
  }
  const call = method === 'POST' ? modelPaths.find((known) => known.path.test(path)) : undefined;
  if (call) return { kind: call.kind, codec: call.codec, url: joinUrl(urls[call.upstream], target) };
  if (!path.startsWith('/v1/') && path !== '/v1') return { kind: 'unknown' };
  const upstream = isAnthropic(path, headers) ? 'anthropic' : 'openai';
  return { kind: 'pass', codec: codecs[upstream], url: joinUrl(urls[upstream], target) };
}

const codecs = { openai: openaiChat, anthropic: anthropicMessages } as const;

const modelPaths = [
  { path: /^(?:\/v1)?\/chat\/completions$/, kind: 'model', codec: openaiChat, upstream: 'openai' },
  { path: /^(?:\/v1)?\/messages$/, kind: 'model', codec: anthropicMessages, upstream: 'anthropic' },
  {
    path: /^(?:\/v1)?\/messages\/count_tokens$/,
    kind: 'count',
    codec: anthropicMessages,
    upstream: 'anthropic',
  },
] as const;

/** Both providers have `/v1/models` and `/v1/files`; only Anthropic's clients send its version or key header. */
function isAnthropic(path: string, headers: HeaderList): boolean {
  if (/^\/v1\/(?:messages|complete)(?:\/|$)/.test(path)) return true;
  return headerOf(headers, 'anthropic-version') !== undefined || headerOf(headers, 'x-api-key') !== undefined;
}

/** The version stands once: a base that ends in one (`/v1`, `/api/paas/v4`) takes the place of the client's. */
function joinUrl(base: string, target: string): string {
  const trimmed = base.replace(/\/+$/, '');
  const unversioned = target.replace(/^\/v1(?=[/?]|$)/, '');
  return /\/v\d+\w*$/.test(trimmed) ? trimmed + unversioned : `${trimmed}/v1${unversioned}`;
}

/** The credential a request carries, as the key alone, however its client sends it. */
export function credentialOf(headers: HeaderList): string | undefined {
  const bearer = headerOf(headers, 'authorization')?.replace(/^bearer\s+/i, '');
  return bearer ?? headerOf(headers, 'x-api-key');
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
