/** Claude Code: Messages. For its newest models it puts a system message among the turns and moves more of its cache marks. */
import { type Client, dummyKey, type Rims, type Setup } from '../client.ts';

export const claudeCode: Client = {
  name: 'claude-code',
  install: '@anthropic-ai/claude-code@2.1.329',
  command: 'claude',
  variants: [
    { format: 'messages', model: 'claude-sonnet-4-6', setup },
    { format: 'messages-bound', model: 'claude-sonnet-5-5', setup },
  ],
};

function setup({ url, model, task, isResumed }: Rims): Setup {
  return {
    args: [...(isResumed ? ['--continue'] : []), '--print', task, '--model', model, '--allowedTools', 'Read'],
    env: {
      ANTHROPIC_BASE_URL: url,
      ANTHROPIC_API_KEY: dummyKey,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    },
  };
}
