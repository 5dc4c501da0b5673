/** Configures each client for its vendor's own host and for the gateway, to measure what it then sends. Data only. */
import { type Client, dummyKey, type Setup } from '../client.ts';
import { claudeCode } from '../clis/claude-code.ts';
import { codex, codexSettings } from '../clis/codex.ts';
import { geminiCli, geminiSettings } from '../clis/gemini-cli.ts';
import { opencode } from '../clis/opencode.ts';
import { pi } from '../clis/pi.ts';
import { qwenCode, qwenSettings } from '../clis/qwen-code.ts';

export type Way = {
  readonly client: Client;
  /** The setting with which the client gets its base URL. */
  readonly name: string;
  /** Ways with the same topic are compared with the first of them. */
  readonly topic: string;
  readonly setup: (places: Places) => Setup;
};

export type Places = {
  /** The gateway's base URL without a path. */
  readonly url: string;
  readonly task: string;
  /** The command line of the MCP server that the client starts. */
  readonly mcp: readonly [string, ...string[]] | undefined;
};

export const ways: readonly Way[] = [
  ...[claudeCode, { ...claudeCode, install: '@anthropic-ai/claude-code@2.1.197' }].flatMap((client) =>
    ['claude-sonnet-4-6', 'claude-sonnet-5-5'].flatMap((model) => claudeWays(client, model)),
  ),
  ...claudeWays(claudeCode, 'claude-sonnet-4-6', 'login'),
  ...codexWays('gpt-6.1-sol'),
  ...codexWays('gpt-5.6'),
  ...geminiWays(),
  ...opencodeWays('anthropic', '@ai-sdk/anthropic', '/v1', 'claude-sonnet-4-6'),
  ...opencodeWays('openai', '@ai-sdk/openai', '/v1', 'gpt-5.2'),
  ...opencodeWays('google', '@ai-sdk/google', '/v1beta', 'gemini-2.5-pro'),
  ...piWays('anthropic', 'anthropic-messages', '', 'claude-sonnet-4-6'),
  ...piWays('anthropic', 'anthropic-messages', '', 'claude-sonnet-4-6', 'long'),
  ...piWays('openai', 'openai-responses', '/v1', 'gpt-5.2'),
  ...piWays('openai', 'openai-responses', '/v1', 'gpt-5.2', 'long'),
  ...piWays('google', 'google-generative-ai', '/v1beta', 'gemini-3-pro-preview'),
  ...piChatWays('gpt-5.2'),
  ...qwenWays(),
];

