import { describe, expect, it } from 'vitest';
import type { HeaderList } from '../http/http.ts';
import { type Provider, type UpstreamUrls, defaultUpstreams, providers, routeOf } from './routes.ts';

/** Returns the host that a request is sent to, or the status with which it is answered. */
function sentTo(line: string, headers: HeaderList, urls: UpstreamUrls = defaultUpstreams): string {
  const [method = '', target = ''] = line.split(' ');
  const route = routeOf(method, target, headers, urls);
  if (route.kind === 'own') return 'own';
  return route.kind === 'refused' ? String(route.problem.status) : new URL(route.url).hostname;
}

function reasonOf(line: string, headers: HeaderList, urls: UpstreamUrls = defaultUpstreams): string {
  const [method = '', target = ''] = line.split(' ');
  const route = routeOf(method, target, headers, urls);
  return route.kind === 'refused' ? `${route.codec.name}: ${route.problem.message}` : route.kind;
}

const openai = 'api.openai.com';
const chatGpt = 'chatgpt.com';
const anthropic = 'api.anthropic.com';
const gemini = 'generativelanguage.googleapis.com';
const vertex = '/v1/projects/p/locations/us-central1/publishers/google/models/gemini-3-pro';
const claudeOnVertex = '/v1/projects/p/locations/us-east5/publishers/anthropic/models/claude-sonnet-5-5';

/** User agents of the official clients, by provider. */
const heads = {
  none: [],
  bearer: [['authorization', 'Bearer opaque']],
  openaiKey: [['authorization', 'Bearer sk-proj-1']],
  openaiSdk: [
    ['user-agent', 'OpenAI/JS 7.55.0'],
    ['authorization', 'Bearer opaque'],
  ],
  openaiOrganization: [
    ['authorization', 'Bearer opaque'],
    ['openai-organization', 'org-1'],
  ],
  codexLogin: [
    ['authorization', 'Bearer eyJ.eyJ.x'],
    ['chatgpt-account-id', 'a'],
  ],
  anthropicSdk: [
    ['anthropic-version', '2026-10-21'],
    ['authorization', 'Bearer sk-ant-api03-1'],
  ],
  anthropicKey: [
    ['anthropic-version', '2023-06-01'],
    ['x-api-key', 'sk-ant-api03-1'],
  ],
  anthropicBare: [['x-api-key', 'sk-ant-api03-1']],
  claudeBearer: [['authorization', 'Bearer sk-ant-oat01-1']],
  googleKey: [
    ['x-goog-api-key', 'AIza1'],
    ['x-goog-api-client', 'google-genai-sdk/3.1.0'],
  ],
  googleToken: [['authorization', 'Bearer ya29.a0']],
  azureKey: [['api-key', '0123456789abcdef']],
  openrouterKey: [['authorization', 'Bearer sk-or-v1-1']],
  groqKey: [['authorization', 'Bearer gsk_1']],
  aws: [['authorization', 'AWS4-HMAC-SHA256 Credential=AKIA/20261121/us-east-1/bedrock/aws4_request']],
  twoProviders: [
    ['anthropic-version', '2023-06-01'],
    ['x-goog-api-key', 'AIza1'],
  ],
} as const satisfies Readonly<Record<string, HeaderList>>;

