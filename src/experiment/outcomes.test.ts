import { expect, it } from 'vitest';
import { openaiChat } from '../codecs/openai-chat/index.ts';
import { runSteps } from '../conversation/steps.ts';
import { sha256 } from '../store/encrypted-store.ts';
import { createAgentCounts } from '../cli/bench-ab/traffic.ts';
import { reportsOf } from './holdout.ts';
import { noCounts, outcomesOf } from './outcomes.ts';

const call = (id: string, name: string, input: object) => ({
  role: 'assistant',
  content: null,
  tool_calls: [{ id, type: 'function', function: { name, arguments: JSON.stringify(input) } }],
});
const result = (id: string, content: string) => ({ role: 'tool', tool_call_id: id, content });

const read = (messages: readonly object[]) =>
  openaiChat.read(new TextEncoder().encode(JSON.stringify({ model: 'm', messages })), {
    digest: sha256,
    blocks: new Map(),
  });

const notFound = 'String to replace not found in file.';
const messages = [
  { role: 'user', content: 'Fix it.' },
  call('a', 'read', { path: 'a.ts' }),
  result('a', 'let a;'),
  call('b', 'edit', { path: 'a.ts', old_string: 'x' }),
  result('b', notFound),
  call('c', 'read', { path: 'a.ts' }),
  result('c', 'let a;'),
  { role: 'user', content: `The edit failed: ${notFound}` },
  call('d', 'run', {}),
];

it('counts failed edits, repeated calls and turns from a message on', () => {
  expect(outcomesOf(read(messages), 3)).toEqual({
    userTurns: 1,
    toolCalls: 3,
    refetches: 1,
    failedEdits: 2,
    toolErrors: 0,
  });
});

it('counts the same for an agent whose requests come one by one, and for one whose conversation is read at once', () => {
  const agent = createAgentCounts();
  for (const end of [1, 3, 5, 8, 8, 9]) agent.see(read(messages.slice(0, end)));
  const { refetches, failedEdits } = outcomesOf(read(messages), 0);
  expect(agent.counts()).toMatchObject({ refetches, failedEdits });
  expect([refetches, failedEdits]).toEqual([1, 2]);
});

/** Returns conversations of one experiment that were silent since 200,000 ms. */
const unitsOf = (count: number) =>
  Array.from({ length: count }, (_, at) => ({
    unit: `unit ${at}`,
    isControl: at % 5 === 0,
    era: { rate: 0.2, capUsd: 10, settings: 'own', model: 'm' },
    firstAt: 1_000 + at,
    lastAt: 200_000,
    usd: 0.1,
    unpriced: 0,
    requests: 3,
    recalls: 0,
    foldedTokens: 10,
    isRescued: false,
    newConversations: 0,
    covariates: [1, 1],
    counts: noCounts,
    counted: {},
  }));

it('are reported for more conversations than one call takes arguments', () => {
  const units = unitsOf(150_000);
  expect(runSteps(reportsOf(units, 200_001))).toMatchObject([{ since: 1_000, open: 150_000 }]);
});

it('are reported in many steps, so that requests are served in between', () => {
  const steps = reportsOf(unitsOf(2_000), 200_000 + 24 * 60 * 60 * 1_000);
  let count = 0;
  for (let step = steps.next(); !step.done; step = steps.next()) count += 1;
  // Each reads all conversations once: 7 outcomes, and about 60 tests for the ends of two intervals.
  expect(count).toBeGreaterThan(50);
});
