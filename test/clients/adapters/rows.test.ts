import { expect, it } from 'vitest';
import { rowsOf, type TestResult } from './rows.ts';

const runtime = `Node ${process.versions.node}`;

function test(file: string, groups: readonly string[], name: string, hasPassed = true): TestResult {
  return { file, groups, name, hasPassed };
}

it('makes a row for each adapter and each SDK over each format, and a failed test fails its cells', () => {
  const agents = 'test/e2e/adapters/openai-agents.laws.test.ts';
  const over = ['leporelloProvider over responses'];
  const sdk = 'test/e2e/sdks/anthropic.test.ts';
  const fetched = '@anthropic-ai/sdk with leporello/fetch';
  const results = [
    test(agents, over, 'runs 60 steps through folds and hidden recalls, plain'),
    test(agents, over, 'runs 60 steps through folds and hidden recalls, streamed', false),
    test(agents, over, 'sends the same from a second instance on the same store'),
    test(agents, over, 'is sent and counted as by the gateway, in a window of 28000 tokens', false),
    test(sdk, [fetched, 'not streaming'], 'runs its tools if everything fits'),
    test(sdk, [fetched, 'not streaming'], 'continues through folds and recalls that it never sees'),
    test(sdk, [fetched, 'streaming'], 'continues through folds and recalls that it never sees'),
    test(sdk, [fetched, 'streaming'], 'does so with a model that reasons'),
    test(sdk, [fetched], 'continues in another instance on the same store'),
    test(
      'test/e2e/mcp.test.ts',
      ['an MCP client'],
      'reads, searches and lists over HTTP; web pages are refused',
    ),
  ];
  expect(rowsOf(results)).toEqual([
    {
      name: 'leporello/openai-agents, responses',
      runtime,
      fold: 'FAILED',
      recall: 'yes',
      stream: 'FAILED',
      restart: 'yes',
    },
    {
      name: 'leporello/fetch in @anthropic-ai/sdk',
      runtime,
      fold: 'yes',
      recall: 'yes',
      stream: 'yes',
      restart: 'yes',
    },
    {
      name: 'leporello/mcp, the official client',
      runtime,
      fold: 'not apart',
      recall: 'yes',
      stream: 'not apart',
      restart: 'not apart',
    },
  ]);
});
