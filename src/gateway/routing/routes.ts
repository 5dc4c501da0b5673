/** Maps a request's method and path to its wire format and to the URL it is sent to. */
import { anthropicMessages } from '../../codecs/anthropic-messages/index.ts';
import type { Codec, GatewayProblem } from '../../codecs/codec.ts';
import { geminiFor, gemini } from '../../codecs/gemini/index.ts';
import { openaiChat } from '../../codecs/openai-chat/index.ts';
import { openaiResponses } from '../../codecs/openai-responses/index.ts';
import { percentDecoded, queryOf } from './tenant.ts';
import { type HeaderList, headerOf } from '../http/http.ts';
import { destinationOf, type Provider, type UpstreamUrls } from './provider-of.ts';

/** The treatment of a request. */
export type Route =
  /** A model call: folded, with recalls and a receipt. */
  | { readonly kind: 'model'; readonly codec: Codec; readonly url: string }
  /** A request that counts tokens: folded, but no model answers. */
  | { readonly kind: 'count'; readonly codec: Codec; readonly url: string }
  /** Any other request to a provider, passed through. `codec` formats the gateway's errors. */
  | { readonly kind: 'pass'; readonly codec: Codec; readonly url: string }
  /** A path of the gateway itself. */
  | { readonly kind: 'own'; readonly path: string; readonly query: URLSearchParams }
  /** A request that is not sent anywhere. `codec` formats the problem. */
  | { readonly kind: 'refused'; readonly codec: Codec; readonly problem: GatewayProblem };

/** Finds the route of a request. */
export function routeOf(method: string, target: string, headers: HeaderList, urls: UpstreamUrls): Route {
  const [path = '/'] = target.split('?', 1);
  const query = queryOf(target);
  if (isOwnPath(path)) return { kind: 'own', path, query: new URLSearchParams(query) };
  const malformed = problemOf(target, path);
  if (malformed !== undefined)
    return { kind: 'refused', codec: openaiChat, problem: { status: 400, message: malformed } };
  const destination = destinationOf({ method, path, target, headers }, urls);
  if (destination.kind === 'uncertain') {
    const problem: GatewayProblem = { status: 404, message: destination.reason };
    return { kind: 'refused', codec: codecs[destination.speaks], problem };
  }
  const { provider } = destination;
  const url = joinUrl(urls[provider], target);
  const call = method === 'POST' ? modelPaths.find((known) => known.path.test(path)) : undefined;
  if (call) return { kind: call.kind, codec: call.codec, url };
  const named = namedModelRoute(method, path, query);
  if (named) return { ...named, url };
  return { kind: 'pass', codec: path.startsWith('/v1beta/openai/') ? openaiChat : codecs[provider], url };
}

/** True for paths that the gateway answers itself. */
export function isOwnPath(path: string): boolean {
  return ['/healthz', '/readyz', '/metrics'].includes(path) || path.startsWith('/_leporello/');
}

const codecs: Readonly<Record<Provider, Codec>> = {
  openai: openaiChat,
  anthropic: anthropicMessages,
  gemini,
};

const modelPaths = [
  { path: /^(?:\/v1)?\/chat\/completions$/, kind: 'model', codec: openaiChat },
  { path: /^(?:\/v1)?\/responses$/, kind: 'model', codec: openaiResponses },
  { path: /^(?:\/v1)?\/responses\/input_tokens$/, kind: 'count', codec: openaiResponses },
  { path: /^(?:\/v1)?\/messages$/, kind: 'model', codec: anthropicMessages },
  { path: /^(?:\/v1)?\/messages\/count_tokens$/, kind: 'count', codec: anthropicMessages },
] as const;

/**
 * Finds the route of a Gemini or Vertex AI request, whose path names model and action: `/v1beta/models/M:streamGenerateContent?alt=sse`. A
 * stream that is not SSE is one JSON array that arrives in pieces; it is passed through.
 */
