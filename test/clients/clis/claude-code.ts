/** Claude Code: Messages, with the model's own thinking, context management and a system message among the turns. */
import { type Client, dummyKey } from '../client.ts';

export const claudeCode: Client = {
  name: 'claude-code',
  install: '@anthropic-ai/claude-code@2.1.329',
  command: 'claude',
  variants: [
    {
      format: 'messages',
      model: 'claude-sonnet-4-6',
      setup: ({ url, model, task }) => ({
        args: ['--print', task, '--model', model, '--allowedTools', 'Read'],
        env: {
          ANTHROPIC_BASE_URL: url,
          ANTHROPIC_API_KEY: dummyKey,
          CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
        },
      }),
    },
  ],
};
