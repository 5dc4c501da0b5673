/** pi has a small prompt, four tools and all four wire formats. */
import { type Client, dummyKey, type Variant } from '../client.ts';

/** Returns a variant; `api` is the client's name of the format, `base` the path after the address. */
function variant(format: string, api: string, base: string, model: string): Variant {
  return {
    format,
    model,
    setup: ({ url, task, isResumed }) => ({
      args: [
        ...(isResumed ? ['--continue'] : []),
        '--print',
        '--provider',
        'gateway',
        '--model',
        model,
        '--tools',
        'read',
        task,
      ],
      env: { PI_OFFLINE: '1', PI_SKIP_VERSION_CHECK: '1', PI_TELEMETRY: '0' },
      files: {
        '.pi/agent/models.json': JSON.stringify({
          providers: {
            gateway: {
              baseUrl: `${url}${base}`,
              api,
              apiKey: dummyKey,
              models: [{ id: model, reasoning: true, contextWindow: 1_000_000, maxTokens: 8_000 }],
            },
          },
        }),
      },
    }),
  };
}

export const pi: Client = {
  name: 'pi',
  install: '@mariozechner/pi-coding-agent@0.73.1',
  command: 'pi',
  variants: [
    variant('chat', 'openai-completions', '/v1', 'gpt-5.2'),
    variant('responses', 'openai-responses', '/v1', 'gpt-5.2'),
    variant('messages', 'anthropic-messages', '', 'claude-sonnet-4-6'),
    variant('gemini', 'google-generative-ai', '/v1beta', 'gemini-3-pro-preview'),
  ],
};