describe('a request with the default upstreams goes to its provider or nowhere', () => {
  it.each<readonly [string, keyof typeof heads, string]>([
    // OpenAI's own paths
    ['POST /v1/chat/completions', 'openaiKey', openai],
    ['POST /v1/chat/completions', 'bearer', openai],
    ['POST /v1/chat/completions', 'codexLogin', chatGpt],
    ['POST /chat/completions', 'openaiKey', openai],
    ['GET /v1/chat/completions/chatcmpl-1', 'openaiKey', openai],
    ['POST /v1/responses', 'openaiKey', openai],
    ['POST /v1/responses/compact', 'codexLogin', chatGpt],
    ['GET /v1/responses/resp_1', 'bearer', openai],
    ['POST /v1/conversations', 'openaiKey', openai],
    ['GET /v1/realtime?model=gpt-realtime', 'openaiKey', openai],
    ['POST /v1/embeddings', 'bearer', openai],
    ['POST /v1//embeddings', 'bearer', openai],
    ['POST /v1/assistants', 'openaiKey', openai],
    ['POST /v1/threads/thread_1/runs', 'openaiKey', openai],
    ['POST /v1/vector_stores', 'openaiKey', openai],
    ['POST /v1/batches', 'openaiKey', openai],
    ['POST /v1/images/generations', 'openaiKey', openai],
    ['POST /v1/audio/speech', 'openaiKey', openai],
    ['POST /v1/fine_tuning/jobs', 'openaiKey', openai],
    ['POST /v1/moderations', 'openaiKey', openai],
    ['GET /v1/organization/projects', 'openaiKey', openai],
    // with another provider's credential
    ['POST /v1/chat/completions', 'claudeBearer', '404'],
    ['POST /v1/chat/completions', 'anthropicKey', '404'],
    ['POST /v1/chat/completions', 'googleToken', '404'],
    ['POST /v1/chat/completions', 'googleKey', '404'],
    ['POST /v1/chat/completions', 'azureKey', '404'],
    ['POST /v1/chat/completions', 'openrouterKey', '404'],
    ['POST /v1/chat/completions', 'groqKey', '404'],
    ['POST /v1/chat/completions', 'aws', '404'],
    ['POST /v1/responses', 'googleToken', '404'],
    ['POST /v1/embeddings?key=AIza1', 'none', '404'],
    // Anthropic's own paths
    ['POST /v1/messages?beta=true', 'anthropicSdk', anthropic],
    ['POST /v1/messages', 'anthropicKey', anthropic],
    ['POST /v1/messages', 'anthropicBare', anthropic],
    ['POST /v1/messages', 'claudeBearer', anthropic],
    ['POST /messages', 'anthropicKey', anthropic],
    ['POST /v1/messages/count_tokens', 'anthropicKey', anthropic],
    ['POST /v1/messages/batches', 'anthropicKey', anthropic],
    ['GET /v1/messages/batches/msgbatch_1/results', 'anthropicSdk', anthropic],
    ['POST /v1/complete', 'anthropicKey', anthropic],
    ['GET /v1/organizations/me', 'anthropicKey', anthropic],
    ['POST /v1/memory_stores', 'anthropicSdk', anthropic],
    ['POST /v1/messages', 'openaiKey', '404'],
    ['POST /v1/messages', 'googleToken', '404'],
    ['POST /v1/messages', 'twoProviders', '404'],
    ['POST /v1/messages', 'openrouterKey', '404'],
    // Gemini's own paths
    ['POST /v1beta/models/gemini-3-pro:generateContent', 'googleKey', gemini],
    ['POST /v1beta/models/gemini-3-pro:generateContent', 'googleToken', gemini],
    ['POST /v1beta/models/gemini-3-pro:generateContent?key=AIza1', 'none', gemini],
    ['POST /v1/models/gemini-3-pro:generateContent', 'googleKey', gemini],
    ['POST /v1/models/gemini-3-pro:generateContent', 'none', gemini],
    ['POST /v1alpha/models/gemini-3-pro:generateContent', 'googleKey', gemini],
    ['POST /v1beta/models/gemini-3-pro:embedContent', 'googleKey', gemini],
    ['POST /v1beta/models/a%zz:generateContent', 'googleKey', gemini],
    ['GET /v1beta/models', 'googleKey', gemini],
    ['POST /v1beta/cachedContents', 'googleKey', gemini],
    ['POST /v1/cachedContents', 'googleKey', gemini],
    ['POST /v1beta/tunedModels/t:generateContent', 'googleKey', gemini],
    ['POST /upload/v1beta/files', 'googleKey', gemini],
    ['POST /v1beta/openai/chat/completions', 'bearer', gemini],
    ['POST /v1beta/openai/chat/completions', 'openaiSdk', gemini],
    ['GET /v1beta/models', 'openaiKey', '404'],
    ['POST /v1beta/models/m:generateContent', 'claudeBearer', '404'],
    // paths of several providers
    ['GET /v1/models', 'bearer', openai],
    ['GET /v1/models', 'none', openai],
    ['GET /v1/models', 'openaiKey', openai],
    ['GET /v1/models', 'openaiSdk', openai],
    ['GET /v1/models?client_version=0.169.0', 'codexLogin', chatGpt],
    ['GET /v1/models/ft:gpt-4o-mini:org::7p4l', 'openaiKey', openai],
    ['DELETE /v1/models/ft:gpt-4o-mini:org:suffix:abc', 'openaiKey', openai],
    ['GET /v1/models', 'anthropicSdk', anthropic],
    ['GET /v1/models', 'anthropicKey', anthropic],
    ['GET /v1/models', 'anthropicBare', anthropic],
    ['GET /v1/models', 'googleKey', gemini],
    ['GET /v1/models?key=AIza1', 'none', gemini],
    ['GET /v1/models', 'googleToken', '404'],
    ['GET /v1/models', 'claudeBearer', '404'],
    ['GET /v1/models', 'azureKey', '404'],
    ['GET /v1/models', 'twoProviders', '404'],
    ['POST /v1/files', 'openaiSdk', openai],
    ['POST /v1/files', 'anthropicSdk', anthropic],
    ['GET /v1/files', 'googleKey', gemini],
    ['GET /v1/skills', 'anthropicSdk', anthropic],
    ['GET /v1/skills', 'openaiKey', openai],
    ['GET /v1/skills', 'googleKey', '404'],
    // paths under /v1 that no provider lists
    ['POST /v1/rerank', 'openaiKey', openai],
    ['POST /v1/rerank', 'openaiSdk', openai],
    ['POST /v1/rerank', 'openaiOrganization', openai],
    ['GET /v1/newest_thing', 'anthropicSdk', anthropic],
    ['POST /v1/rerank', 'bearer', '404'],
    ['POST /v1/rerank', 'none', '404'],
    ['POST /v1/rerank', 'googleToken', '404'],
    ['POST /v1/rerank', 'claudeBearer', '404'],
    // Vertex AI
    [`POST ${vertex}:generateContent`, 'googleToken', '404'],
    [`POST ${vertex}:streamGenerateContent?alt=sse`, 'googleToken', '404'],
    [`POST ${vertex}:countTokens`, 'googleToken', '404'],
    [`POST ${claudeOnVertex}:rawPredict`, 'googleToken', '404'],
    [`POST ${claudeOnVertex}:streamRawPredict`, 'googleToken', '404'],
    [`POST ${claudeOnVertex.replace('/v1/', '/v1beta1/')}:rawPredict`, 'googleToken', '404'],
    [`POST ${vertex.replace('projects', '%70rojects')}:generateContent`, 'openaiSdk', '404'],
    ['POST /v1beta1/publishers/google/models/gemini-3-pro:generateContent', 'googleKey', '404'],
    ['POST /v1/projects/p/locations/global/endpoints/openapi/chat/completions', 'googleToken', '404'],
    ['GET /v1/projects/p/operations', 'googleToken', '404'],
    // others
    ['POST /openai/deployments/d/chat/completions?api-version=2026-01-01', 'azureKey', '404'],
    ['POST /openai/v1/chat/completions', 'azureKey', '404'],
    ['POST /openai/v1/responses', 'bearer', '404'],
    ['POST /model/anthropic.claude-sonnet-5-5-v1:0/invoke', 'aws', '404'],
    ['POST /model/anthropic.claude-sonnet-5-5-v1%3A0/converse-stream', 'aws', '404'],
    ['POST /api/chat', 'none', '404'],
    ['GET /api/tags', 'none', '404'],
    ['POST /api/v1/chat/completions', 'openrouterKey', '404'],
    ['POST /backend-api/codex/responses', 'codexLogin', '404'],
    ['HEAD /', 'none', '404'],
    ['GET /v2/models', 'openaiKey', '404'],
    ['GET /models', 'openaiKey', '404'],
  ])('%s with %s: %s', (line, head, host) => {
    expect(sentTo(line, heads[head])).toBe(host);
  });
});

