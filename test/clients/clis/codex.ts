/** Codex uses Responses. Its built-in provider tries a WebSocket first and must continue without one; a user-defined provider does not. */
import { type Client, dummyKey, type SetupOptions, type Setup } from '../client.ts';

const firstSettings = 'check_for_update_on_startup = false\n';

const lastSettings = `
[analytics]
enabled = false
[otel]
exporter = "none"
`;

function setup({ model, task, isResumed }: SetupOptions, config: string): Setup {
  return codexSettings([...(isResumed ? ['resume', '--last'] : []), '--model', model, task], config);
}

/** Returns Codex's settings; `config` is TOML and may end in a table. */
export function codexSettings(args: readonly string[], config: string): Setup {
  return {
    args: ['exec', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox', ...args],
    env: { OPENAI_API_KEY: dummyKey, CODEX_API_KEY: dummyKey, RUST_LOG: 'warn' },
    files: { '.codex/config.toml': firstSettings + config + lastSettings },
  };
}

/** Returns the settings of a Codex that is logged in with ChatGPT, as the login leaves them. The tokens are made up. */
export function codexWithLogin(args: readonly string[]): Setup {
  const account = { chatgpt_account_id: 'account-1', chatgpt_user_id: 'user-1', chatgpt_plan_type: 'plus' };
  const claims = {
    email: 'ada@example.com',
    exp: 4_000_000_000,
    'https://api.openai.com/auth': account,
  };
  const token = `${coded({ alg: 'none', typ: 'JWT' })}.${coded(claims)}.${coded({})}`;
  const login = {
    auth_mode: 'chatgpt',
    OPENAI_API_KEY: null,
    tokens: {
      id_token: token,
      access_token: token,
      refresh_token: dummyKey,
      account_id: account.chatgpt_account_id,
    },
    last_refresh: new Date().toISOString(),
  };
  const { files, ...settings } = codexSettings(args, '');
  return {
    ...settings,
    env: { RUST_LOG: 'warn' },
    files: { ...files, '.codex/auth.json': JSON.stringify(login, null, 2) },
  };
}

function coded(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

export const codex: Client = {
  name: 'codex',
  install: '@openai/codex@0.169.0',
  command: 'codex',
  variants: [
    {
      format: 'responses-built-in',
      model: 'gpt-6.1-sol',
      setup: (options) => setup(options, `openai_base_url = "${options.url}/v1"\n`),
      also: (exchanges) =>
        exchanges.some(({ target, status }) => target.startsWith('/v1/responses') && status === 426)
          ? []
          : ['it never tried a WebSocket'],
    },
    {
      format: 'responses-own',
      model: 'gpt-5.6',
      setup: (options) =>
        setup(
          options,
          `model_provider = "gateway"
[model_providers.gateway]
name = "gateway"
base_url = "${options.url}/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
`,
        ),
    },
  ],
};
