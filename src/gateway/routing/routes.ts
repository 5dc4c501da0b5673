/**
 * Maps a request to its wire format and to the URL it is sent to: by its path, its headers and its key. A request whose
 * provider is not certain is refused, because sending it could reveal one provider's credential to another.
 */
import { openFixed } from '../../caches.ts';
import { anthropicMessages } from '../../codecs/anthropic-messages/index.ts';
import type { Codec, GatewayProblem } from '../../codecs/codec.ts';
import { gemini, geminiFor } from '../../codecs/gemini/index.ts';
import { openaiChat } from '../../codecs/openai-chat/index.ts';
import { openaiResponses } from '../../codecs/openai-responses/index.ts';
import { namedModelRoute } from './named-model.ts';
import { credentialsOf, hostOf, ownerOf, percentDecoded, queryOf, strayCredential } from './tenant.ts';
import { type HeaderList, headerOf } from '../http/http.ts';

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
export function routeOf(method: string, line: string, headers: HeaderList, urls: UpstreamUrls): Route {
  const { target, path, query, isOwn, malformed, rule, call, sent } = requestLineOf(method, line);
  if (isOwn) return { kind: 'own', path, query: new URLSearchParams(query) };
  if (malformed !== undefined)
    return { kind: 'refused', codec: openaiChat, problem: { status: 400, message: malformed } };
  const destination = destinationOf({ path, target, headers }, rule, urls);
  if (destination.kind === 'uncertain') {
    const problem: GatewayProblem = { status: 404, message: destination.reason };
    return { kind: 'refused', codec: codecs[destination.speaks], problem };
  }
  const { provider } = destination;
  const url = joinUrl(baseFor(provider, headers, urls), sent);
  if (call) return { ...call, url };
  return { kind: 'pass', codec: path.startsWith('/v1beta/openai/') ? openaiChat : codecs[provider], url };
}

const requestLines = openFixed<string, ReturnType<typeof readRequestLine>>('request lines');

/** Reads method and target. The results for short targets are remembered, because clients send the same few over and over; keys are not. */
function requestLineOf(method: string, target: string) {
  if (target.length > 200 || /[?&]key=/.test(target)) return readRequestLine(method, target);
  const name = `${method} ${target}`;
  const known = requestLines.get(name);
  if (known) return known;
  const line = readRequestLine(method, target);
  requestLines.set(name, line);
  return line;
}

/** Returns the facts that follow from method and target, whatever the headers are. `sent` is the target as it is sent to the provider. */
function readRequestLine(method: string, line: string) {
  const target = line.replace(versionTwice, '');
  const [path = '/'] = target.split('?', 1);
  const query = queryOf(target);
  const plain = percentDecoded(path).replaceAll(/\/{2,}/g, '/');
  return {
    target,
    path,
    query,
    isOwn: isOwnPath(path),
    malformed: problemOf(target, path),
    rule: pathRules.find((known) => known.path.test(plain) && (known.method ?? method) === method),
    call: callOf(method, path, query),
    sent: target.replaceAll(/[\\\u0080-\u{10FFFF}]/gu, encoded),
  };
}

/** The first version of a path that has two. A base URL ends in `/v1`, and the client adds a version, as Anthropic's and Google's SDKs do. */
const versionTwice = /^(?:\/v1)+(?=\/v1(?:(?:alpha|beta)\w*)?(?:[/?]|$))/;

/** True for paths that the gateway answers itself. */
export function isOwnPath(path: string): boolean {
  return (
    ['/healthz', '/readyz', '/metrics'].includes(path) ||
    path.startsWith('/_leporello/') ||
    isCompressionPath(path)
  );
}

/** True for the paths of compress.ts. No provider has them. */
export function isCompressionPath(path: string): boolean {
  return path === '/v1/compress' || path === '/health' || /^\/v1\/retrieve(?:\/|$)/.test(path);
}

const codecs: Readonly<Record<Provider, Codec>> = {
  openai: openaiChat,
  anthropic: anthropicMessages,
  gemini,
};