const every = (url: string) =>
  Object.fromEntries(providers.map((provider) => [provider, url])) as Record<Provider, string>;

describe('with upstreams of its own', () => {
  const own = { ...defaultUpstreams, openai: 'http://127.0.0.1:11434/v1' };
  const one: UpstreamUrls = {
    ...every('https://one.example'),
    openai: 'https://one.example/v1',
  };
  const three = {
    ...defaultUpstreams,
    openai: 'https://one.example',
    anthropic: 'https://two.example',
    gemini: 'https://three.example',
  };

  it.each<readonly [string, keyof typeof heads, UpstreamUrls, string]>([
    // a host that is not a provider's own accepts any key
    ['POST /v1/chat/completions', 'groqKey', own, '127.0.0.1'],
    ['POST /v1/chat/completions', 'googleToken', own, '127.0.0.1'],
    ['POST /v1/chat/completions', 'azureKey', own, '127.0.0.1'],
    ['POST /v1/messages', 'openaiKey', own, '404'],
    ['POST /v1/messages', 'openaiKey', three, 'two.example'],
    // Anthropic and Google serve OpenAI's format, too
    [
      'POST /v1/chat/completions',
      'claudeBearer',
      { ...own, openai: 'https://api.anthropic.com/v1' },
      anthropic,
    ],
    ['POST /v1/chat/completions', 'openaiKey', { ...own, openai: 'https://api.anthropic.com/v1' }, '404'],
    [
      'GET /v1/models',
      'googleToken',
      { ...own, openai: 'https://generativelanguage.googleapis.com/v1beta/openai' },
      gemini,
    ],
    [
      'POST /v1/chat/completions',
      'openaiKey',
      { ...own, openai: 'https://eu.api.openai.com/v1' },
      'eu.api.openai.com',
    ],
    ['POST /v1/chat/completions', 'googleToken', { ...own, openai: 'https://eu.api.openai.com/v1' }, '404'],
    // an unlisted path goes to the only configured host
    ['POST /v1/rerank', 'bearer', own, '127.0.0.1'],
    ['POST /v1/rerank', 'none', own, '127.0.0.1'],
    ['POST /v1/rerank', 'bearer', one, 'one.example'],
    ['POST /v1/rerank', 'bearer', three, '404'],
    ['POST /v1/rerank', 'openaiKey', three, 'one.example'],
    // Vertex AI
    [`POST ${vertex}:generateContent`, 'googleToken', own, '404'],
    [
      `POST ${vertex}:generateContent`,
      'googleToken',
      { ...own, gemini: 'https://us-central1-aiplatform.googleapis.com' },
      'us-central1-aiplatform.googleapis.com',
    ],
    [
      `POST ${claudeOnVertex}:rawPredict`,
      'googleToken',
      { ...own, gemini: 'https://us-east5-aiplatform.googleapis.com' },
      'us-east5-aiplatform.googleapis.com',
    ],
    [
      `POST ${claudeOnVertex}:rawPredict`,
      'claudeBearer',
      { ...own, gemini: 'https://us-east5-aiplatform.googleapis.com' },
      '404',
    ],
  ])('%s with %s', (line, head, urls, host) => {
    expect(sentTo(line, heads[head], urls)).toBe(host);
  });
});

