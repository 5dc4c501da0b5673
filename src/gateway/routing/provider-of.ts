/**
 * Decides which provider a request is for: by its path, its headers and its key. A request whose provider is not certain is refused, because
 * sending it could reveal one provider's credential to another.
 */
import { type Credential, credentialsOf, percentDecoded } from './tenant.ts';
import { type HeaderList, headerOf } from '../http/http.ts';

/** Base URLs of the upstreams, with or without their version segment (`/v1`). */
export type UpstreamUrls = { readonly openai: string; readonly anthropic: string; readonly gemini: string };

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

/** The facts of a request that decide its provider. */
export type RequestHead = {
  readonly method: string;
  /** The path without the query. */
  readonly path: string;
  readonly target: string;
  readonly headers: HeaderList;
};

/** Decides which provider a request is for. */
export function destinationOf(head: RequestHead, urls: UpstreamUrls): Destination {
  const path = percentDecoded(head.path).replaceAll(/\/{2,}/g, '/');
  const rule = pathRules.find(
    (known) => known.path.test(path) && (known.method ?? head.method) === head.method,
  );
  if (rule === undefined)
    return refusal(
      head,
      'belongs to no provider that this gateway knows: provider paths begin with /v1 or /v1beta, so check the base URL of the client',
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
  /** For a path that the gateway does not serve: what it is, and what to do instead. */
  readonly unserved?: string;
};

const all: readonly Provider[] = ['openai', 'anthropic', 'gemini'];

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
      "is a path of Azure OpenAI, which this gateway serves only under /v1: set openaiUrl to https://RESOURCE.openai.azure.com/openai/v1 and the client's base URL to this gateway's /v1",
  },
  {
    path: /^\/model\/[^/]+\/(?:invoke|converse|count-tokens)/,
    of: [],
    unserved:
      'is a path of Amazon Bedrock, which this gateway cannot serve: its signed requests are valid only for its own host',
  },
  {
    path: /^\/api\/v1\//,
    of: [],
    unserved:
      "is a path of OpenRouter, which this gateway serves under /v1: set openaiUrl to https://openrouter.ai/api/v1 and the client's base URL to this gateway's /v1",
  },
  {
    path: /^\/api\/(?:blobs|chat|copy|create|delete|embed|embeddings|generate|ps|pull|push|show|tags|version)(?:\/|$)/,
    of: [],
    unserved:
      "is a path of Ollama, which this gateway serves under /v1: set openaiUrl to http://127.0.0.1:11434/v1 and the client's base URL to this gateway's /v1",
  },
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

/** Key formats by issuer. The first match counts. */
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

/** Hosts that accept only keys of their owner. Any other host may accept any key. */
const hosts: readonly { readonly host: RegExp; readonly owner: string }[] = [
  { host: /(?:^|\.)api\.openai\.com$/, owner: 'OpenAI' },
  { host: /(?:^|\.)anthropic\.com$/, owner: 'Anthropic' },
  { host: /(?:^|\.)googleapis\.com$/, owner: 'Google' },
];

function ownerOf(key: string): string | undefined {
  return keyShapes.find(({ shape }) => shape.test(key))?.owner;
}

/** Returns a credential that another issuer than the host of the URL gave out, as far as that can be recognized. */
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

/** Headers that only one provider uses for its key. */
const ownerOfHeader: Readonly<Record<string, string>> = { 'x-goog-api-key': 'Google', 'api-key': 'Azure' };

/** Returns the provider whose error format the client most likely understands. */
function likely(head: RequestHead): Provider {
  const [first] = namedBy(head);
  return first ?? (headerOf(head.headers, 'x-api-key') === undefined ? 'openai' : 'anthropic');
}

function refusal({ path }: RequestHead, reason: string, speaks: Provider): Destination {
  return { kind: 'uncertain', reason: `The request was not sent: ${path.slice(0, 200)} ${reason}.`, speaks };
}

/** Returns the host of a URL, without the port. */
function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).hostname : url;
}
