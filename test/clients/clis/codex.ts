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