describe("a refusal says what was sent and what would make the provider certain, in the client's format", () => {
  it.each<readonly [string, keyof typeof heads, string]>([
    [
      `POST ${vertex}:generateContent`,
      'googleToken',
      `gemini: The request was not sent: ${vertex}:generateContent is a path of Vertex AI, but geminiUrl is the Gemini API: set it to the Vertex AI endpoint, such as https://us-central1-aiplatform.googleapis.com.`,
    ],
    [
      'POST /v1/messages?beta=true',
      'openaiKey',
      'anthropic-messages: The request was not sent: /v1/messages would go to api.anthropic.com, but authorization contains a credential of OpenAI: set anthropicUrl to the host that the credential is for, or send the headers of that provider.',
    ],
    [
      'GET /v1/models',
      'twoProviders',
      'anthropic-messages: The request was not sent: /v1/models names Anthropic and Gemini in its headers: send the headers of only one of them.',
    ],
    [
      'GET /v1/skills',
      'googleKey',
      'gemini: The request was not sent: /v1/skills is a path of OpenAI and Anthropic, but its headers name Gemini: send the headers of the provider you mean.',
    ],
    [
      'POST /v1/rerank',
      'bearer',
      'openai-chat: The request was not sent: /v1/rerank does not say which provider it is for: send a header that does, such as openai-organization, anthropic-version or x-goog-api-key, or configure only one upstream.',
    ],
    [
      'POST /openai/deployments/d/chat/completions?api-version=1',
      'azureKey',
      "openai-chat: The request was not sent: /openai/deployments/d/chat/completions is a path of Azure OpenAI, which this gateway serves only under /v1: set openaiUrl to https://RESOURCE.openai.azure.com/openai/v1 and the client's base URL to this gateway's /v1.",
    ],
    [
      'GET /v2/models',
      'openaiKey',
      'openai-chat: The request was not sent: /v2/models belongs to no provider that this gateway knows: provider paths begin with /v1 or /v1beta, so check the base URL of the client.',
    ],
    [
      'GET /',
      'openaiKey',
      'openai-chat: The request was not sent: / is the root of this gateway: for people, its page is at /_leporello/; a client asks for paths that begin with /v1 or /v1beta, so check its base URL.',
    ],
  ])('%s with %s', (line, head, message) => {
    expect(reasonOf(line, heads[head])).toBe(message);
  });
});