function namedModelRoute(method: string, path: string, query: string) {
  const [, model, action] = namedModel.exec(path) ?? [];
  if (method !== 'POST' || model === undefined) return undefined;
  const streaming = action === 'streamGenerateContent';
  const codec = geminiFor({ model: decoded(model), streaming });
  if (action === 'countTokens') return { kind: 'count', codec } as const;
  const isRead =
    action === 'generateContent' || (streaming && new URLSearchParams(query).get('alt') === 'sse');
  return { kind: isRead ? 'model' : 'pass', codec } as const;
}

const namedModel =
  /^\/v1(?:(?:alpha|beta)\w*)?\/(?:(?:projects\/[^/]+\/locations\/[^/]+\/)?publishers\/google\/)?(?:models|tunedModels)\/([^/:]+):(\w+)$/;

/** Decodes a name. A malformed name stays as it is, for the provider to reject. */
function decoded(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

/** Returns the URL for a request of the gateway's own, not streamed, derived from the client's `url`. `model` replaces a model in the path. */
export function promptUrl(url: string, model: string | undefined): string {
  const [path = '', query = ''] = url.split('?', 2);
  const named = /^(.*\/(?:models|tunedModels)\/)([^/:]+):\w+$/.exec(path);
  if (!named) return url;
  const asked = new URLSearchParams(query);
  asked.delete('alt');
  const rest = asked.size === 0 ? '' : `?${asked.toString()}`;
  return `${named[1]!}${model === undefined ? named[2]! : encodeURIComponent(model.toWellFormed())}:generateContent${rest}`;
}

/**
 * Returns the problem of a target that could reach something outside of the upstream's base URL, or another host. Undefined for a valid
 * target.
 */
function problemOf(target: string, path: string): string | undefined {
  const shown = JSON.stringify(path.slice(0, 200));
  if (!target.startsWith('/'))
    return `The request target ${shown} is not a path: the gateway is not a forward proxy. Set it as the client's base URL.`;
  if (/[^!-\u{10FFFF}]|[\u007F#]/u.test(target))
    return `The request target ${shown} contains a space, a control character or a #: percent-encode it.`;
  if (climbs(path)) return `The path ${shown} contains a . or .. segment: send the resolved path.`;
  return undefined;
}

/** True when a path has a dot segment, no matter how often a server decodes it and which slashes it accepts. */
function climbs(path: string): boolean {
  let text = path;
  for (let round = 0; round < maxDecodings; round++) {
    if (dotSegment.test(text)) return true;
    const next = percentDecoded(text);
    if (next === text) return false;
    text = next;
  }
  return true;
}

/** Encodings of a path that are undone at most. A path with more counts as malicious. */
const maxDecodings = 8;

/** Matches a dot segment, with the spaces and semicolon parameters that some servers ignore. */
const dotSegment = /(?:^|[/\\])[\0-\x20]*\.{1,2}[\0-\x20]*(?:;[^/\\]*)?(?=[/\\?#]|$)/;

/** Joins a base URL and a target. The version occurs once: one at the end of the base (`/v1`, `/api/paas/v4`) replaces the client's. */
function joinUrl(base: string, target: string): string {
  const trimmed = base.replace(/\/+$/, '');
  const ascii = target.replaceAll(/[\\\u0080-\u{10FFFF}]/gu, encoded);
  if (/^\/(?:upload|download)\//.test(ascii)) return trimmed + ascii;
  const [, version = '/v1', rest = ''] = /^(\/v1(?:(?:alpha|beta)\w*)?(?=[/?]|$))?(.*)$/s.exec(ascii) ?? [];
  return /\/v\d+\w*$/.test(trimmed) ? trimmed + rest : trimmed + version + rest;
}

/** Percent-encodes a character. Node returns a byte above 0x7F as the character with that code, and fetch would change it, and a backslash. */
function encoded(character: string): string {
  const code = character.codePointAt(0)!;
  return code < 0x100 ? `%${code.toString(16).toUpperCase()}` : encodeURIComponent(character.toWellFormed());
}

/** Returns the session that a client names in its headers. It only groups receipts. */
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

/** Returns the codec of a name. `route` is the model and mode from the URL, in formats that put them there. */
export function codecOf(name: string, route: Codec['route']): Codec {
  if (route) return geminiFor(route);
  return [anthropicMessages, openaiChat, openaiResponses].find((codec) => codec.name === name) ?? gemini;
}
