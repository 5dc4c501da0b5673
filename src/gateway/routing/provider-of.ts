/**
 * Decides which provider a request is for: by its path, by what its headers name, and by whose key it carries. A request whose
 * provider is not certain is refused, because sending it would hand one provider's credential to another. Pure.
 */
import { type Credential, credentialsOf, percentDecoded } from './credentials.ts';
import { headerOf } from '../http/headers.ts';
import type { HeaderList } from '../http/http.ts';

/** Base URLs of the upstreams, with or without their version segment (`/v1`). */
export type UpstreamUrls = { readonly openai: string; readonly anthropic: string; readonly gemini: string };

export type Provider = keyof UpstreamUrls;

export const defaultUpstreams: UpstreamUrls = {
  openai: 'https://api.openai.com/v1',
  anthropic: 'https://api.anthropic.com',
  gemini: 'https://generativelanguage.googleapis.com',
};

export type Destination =
  | { readonly kind: 'certain'; readonly provider: Provider }
  /** `speaks` is the provider in whose shape the client most likely reads an error. */
  | { readonly kind: 'uncertain'; readonly reason: string; readonly speaks: Provider };

export type Asked = {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  readonly target: string;
  readonly headers: HeaderList;
};

export function destinationOf(asked: Asked, urls: UpstreamUrls): Destination {
  const path = percentDecoded(asked.path).replaceAll(/\/{2,}/g, '/');
  const place = places.find(
    (known) => known.path.test(path) && (known.method ?? asked.method) === asked.method,
  );
  if (place === undefined)
    return refusal(
      asked,
      'is for none of the providers that this gateway knows: its paths begin with /v1 or /v1beta, so check the base URL of the client',
      'openai',
    );
  if (place.unserved !== undefined) return refusal(asked, place.unserved, 'openai');
  const chosen = place.of.length === 1 ? place.of[0]! : chosenOf(place, asked, urls);
  if (typeof chosen !== 'string') return refusal(asked, chosen.reason, likely(asked));
  if (place.isVertex === true && hostOf(urls.gemini) === hostOf(defaultUpstreams.gemini))
    return refusal(
      asked,
      'is a path of Vertex AI, but geminiUrl is the Gemini API: set it to the Vertex AI endpoint, such as https://us-central1-aiplatform.googleapis.com',
      'gemini',
    );
  const stray = strayCredential(credentialsOf(asked.headers, asked.target), urls[chosen]);
  if (stray !== undefined)
    return refusal(
      asked,
      `would go to ${hostOf(urls[chosen])}, but ${stray.from} holds a credential of ${stray.owner}: set ${chosen}Url to the host that the credential is for, or send the headers of that provider`,
      chosen,
    );
  return { kind: 'certain', provider: chosen };
}

type Place = {
  readonly path: RegExp;
  /** Whose path it is; of several the headers must name one. */
  readonly of: readonly Provider[];
  readonly method?: string;
  /** Not in the list of any provider's paths, but under the version that all of them use. */
  readonly isUnlisted?: true;
  readonly isVertex?: true;
  /** A path of a provider that is not served, and what to do instead. */
  readonly unserved?: string;
};

const all: readonly Provider[] = ['openai', 'anthropic', 'gemini'];

function under(names: string): RegExp {
  return new RegExp(`^/v1/(?:${names})(?:[/:]|$)`);
}

/** The paths of the providers' own SDKs (openai 7.55, @anthropic-ai/sdk 1.11, @google/genai 3.1). The first that fits counts. */
const places: readonly Place[] = [
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
  { path: under('models|files'), of: all },
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
  { path: /^\/v1(?:\/|$)/, of: all, isUnlisted: true },
  {
    path: /^\/openai\//,
    of: [],
    unserved:
      "is a path of Azure OpenAI, which is served under /v1 alone: set openaiUrl to https://RESOURCE.openai.azure.com/openai/v1 and the client's base URL to this gateway's /v1",
  },
  {
    path: /^\/model\/[^/]+\/(?:invoke|converse|count-tokens)/,
    of: [],
    unserved:
      'is a path of Amazon Bedrock, which this gateway does not serve: its signed requests are for its own host alone',
  },
  {
    path: /^\/api\/v1\//,
    of: [],
    unserved:
      "is a path of OpenRouter, which is served under /v1: set openaiUrl to https://openrouter.ai/api/v1 and the client's base URL to this gateway's /v1",
  },
  {
    path: /^\/api\/(?:blobs|chat|copy|create|delete|embed|embeddings|generate|ps|pull|push|show|tags|version)(?:\/|$)/,
    of: [],
    unserved:
      "is a path of Ollama, which is served under /v1: set openaiUrl to http://127.0.0.1:11434/v1 and the client's base URL to this gateway's /v1",
  },
];

