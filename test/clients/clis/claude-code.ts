/** Claude Code uses Messages. For its newest models it puts a system message among the turns and moves more of its cache breakpoints. */
import { fileURLToPath } from 'node:url';
import { type Client, dummyKey, type SetupOptions, type Setup } from '../client.ts';

export const claudeCode: Client = {
  name: 'claude-code',
  install: '@anthropic-ai/claude-code@2.1.329',
  command: 'claude',
  variants: [
    { format: 'messages', model: 'claude-sonnet-4-6', setup },
    { format: 'messages-bound', model: 'claude-sonnet-5-5', setup },
    ...[
      { format: 'tool-search', model: 'claude-sonnet-4-6' },
      { format: 'tool-search-bound', model: 'claude-sonnet-5-5' },
    ].map((variant) => ({
      ...variant,
      loadsTools: true as const,
      setup: (options: SetupOptions) => withServer(setup(options)),
    })),
  ],
};

function setup({ url, model, task, isResumed }: SetupOptions): Setup {
  return {
    args: [...(isResumed ? ['--continue'] : []), '--print', task, '--model', model, '--allowedTools', 'Read'],
    env: {
      ANTHROPIC_BASE_URL: url,
      ENABLE_TOOL_SEARCH: 'true',
      ANTHROPIC_API_KEY: dummyKey,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    },
  };
}

/** Adds an MCP server of 40 tools, none of which is loaded until the model searches for it. */
function withServer({ args, ...rest }: Setup): Setup {
  const script = fileURLToPath(new URL('../many-tools-server.ts', import.meta.url));
  const mcpServers = { warehouse: { command: process.execPath, args: [script] } };
  return {
    ...rest,
    args: [...args, 'mcp__warehouse', '--strict-mcp-config', '--mcp-config', JSON.stringify({ mcpServers })],
  };
}
