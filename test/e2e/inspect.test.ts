/**
 * Plays a conversation through a gateway that keeps its receipts, ends the gateway, and reads the receipts with `leporello inspect`. The
 * counter counts a result as 10,000 tokens and everything else as 0, so the figures are round.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openStore } from '../../src/cli/open-store.ts';
import { run } from '../../src/cli/run.ts';
import { receiptArchive } from '../../src/gateway/receipts/archive.ts';
import type { KeptReceipt } from '../../src/receipts/detail.ts';
import type { Script } from '../support/fake-provider/script.ts';
import { testTerminal } from '../support/test-terminal.ts';
import { post } from './bodies.ts';
import { countedBody, countedSettings } from './counted-results.ts';
import { startStack } from './stack.ts';

const settings = {
  ...countedSettings,
  pins: { tools: ['pinned'], texts: [] },
  usdPerMillionTokens: { 'claude-sonnet-5': { input: 10, cacheRead: 1, cacheWrite: 12.5, output: 50 } },
  offerRecall: 'always',
} as const;

/** Recalls the first original that the request names, once in each reply. */
const script: Script = ({ body, index }) => {
  const id = /mem_[a-z0-9]{16}/.exec(JSON.stringify(body))?.[0];
  const usage = { input: 1_000, cacheRead: 0, cacheWrite: 0, output: 10 };
  if (id === undefined || index % 2 === 0)
    return { type: 'turn', parts: [{ type: 'text', text: 'Done.' }], usage };
  const recall = {
    type: 'tool-call',
    id: `recall-${index}`,
    name: 'read_memory',
    arguments: { id },
  } as const;
  return { type: 'turn', parts: [recall], usage };
};

it('inspect shows what was folded and why, after the gateway has ended', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'leporello-inspect-'));
  try {
    const memory = await openStore(join(folder, 'data'), {});
    const ids: string[] = [];
    {
      await using stack = await startStack(script, settings, { ...memory, archive: receiptArchive() });
      for (const jobs of [3, 4, 5]) {
        const response = await post(stack.url, 'messages', countedBody(jobs), {
          'x-leporello-session': 'jobs',
        });
        await response.text();
        ids.push(response.headers.get('x-leporello-receipt')!);
      }
    }
    const terminal = testTerminal({ cwd: folder, env: { HOME: folder } });
    const inspects = async (...args: readonly string[]) => {
      const from = terminal.written.out().length;
      const code = await run(['inspect', '--data', 'data', ...args], terminal);
      const out = terminal.written.out().slice(from);
      const plain = ids
        .reduce((text, id, at) => text.replaceAll(id, `ID-${at}`), out)
        .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
        .replaceAll(/mem_[a-z0-9]{16}/g, 'mem_ID')
        .replaceAll(/time added: [\d.]+ m?s/g, 'time added: MS')
        .replaceAll(/made [\d.]+ m?s before/g, 'made MS before');
      return { code, out: plain };
    };
    expect(await inspects(ids[1]!)).toEqual({ code: 0, out: folded });
    const repeated = await inspects();
    expect(repeated.out).toContain('Receipt ID-2, TIME');
    expect(repeated.out).toContain('  2 earlier edits repeated\n');
    expect(repeated.out).toContain(
      '  Repeats the fold of receipt ID-1, made MS before: 2 edits.\n    message  what',
    );
    const table = /\n    message  what[^]*?\n    \((\d+) other messages/.exec(repeated.out)!;
    // The request has 11 messages: two that the fold replaced, and nine others, of which the fold itself knew seven.
    expect(table[1]).toBe('9');
    expect(table[0].match(/repeated$/gm)).toHaveLength(2);
    expect(table[0]).not.toContain('kept:');
    const json = await inspects('--last', '3', '--json');
    const receipts = json.out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as KeptReceipt & { repeats?: string });
    expect(receipts.map(({ id, repeats }) => [id, repeats])).toEqual([
      ['ID-2', 'ID-1'],
      ['ID-1', undefined],
      ['ID-0', undefined],
    ]);
    const unknown = '00000000-0000-4000-8000-000000000000';
    expect(await inspects(unknown)).toEqual({ code: 1, out: '' });
    expect(terminal.written.err()).toContain(`The tenant local has no receipt ${unknown}. It may be older`);
    expect(await inspects('foo')).toEqual({ code: 2, out: '' });
    expect(terminal.written.err()).toContain('"foo" is not the id of a receipt. An id has 36 characters;');
  } finally {
    await rm(folder, { recursive: true });
  }
});

it('a request that a thread folded has its details, too', async () => {
  const archive = receiptArchive();
  const models = { '*': { windowTokens: 200_000, tokenizer: { encoding: 'o200k_base' } } } as const;
  const tokenBudget = { triggerTokens: 8_000, targetTokens: 3_000, bufferTokens: 1 };
  const own = { ...settings, models, triggers: { ...settings.triggers, tokenBudget } };
  await using stack = await startStack(script, own, { archive, foldThreadBytes: 1_000 });
  await (await post(stack.url, 'messages', countedBody(8))).text();
  const [newest] = await archive.list('local', 1);
  expect(newest?.detail?.trigger?.name).toBe('token-budget');
  const titles = new Set(newest?.detail?.edits.map(({ tool, title }) => `${tool}: ${title}`));
  expect([...titles]).toEqual(['run: result of run']);
});

const folded = `Receipt ID-1, TIME
  /v1/messages, model claude-sonnet-5, session jobs
  folded: token budget exceeded
  Why: The request had 40,000 tokens, more than its token budget (20 % of the window); the goal was at most 20,000 tokens.
  tokens: 40,000 came, 20,000 were sent (window 200,000)
  billed: 2,000 input tokens, 0 of them read from the cache; 20 output
  time added: MS
  offload-results: 2 edits saved 20,000 tokens
  recall {"id":"mem_ID"}: 0 tokens
  cost: paid $0.0210, estimate without Leporello $0.0138, net -$0.0072
        of what was paid: the fold $0.00, recalls $0.0105
    message  what                    before   after
          0  user: text                   0       0  kept: among the newest: the last user message, the newest results and their calls
          1  assistant: call of run       0       0  kept: the goal was met without it, or no strategy folds it
          2  tool: result of run     10,000       0  folded
          3  assistant: call of run       0       0  kept: the goal was met without it, or no strategy folds it
          4  tool: result of run     10,000       0  folded
          5  assistant: call of run       0       0  kept: the goal was met without it, or no strategy folds it
          6  tool: result of run     10,000  10,000  kept: the goal was met without it, or no strategy folds it
          7  assistant: call of run       0       0  kept: among the newest: the last user message, the newest results and their calls
          8  tool: result of run     10,000  10,000  kept: among the newest: the last user message, the newest results and their calls
    folded: message 2, result of run, 10,000 → 0 tokens, sent with 3 earlier requests, original mem_ID
      | [Folded result: 82 lines; it begins "result 0". read_memory {"id":"mem_ID"} shows it]
    folded: message 4, result of run, 10,000 → 0 tokens, sent with 2 earlier requests, original mem_ID
      | [Folded result: 82 lines; it begins "result 1". read_memory {"id":"mem_ID"} shows it]

`;