/** Returns the kind and the wire format of a request that calls a model or counts tokens, by its path; undefined for any other request. */
export function callOf(method: string, path: string, query: string) {
  if (method !== 'POST') return undefined;
  const call = modelPaths.find((known) => path === known.path || path === `/v1${known.path}`);
  return call ? { kind: call.kind, codec: call.codec } : namedModelRoute(path, query);
}

type ModelPath = {
  readonly path: string;
  readonly kind: 'model' | 'count';
  readonly codec: Codec;
  /** The header of its clients, if other APIs have such a path, too. */
  readonly header?: string;
};

/** The paths of requests that call a model or count tokens. The gateway serves them with the version `/v1` and without it. */
export const modelPaths: readonly ModelPath[] = [
  { path: '/chat/completions', kind: 'model', codec: openaiChat },
  { path: '/responses', kind: 'model', codec: openaiResponses },
  { path: '/responses/input_tokens', kind: 'count', codec: openaiResponses },
  { path: '/messages', kind: 'model', codec: anthropicMessages, header: 'anthropic-version' },
  { path: '/messages/count_tokens', kind: 'count', codec: anthropicMessages, header: 'anthropic-version' },
];

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

/** The backend of Codex for logins with ChatGPT. The OpenAI API does not accept such a login. */
const chatGptBackend = 'https://chatgpt.com/backend-api/codex';

/** Returns the base URL for a request. Codex names the account of a ChatGPT login in a header. A configured upstream gets such requests, too. */
function baseFor(provider: Provider, headers: HeaderList, urls: UpstreamUrls): string {
  const isLogin = provider === 'openai' && headerOf(headers, 'chatgpt-account-id') !== undefined;
  return isLogin && urls.openai === defaultUpstreams.openai ? chatGptBackend : urls[provider];
}

