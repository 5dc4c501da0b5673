/** Gemini CLI uses generateContent. A small model chooses the model first. */
import { type Client, dummyKey } from '../client.ts';

/** Settings with which it asks the user nothing. */
export const geminiSettings = {
  security: { auth: { selectedType: 'gemini-api-key' } },
  general: { enableAutoUpdate: false, disableAutoUpdate: true, disableUpdateNag: true },
  privacy: { usageStatisticsEnabled: false },
  telemetry: { enabled: false },
};

export const geminiCli: Client = {
  name: 'gemini-cli',
  install: '@google/gemini-cli@0.61.0',
  command: 'gemini',
  cannotResume: 'it sends each function response twice, which the provider refuses',
  variants: [
    {
      format: 'gemini',
      model: 'auto',
      setup: ({ url, task }) => ({
        args: ['--approval-mode', 'yolo', '--prompt', task],
        env: {
          GOOGLE_GEMINI_BASE_URL: url,
          GEMINI_API_KEY: dummyKey,
          GEMINI_CLI_TRUST_WORKSPACE: 'true',
        },
        files: {
          '.gemini/settings.json': JSON.stringify(geminiSettings),
        },
      }),
    },
  ],
};
