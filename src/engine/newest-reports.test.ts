import { describe, expect, it } from 'vitest';
import { chatBody, readChat, type Step } from '../../test/support/chat-conversation.ts';
import { testEngine } from '../../test/support/test-engine.ts';
import { openaiChat } from '../codecs/openai-chat/index.ts';
import { protectionOf } from './protect.ts';

const call = (name: string, input: object, result: string): Step => ({
  calls: [{ name, input: JSON.stringify(input), result }],
});
const run = (command: string, result: string) => call('bash', { command }, result);
const edit = (path: string) =>
  call('edit', { path, old_string: 'a', new_string: 'b' }, 'The file was updated.');

const failed = 'parse.test.ts:40: Error: expected 3 but got 4\n2 failed';
const passed = 'All is well.\n12 passed';
const diffOf = (...files: readonly string[]) =>
  files
    .map((file) => `diff --git a/${file} b/${file}\n--- a/${file}\n+++ b/${file}\n@@ -1 +1 @@\n-a\n+b`)
    .join('\n');

/** Returns the places of the calls whose results are protected. */
function keptOf(...steps: readonly Step[]): readonly number[] {
  const conversation = readChat(chatBody([{ user: 'Go.' }, ...steps, run('true', '')]));
  const protects = protectionOf(conversation, { pins: { tools: [], texts: [] }, recallTool: undefined });
  return steps.flatMap((_, at) => (protects.part(2 * at + 2, 0) ? [at] : []));
}

describe('the newest failure', () => {
  it('stays until the same program has run again, whatever folder and files it ran with', () => {
    expect(keptOf(run('npm test', failed), edit('src/a.ts'), run('ls', 'a.ts'))).toEqual([0]);
    expect(keptOf(run('npm test', failed), run('cd app && CI=1 npm test -- parse', passed))).toEqual([]);
    expect(keptOf(run('npm test', failed), run('npm test', failed))).toEqual([1]);
    expect(keptOf(run('npm test', failed), run('npm run lint', passed))).toEqual([0]);
  });

  it('is one of all programs: the newest that no later run supersedes', () => {
    const lint = 'src/a.ts:3:1: error: Unexpected any (no-explicit-any)';
    expect(keptOf(run('npm test', failed), run('npx eslint src', lint))).toEqual([1]);
    expect(keptOf(run('npm test', failed), run('npx eslint src', lint), run('eslint src', ''))).toEqual([0]);
  });

  it('is no listing in which a line speaks of an error, and no very long one', () => {
    expect(keptOf(run('grep -rn Error src', 'a.ts:1: throw new Error("x failed");'))).toEqual([]);
    expect(keptOf(run('npm test', `${failed}\n${'x'.repeat(12_000)}`))).toEqual([]);
  });
});

describe('the newest diff', () => {
  it('stays until all of its files are edited, or a newer diff shows them', () => {
    const diff = run('git diff', diffOf('src/a.ts', 'src/b.ts'));
    expect(keptOf(diff, edit('src/a.ts'))).toEqual([0]);
    expect(keptOf(diff, edit('/app/src/a.ts'), edit('/app/src/b.ts'))).toEqual([]);
    expect(keptOf(diff, run('git diff --staged', diffOf('src/a.ts', 'src/b.ts')))).toEqual([1]);
  });

  it('is at most 200 lines long, and stays beside the newest failure', () => {
    const long = `${diffOf('src/a.ts')}\n${'+line\n'.repeat(200)}`;
    expect(keptOf(run('git show', long))).toEqual([]);
    expect(keptOf(run('git diff', diffOf('src/a.ts')), run('npm test', failed))).toEqual([0, 1]);
  });
});

describe('a fold', () => {
  const noise = Array.from({ length: 12 }, (_, at) => run(`make part-${at}`, `part ${at} `.repeat(300)));
  const body = chatBody(
    [
      { user: 'Go.' },
      run('npm test', `${failed}\n${'at line of a trace\n'.repeat(60)}`),
      run('git diff', `${diffOf('src/a.ts')}\n${'+ changed line\n'.repeat(60)}`),
      ...noise,
    ],
    { tools: ['bash', 'edit'], model: 'gpt-4o' },
  );
  const sentIn = async (window: number, budget: number) => {
    const { engine } = testEngine({
      window,
      triggerOptions: { tokenBudget: { triggerTokens: budget, targetTokens: 1_500, bufferTokens: 0 } },
    });
    const prepared = await engine.prepare({ codec: openaiChat, body, tenant: 't' });
    const text = new TextDecoder().decode(prepared.body);
    return {
      isFolded: prepared.report.steps.length > 0,
      failure: text.includes('at line of a trace\\n'.repeat(60)),
      diff: text.includes('+ changed line\\n'.repeat(60)),
    };
  };

  it('leaves both whole, but takes them if the request would not fit otherwise', async () => {
    expect(await sentIn(200_000, 6_000)).toEqual({ isFolded: true, failure: true, diff: true });
    expect(await sentIn(1_900, 100_000)).toEqual({ isFolded: true, failure: false, diff: false });
  });
});