/** Returns the ways of Claude Code; `login` is its credential, an API key or a subscription's token. */
function claudeWays(client: Client, model: string, login: Login = 'API key'): readonly Way[] {
  const credential =
    login === 'API key'
      ? { ANTHROPIC_API_KEY: dummyKey }
      : { CLAUDE_CODE_OAUTH_TOKEN: `sk-ant-oat01-${dummyKey}` };
  const way = (name: string, envOf: (url: string) => Readonly<Record<string, string>>): Way => ({
    client,
    name,
    topic: `${model}, ${login}`,
    setup: ({ url, task, mcp }) => ({
      args: [
        '--print',
        task,
        '--model',
        model,
        '--allowedTools',
        'Read',
        ...(mcp ? ['--mcp-config', JSON.stringify({ mcpServers: mcpServers(mcp) })] : []),
      ],
      env: { ...credential, CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1', ...envOf(url) },
    }),
  });
  return [
    way('no base URL', () => ({})),
    way('ANTHROPIC_BASE_URL', (url) => ({ ANTHROPIC_BASE_URL: url })),
    way('and ENABLE_TOOL_SEARCH=true', (url) => ({ ANTHROPIC_BASE_URL: url, ENABLE_TOOL_SEARCH: 'true' })),
    way('and _CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL=1', (url) => ({
      ANTHROPIC_BASE_URL: url,
      ENABLE_TOOL_SEARCH: 'true',
      _CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL: '1',
    })),
  ];
}

type Login = 'API key' | 'login';

function codexWays(model: string): readonly Way[] {
  const way = (name: string, configOf: (url: string) => string): Way => ({
    client: codex,
    name,
    topic: model,
    setup: ({ url, task, mcp }) =>
      codexSettings(
        ['--model', model, task],
        `${configOf(url)}${mcp ? `[mcp_servers.warehouse]\ncommand = ${JSON.stringify(mcp[0])}\nargs = ${JSON.stringify(mcp.slice(1))}\n` : ''}`,
      ),
  });
  return [
    way('no base URL', () => ''),
    way('openai_base_url', (url) => `openai_base_url = "${url}/v1"\n`),
    way(
      'provider of your own',
      (url) =>
        `model_provider = "gateway"
[model_providers.gateway]
name = "gateway"
base_url = "${url}/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
`,
    ),
  ];
}

function geminiWays(): readonly Way[] {
  return [
    geminiWay('no base URL', () => ({})),
    geminiWay('GOOGLE_GEMINI_BASE_URL', (url) => ({ GOOGLE_GEMINI_BASE_URL: url })),
  ];
}

function geminiWay(name: string, envOf: (url: string) => Readonly<Record<string, string>>): Way {
  return {
    client: geminiCli,
    name,
    topic: 'auto',
    setup: ({ url, task, mcp }) => ({
      args: ['--approval-mode', 'yolo', '--prompt', task],
      env: { GEMINI_API_KEY: dummyKey, GEMINI_CLI_TRUST_WORKSPACE: 'true', ...envOf(url) },
      files: {
        '.gemini/settings.json': JSON.stringify({
          ...geminiSettings,
          ...(mcp ? { mcpServers: mcpServers(mcp) } : {}),
        }),
      },
    }),
  };
}

/** Returns the ways of opencode; `vendor` is the name of its built-in provider, `base` the path after the address. */
function opencodeWays(vendor: string, npm: string, base: string, model: string): readonly Way[] {
  const limit = { context: 1_000_000, output: 8_000 };
  const own = { [model]: { reasoning: true, tool_call: true, limit } };
  const way = (name: string, provider: string, providerOf: (url: string) => object): Way => ({
    client: opencode,
    name,
    topic: `${vendor}/${model}`,
    setup: ({ url, task, mcp }) => ({
      args: ['run', '--pure', '--model', `${provider}/${model}`, task],
      env: {
        OPENCODE_DISABLE_AUTOUPDATE: '1',
        OPENCODE_DISABLE_MODELS_FETCH: '1',
        OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
        OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
      },
      files: {
        '.config/opencode/opencode.json': JSON.stringify({
          share: 'disabled',
          autoupdate: false,
          provider: { [provider]: providerOf(url) },
          ...(mcp ? { mcp: { warehouse: { type: 'local', command: mcp } } } : {}),
        }),
      },
    }),
  });
  return [
    way('no base URL', vendor, () => ({ options: { apiKey: dummyKey } })),
    way(`provider.${vendor}.options.baseURL`, vendor, (url) => ({
      options: { apiKey: dummyKey, baseURL: `${url}${base}` },
    })),
    way('provider of your own', 'gateway', (url) => ({
      npm,
      options: { baseURL: `${url}${base}`, apiKey: dummyKey },
      models: own,
    })),
  ];
}

function piWays(
  vendor: string,
  api: string,
  base: string,
  model: string,
  retention: 'short' | 'long' = 'short',
): readonly Way[] {
  const keys = {
    ANTHROPIC_API_KEY: dummyKey,
    OPENAI_API_KEY: dummyKey,
    GEMINI_API_KEY: dummyKey,
    PI_CACHE_RETENTION: retention,
  };
  const way = (name: string, provider: string, providerOf: (url: string) => object | undefined): Way => ({
    client: pi,
    name,
    topic: `${vendor}/${model}${retention === 'long' ? ', PI_CACHE_RETENTION=long' : ''}`,
    setup: ({ url, task }) => {
      const config = providerOf(url);
      return {
        args: ['--print', '--provider', provider, '--model', model, task],
        env: { PI_OFFLINE: '1', PI_SKIP_VERSION_CHECK: '1', PI_TELEMETRY: '0', ...keys },
        files: config
          ? { '.pi/agent/models.json': JSON.stringify({ providers: { [provider]: config } }) }
          : {},
      };
    },
  });
  return [
    way('no base URL', vendor, () => undefined),
    way(`providers.${vendor}.baseUrl`, vendor, (url) => ({ baseUrl: `${url}${base}` })),
    way('provider of your own', 'gateway', (url) => ({
      baseUrl: `${url}${base}`,
      api,
      apiKey: dummyKey,
      models: [{ id: model, reasoning: true, contextWindow: 1_000_000, maxTokens: 8_000 }],
    })),
  ];
}

/** Returns the ways of pi with Chat Completions. pi has no built-in provider for this format, so the vendor's host is user-defined, too. */
function piChatWays(model: string): readonly Way[] {
  const way = (name: string, baseOf: (url: string) => string): Way => ({
    client: pi,
    name,
    topic: `${model}, Chat Completions`,
    setup: ({ url, task }) => {
      const provider = {
        baseUrl: baseOf(url),
        api: 'openai-completions',
        apiKey: dummyKey,
        models: [{ id: model, reasoning: true, contextWindow: 1_000_000, maxTokens: 8_000 }],
      };
      return {
        args: ['--print', '--provider', 'own', '--model', model, task],
        env: { PI_OFFLINE: '1', PI_SKIP_VERSION_CHECK: '1', PI_TELEMETRY: '0' },
        files: { '.pi/agent/models.json': JSON.stringify({ providers: { own: provider } }) },
      };
    },
  });
  return [
    way('baseUrl of the vendor', () => 'https://api.openai.com/v1'),
    way('baseUrl', (url) => `${url}/v1`),
  ];
}

function qwenWays(): readonly Way[] {
  const model = 'qwen3-coder-plus';
  const way = (
    name: string,
    baseOf: (url: string) => string | undefined,
    proxyOf: (url: string) => string | undefined = () => undefined,
  ): Way => ({
    client: qwenCode,
    name,
    topic: model,
    setup: ({ url, task, mcp }) => {
      const [base, proxy] = [baseOf(url), proxyOf(url)];
      return {
        args: ['--auth-type', 'openai', '--approval-mode', 'yolo', '--model', model, task],
        env: {
          ...(base === undefined ? {} : { OPENAI_BASE_URL: base }),
          ...(proxy === undefined ? {} : { DASHSCOPE_PROXY_BASE_URL: proxy }),
          OPENAI_API_KEY: dummyKey,
          OPENAI_MODEL: model,
        },
        files: {
          '.qwen/settings.json': JSON.stringify({
            ...qwenSettings,
            ...(mcp ? { mcpServers: mcpServers(mcp) } : {}),
          }),
        },
      };
    },
  });
  return [
    way('no base URL', () => undefined),
    way('OPENAI_BASE_URL', (url) => `${url}/v1`),
    way(
      'and DASHSCOPE_PROXY_BASE_URL',
      (url) => `${url}/v1`,
      (url) => `${url}/v1`,
    ),
  ];
}

function mcpServers([command, ...args]: readonly [string, ...string[]]): object {
  return { warehouse: { command, args } };
}
