/** Qwen Code uses Chat Completions. */
import { type Client, dummyKey } from '../client.ts';

/** Settings with which it asks the user nothing. */
export const qwenSettings = {
  general: { enableAutoUpdate: false, disableAutoUpdate: true, disableUpdateNag: true },
  privacy: { usageStatisticsEnabled: false },
  telemetry: { enabled: false },
};

export const qwenCode: Client = {
  name: 'qwen-code',
  install: '@qwen-code/qwen-code@0.24.4',
  command: 'qwen',
  cannotResume: 'it rewrites its first message, which makes it another conversation',
  variants: [
    {
      format: 'chat',
      model: 'qwen3-coder-plus',
      setup: ({ url, model, task }) => ({
        args: ['--auth-type', 'openai', '--approval-mode', 'yolo', '--model', model, task],
        env: { OPENAI_BASE_URL: `${url}/v1`, OPENAI_API_KEY: dummyKey, OPENAI_MODEL: model },
        files: {
          '.qwen/settings.json': JSON.stringify(qwenSettings),
        },
      }),
    },
  ],
};