/** Joins a base URL and a target that `encoded` has made ASCII. A version at the end of the base replaces the client's; ChatGPT's backend has none. */
function joinUrl(base: string, ascii: string): string {
  const trimmed = base.replace(/(?<!\/)\/+$/, '');
  if (/^\/(?:upload|download)\//.test(ascii)) return trimmed + ascii;
  const [, version = '/v1', rest = ''] = /^(\/v1(?:(?:alpha|beta)\w*)?(?=[/?]|$))?(.*)$/s.exec(ascii) ?? [];
  return /\/(?:v\d+\w*|backend-api\/codex)$/.test(trimmed) ? trimmed + rest : trimmed + version + rest;
}

/** Percent-encodes a character. Node returns a byte above 0x7F as the character with that code, and fetch would change it, and a backslash. */
function encoded(character: string): string {
  const code = character.codePointAt(0)!;
  return code < 0x100 ? `%${code.toString(16).toUpperCase()}` : encodeURIComponent(character.toWellFormed());
}

/** Returns the codec of a name. `route` is the model and mode from the URL, in formats that put them there. */
export function codecOf(name: string, route: Codec['route']): Codec {
  if (route) return geminiFor(route);
  return [anthropicMessages, openaiChat, openaiResponses].find((codec) => codec.name === name) ?? gemini;
}

// The provider of a request

/** Base URLs of the upstreams, with or without their version segment (`/v1`). */
export type UpstreamUrls = { readonly openai: string; readonly anthropic: string; readonly gemini: string };

/** A provider. The option that sets its URL is its name with `Url`. */
export type Provider = keyof UpstreamUrls;

export const defaultUpstreams: UpstreamUrls = {
  openai: 'https://api.openai.com/v1',
  anthropic: 'https://api.anthropic.com',
  gemini: 'https://generativelanguage.googleapis.com',
};

/** The provider of a request, or the reason why it is uncertain. */
export type Destination =
  | { readonly kind: 'certain'; readonly provider: Provider }
  /** `speaks` is the provider whose error format the client most likely understands. */
  | { readonly kind: 'uncertain'; readonly reason: string; readonly speaks: Provider };

/** The facts of a request that decide its provider. The path has no query. */
export type RequestHead = {
  readonly path: string;
  readonly target: string;
  readonly headers: HeaderList;
};

/** Decides which provider a request is for. `rule` is that of its path. */
function destinationOf(head: RequestHead, rule: PathRule | undefined, urls: UpstreamUrls): Destination {
  if (rule === undefined)
    return refusal(
      head,
      head.path === '/'
        ? 'is the root of this gateway: for people, its page is at /_leporello/; a client asks for paths that begin with /v1 or /v1beta, so check its base URL'
        : 'belongs to no provider that this gateway knows: provider paths begin with /v1 or /v1beta, so check the base URL of the client',
      'openai',
    );
  if (rule.unserved !== undefined) return refusal(head, rule.unserved, 'openai');
  const chosen = rule.of.length === 1 ? rule.of[0]! : chosenOf(rule, head, urls);
  if (typeof chosen !== 'string') return refusal(head, chosen.reason, likely(head));
  if (rule.isVertex === true && hostOf(urls.gemini) === hostOf(defaultUpstreams.gemini))
    return refusal(
      head,
      'is a path of Vertex AI, but geminiUrl is the Gemini API: set it to the Vertex AI endpoint, such as https://us-central1-aiplatform.googleapis.com',
      'gemini',
    );
  const stray = strayCredential(credentialsOf(head.headers, head.target), urls[chosen]);
  if (stray !== undefined)
    return refusal(
      head,
      `would go to ${hostOf(urls[chosen])}, but ${stray.from} contains a credential of ${stray.owner}: set ${chosen}Url to the host that the credential is for, or send the headers of that provider`,
      chosen,
    );
  return { kind: 'certain', provider: chosen };
}

type PathRule = {
  readonly path: RegExp;
  /** The providers that have this path. If there are several, the headers must name one. */
  readonly of: readonly Provider[];
  readonly method?: string;
  /** True for a path that no provider lists, but under the version that all of them use. */
  readonly isUnlisted?: true;
  readonly isVertex?: true;
  readonly unserved?: string;
};

/** The rule for a path that the gateway does not serve. `reason`: what it is, and what to do instead. */
function unserved(path: RegExp, reason: string): PathRule {
  return { path, of: [], unserved: reason };
}

export const providers = Object.keys(defaultUpstreams) as readonly Provider[];

function under(names: string): RegExp {
  return new RegExp(`^/v1/(?:${names})(?:[/:]|$)`);
}

/** The paths of the providers' own SDKs (openai 7.55, @anthropic-ai/sdk 1.11, @google/genai 3.1). The first match counts. */
const pathRules: readonly PathRule[] = [
  {
    path: /^\/v1(?:beta1)?\/(?:projects\/[^/]+\/locations|publishers)\/|^\/v1beta1\//,
    of: ['gemini'],
    isVertex: true,
  },
  { path: /^\/v1(?:alpha|beta)\w*(?:\/|$)/, of: ['gemini'] },
  { path: /^\/(?:upload|download)\/v1\w*\//, of: ['gemini'] },
  { path: /^\/v1\/(?:models|tunedModels)\/[^/:]+:[a-z]+$/i, method: 'POST', of: ['gemini'] },
  {
    path: under(
      'auth_tokens|cachedContents|corpora|fileSearchStores|generatedFiles|interactions|operations|tunedModels',
    ),
    of: ['gemini'],
  },
  { path: under('models|files'), of: providers },
  { path: under('agents|skills|vaults'), of: ['openai', 'anthropic'] },
  { path: /^(?:\/v1)?\/messages(?:\/|$)/, of: ['anthropic'] },
  {
    path: under(
      'complete|deployment_runs|deployments|dreams|environments|memory_stores|organizations|sessions|tunnels|user_profiles',
    ),
    of: ['anthropic'],
  },
  { path: /^(?:\/v1)?\/(?:chat|responses)(?:\/|$)/, of: ['openai'] },
  {
    path: under(
      'assistants|audio|batches|chatkit|completions|containers|content_provenance_checks|conversations|decisions|edits|embeddings|engines|evals|fine_tuning|fine-tunes|images|live|moderations|organization|realtime|safety|threads|uploads|vector_stores|videos|webhook_endpoints|webhook_event_types',
    ),
    of: ['openai'],
  },
  { path: /^\/v1(?:\/|$)/, of: providers, isUnlisted: true },
  unserved(
    /^\/openai\//,
    "is a path of Azure OpenAI, which this gateway serves only under /v1: set openaiUrl to https://RESOURCE.openai.azure.com/openai/v1 and the client's base URL to this gateway's /v1",
  ),
  unserved(
    /^\/model\/[^/]+\/(?:invoke|converse|count-tokens)/,
    'is a path of Amazon Bedrock, which this gateway cannot serve: its signed requests are valid only for its own host',
  ),
  unserved(
    /^\/api\/v1\//,
    "is a path of OpenRouter, which this gateway serves under /v1: set openaiUrl to https://openrouter.ai/api/v1 and the client's base URL to this gateway's /v1",
  ),
  unserved(
    /^\/api\/(?:blobs|chat|copy|create|delete|embed|embeddings|generate|ps|pull|push|show|tags|version)(?:\/|$)/,
    "is a path of Ollama, which this gateway serves under /v1: set openaiUrl to http://127.0.0.1:11434/v1 and the client's base URL to this gateway's /v1",
  ),
];

/** Chooses one of several providers that have the path. */
function chosenOf(
  rule: PathRule,
  head: RequestHead,
  urls: UpstreamUrls,
): Provider | { readonly reason: string } {
  const named = namedBy(head);
  const [only] = named;
  if (named.size > 1)
    return { reason: `names ${spelled([...named])} in its headers: send the headers of only one of them` };
  if (only !== undefined)
    return rule.of.includes(only)
      ? only
      : {
          reason: `is a path of ${spelled(rule.of)}, but its headers name ${names[only]}: send the headers of the provider you mean`,
        };
  const agent = headerOf(head.headers, 'user-agent') ?? '';
  const client = agents.find((known) => known.agent.test(agent))?.provider;
  if (client !== undefined && rule.of.includes(client)) return client;
  if (rule.isUnlisted !== true)
    return headerOf(head.headers, 'x-api-key') === undefined ? 'openai' : 'anthropic';
  const holdsKey = credentialsOf(head.headers, head.target).some(({ value }) => ownerOf(value) === 'OpenAI');
  return (
    (holdsKey ? 'openai' : onlyConfigured(urls)) ?? {
      reason:
        'does not say which provider it is for: send a header that does, such as openai-organization, anthropic-version or x-goog-api-key, or configure only one upstream',
    }
  );
}

/** Returns the providers that the headers name explicitly. */
function namedBy({ headers, target }: RequestHead): ReadonlySet<Provider> {
  const found = new Set<Provider>();
  for (const [name] of headers) {
    if (name.startsWith('anthropic-')) found.add('anthropic');
    else if (name.startsWith('x-goog-')) found.add('gemini');
    else if (name.startsWith('openai-') || name === 'chatgpt-account-id') found.add('openai');
  }
  if (credentialsOf([], target).length > 0) found.add('gemini');
  return found;
}

const agents: readonly { readonly agent: RegExp; readonly provider: Provider }[] = [
  { agent: /^(?:Async)?OpenAI\/|^codex/, provider: 'openai' },
  { agent: /^(?:Async)?Anthropic\/|^claude-cli\//, provider: 'anthropic' },
  { agent: /^google-genai-sdk\//, provider: 'gemini' },
];

/** Returns the only configured provider, if all configured upstreams are one host: then the user can mean no other. */
function onlyConfigured(urls: UpstreamUrls): Provider | undefined {
  const configured = providers.filter((provider) => urls[provider] !== defaultUpstreams[provider]);
  return new Set(configured.map((provider) => hostOf(urls[provider]))).size === 1 ? configured[0] : undefined;
}

const names: Readonly<Record<Provider, string>> = {
  openai: 'OpenAI',
  anthropic: 'Anthropic',
  gemini: 'Gemini',
};

function spelled(named: readonly Provider[]): string {
  return named.map((provider) => names[provider]).join(' and ');
}

/** Returns the provider whose error format the client most likely understands. */
function likely(head: RequestHead): Provider {
  const [first] = namedBy(head);
  return first ?? (headerOf(head.headers, 'x-api-key') === undefined ? 'openai' : 'anthropic');
}

function refusal({ path }: RequestHead, reason: string, speaks: Provider): Destination {
  return { kind: 'uncertain', reason: `The request was not sent: ${path.slice(0, 200)} ${reason}.`, speaks };
}
