/** opencode uses the AI SDK's providers, so it has all four wire formats. It asks for a title first. */
import { type Client, dummyKey, type Variant } from '../client.ts';

function variant(format: string, npm: string, base: string, model: string): Variant {
  return {
    format,
    model,
    setup: ({ url, task, isResumed }) => ({
      args: ['run', ...(isResumed ? ['--continue'] : []), '--pure', '--model', `gateway/${model}`, task],
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
          provider: {
            gateway: {
              npm,
              options: { baseURL: `${url}${base}`, apiKey: dummyKey },
              models: {
                [model]: { reasoning: true, tool_call: true, limit: { context: 1_000_000, output: 8_000 } },
              },
            },
          },
        }),
      },
    }),
  };
}

export const opencode: Client = {
  name: 'opencode',
  install: 'opencode-ai@1.18.33',
  command: 'opencode',
  variants: [
    variant('chat', '@ai-sdk/openai-compatible', '/v1', 'gpt-5.2'),
    variant('responses', '@ai-sdk/openai', '/v1', 'gpt-5.2'),
    variant('messages', '@ai-sdk/anthropic', '/v1', 'claude-sonnet-4-6'),
    variant('gemini', '@ai-sdk/google', '/v1beta', 'gemini-3-pro-preview'),
  ],
};