/** One of several providers that have the path. */
function chosenOf(place: Place, asked: Asked, urls: UpstreamUrls): Provider | { readonly reason: string } {
  const named = namedBy(asked);
  const [only] = named;
  if (named.size > 1)
    return { reason: `names ${spelled([...named])} by its headers: send the headers of one of them` };
  if (only !== undefined)
    return place.of.includes(only)
      ? only
      : {
          reason: `is a path of ${spelled(place.of)}, but its headers name ${names[only]}: send the headers of the provider that is meant`,
        };
  const agent = headerOf(asked.headers, 'user-agent') ?? '';
  const client = agents.find((known) => known.agent.test(agent))?.provider;
  if (client !== undefined && place.of.includes(client)) return client;
  if (place.isUnlisted !== true)
    return headerOf(asked.headers, 'x-api-key') === undefined ? 'openai' : 'anthropic';
  const holdsKey = credentialsOf(asked.headers, asked.target).some(
    ({ value }) => ownerOf(value) === 'OpenAI',
  );
  return (
    (holdsKey ? 'openai' : onlyConfigured(urls)) ?? {
      reason:
        'does not say which provider it is for: send a header that does, such as openai-organization, anthropic-version or x-goog-api-key, or configure one upstream alone',
    }
  );
}

/** The providers that headers name outright. */
function namedBy({ headers, target }: Asked): ReadonlySet<Provider> {
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

/** Where a request goes if all upstreams that were set are one host: then there is only one the user can mean. */
function onlyConfigured(urls: UpstreamUrls): Provider | undefined {
  const configured = all.filter((provider) => urls[provider] !== defaultUpstreams[provider]);
  return new Set(configured.map((provider) => hostOf(urls[provider]))).size === 1 ? configured[0] : undefined;
}

const names: Readonly<Record<Provider, string>> = {
  openai: 'OpenAI',
  anthropic: 'Anthropic',
  gemini: 'Gemini',
};

function spelled(providers: readonly Provider[]): string {
  return providers.map((provider) => names[provider]).join(' and ');
}

/** Keys whose shape says who gave them out. The first that fits counts. */
const keyShapes: readonly { readonly shape: RegExp; readonly owner: string }[] = [
  { shape: /^sk-ant-/, owner: 'Anthropic' },
  { shape: /^sk-or-/, owner: 'OpenRouter' },
  { shape: /^sk-/, owner: 'OpenAI' },
  { shape: /^(?:ya29\.|AIza|AQ\.)/, owner: 'Google' },
  { shape: /^(?:AWS4-HMAC-|ABSK|bedrock-api-key-)/, owner: 'Amazon' },
  { shape: /^gsk_/, owner: 'Groq' },
  { shape: /^xai-/, owner: 'xAI' },
  { shape: /^hf_/, owner: 'Hugging Face' },
  { shape: /^(?:gh[opsu]_|github_pat_)/, owner: 'GitHub' },
  { shape: /^pplx-/, owner: 'Perplexity' },
  { shape: /^nvapi-/, owner: 'NVIDIA' },
];

/** Hosts that take keys of their owner alone. Any other host may take any key. */
const hosts: readonly { readonly host: RegExp; readonly owner: string }[] = [
  { host: /(?:^|\.)api\.openai\.com$/, owner: 'OpenAI' },
  { host: /(?:^|\.)anthropic\.com$/, owner: 'Anthropic' },
  { host: /(?:^|\.)googleapis\.com$/, owner: 'Google' },
];

function ownerOf(key: string): string | undefined {
  return keyShapes.find(({ shape }) => shape.test(key))?.owner;
}

/** A credential that the host of the URL did not give out, if it can be told. */
function strayCredential(
  credentials: readonly Credential[],
  url: string,
): { readonly from: string; readonly owner: string } | undefined {
  const host = hosts.find((known) => known.host.test(hostOf(url)))?.owner;
  if (host === undefined) return undefined;
  return credentials
    .map(({ from, value }) => ({ from, owner: ownerOfHeader[from] ?? ownerOf(value) ?? host }))
    .find(({ owner }) => owner !== host);
}

/** Headers that one provider alone takes its key in. */
const ownerOfHeader: Readonly<Record<string, string>> = { 'x-goog-api-key': 'Google', 'api-key': 'Azure' };

/** The provider whose errors the client can read, as far as can be told. */
function likely(asked: Asked): Provider {
  const [first] = namedBy(asked);
  return first ?? (headerOf(asked.headers, 'x-api-key') === undefined ? 'openai' : 'anthropic');
}

function refusal({ path }: Asked, reason: string, speaks: Provider): Destination {
  return { kind: 'uncertain', reason: `The request was not sent: ${path.slice(0, 200)} ${reason}.`, speaks };
}

/** Without the port. */
function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).hostname : url;
}
