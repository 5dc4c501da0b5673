/**
 * Runs a holdout through whole gateways, over HTTP: control conversations arrive at the provider as the client sent them, whichever gateway
 * serves them, and the results hold the sums of both arms and no content.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { runSteps } from '../../src/conversation/steps.ts';
import { run } from '../../src/cli/run.ts';
import { openStore } from '../../src/cli/open-store.ts';
import { type ExperimentReport, reportsOf } from '../../src/experiment/holdout.ts';
import { createJournal, trialJournal } from '../../src/experiment/journal.ts';
import { receiptArchive } from '../../src/gateway/receipts/archive.ts';
import { createEncryptedStore } from '../../src/store/encrypted-store.ts';
import { eventually } from '../support/eventually.ts';
import type { Script } from '../support/fake-provider/script.ts';
import { testTerminal } from '../support/test-terminal.ts';
import { post } from './bodies.ts';
import { countedBody, countedSettings } from './counted-results.ts';
import { startStack } from './stack.ts';

const settings = {
  ...countedSettings,
  experiment: { holdout: 0.5, control: 'untouched' },
  usdPerMillionTokens: { 'claude-sonnet-5': { input: 10, cacheRead: 1, cacheWrite: 12.5, output: 50 } },
} as const;

const script: Script = () => ({
  type: 'turn',
  parts: [{ type: 'text', text: 'Done.' }],
  usage: { input: 1_000, cacheRead: 0, cacheWrite: 0, output: 0 },
});

const sessions = Array.from({ length: 8 }, (_, at) => `session ${at}`);
const hoursLater = 7 * 60 * 60 * 1_000;

it('a holdout leaves its control group untouched, in every gateway, and counts both arms', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'leporello-experiment-'));
  try {
    const memory = await openStore(join(folder, 'data'), {});
    const secret = new Uint8Array(32).fill(3);
    const arms = new Map<string, boolean>();
    {
      await using stack = await startStack(script, settings, { store: memory.store, secret });
      const urls = [stack.url, await stack.another()];
      for (const [at, session] of sessions.entries()) {
        for (const jobs of [3, 4, 5, 6]) {
          const body = countedBody(jobs).replace('Run all jobs.', session);
          const headers = { 'x-leporello-session': session };
          await (await post(urls[(at + jobs) % 2]!, 'messages', body, headers)).text();
          const isUntouched = Buffer.from(stack.provider.requests.at(-1)!.body).equals(Buffer.from(body));
          if (jobs === 3) expect(isUntouched).toBe(true);
          else if (jobs === 4) arms.set(session, isUntouched);
          else expect(isUntouched).toBe(arms.get(session));
        }
      }
      await eventually(async () => {
        let requests = 0;
        for (const url of urls) {
          const response = await fetch(`${url}/_leporello/experiment`);
          const { experiments } = (await response.json()) as { experiments: readonly ExperimentReport[] };
          requests = experiments.reduce((sum, { open }) => sum + open, 0);
        }
        expect(requests).toBe(sessions.length);
        const records = await createJournal(
          createEncryptedStore({ store: memory.store, secret }),
          trialJournal,
        ).list('local');
        expect(records.map((record) => record.requests)).toEqual(sessions.map(() => 3));
      });
      const journal = createJournal(createEncryptedStore({ store: memory.store, secret }), trialJournal);
      const records = await journal.list('local');
      expect(JSON.stringify(records)).not.toMatch(/session|result|Run all|call_|Done/);
      const controls = [...arms.values()].filter(Boolean).length;
      expect(controls).toBeGreaterThan(0);
      expect(controls).toBeLessThan(sessions.length);
      const [report, ...others] = runSteps(reportsOf(records, Date.now() + hoursLater));
      expect(others).toEqual([]);
      expect(report).toMatchObject({ rate: 0.5, model: 'claude-sonnet-5', open: 0, rescued: 0, unpriced: 0 });
      expect(report!.estimate).toMatchObject({
        control: controls,
        folded: sessions.length - controls,
        verdict: 'cannot tell',
      });
      // Three requests of 1,000 tokens each at USD 10 per million.
      expect(records.every(({ usd }) => Math.abs(usd - 0.03) < 1e-9)).toBe(true);
      expect(records.filter(({ foldedTokens }) => foldedTokens > 0)).toHaveLength(sessions.length - controls);
    }
  } finally {
    await rm(folder, { recursive: true });
  }
});

it('leporello experiment prints the results', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'leporello-experiment-'));
  try {
    // Settings that do not change what is folded begin no new experiment.
    for (const others of [
      {},
      { cacheMb: 300, memoryTtlMs: 90 * 24 * 60 * 60 * 1_000, storeDeadlineMs: 300_000 },
    ]) {
      const memory = await openStore(join(folder, 'data'), {});
      const own = { ...settings, ...others };
      await using stack = await startStack(script, own, { ...memory, archive: receiptArchive() });
      for (const jobs of [4, 5]) await (await post(stack.url, 'messages', countedBody(jobs))).text();
      await eventually(async () => {
        const answer = await (await fetch(`${stack.url}/_leporello/experiment`)).json();
        expect((answer as { experiments: readonly unknown[] }).experiments).toHaveLength(1);
      });
      const page = await (await fetch(`${stack.url}/_leporello/`)).text();
      expect(page).toContain('Measured on your own traffic');
      expect(page).toContain('Verdict: cannot tell yet.');
      await eventually(async () => {
        const metrics = await (await fetch(`${stack.url}/metrics`)).text();
        expect(metrics).toMatch(/^leporello_experiment_requests_total\{arm="(?:control|folded)"\} 2$/m);
        expect(metrics).toMatch(/^leporello_experiment_usd_total\{arm="(?:control|folded)"\} 0\.02$/m);
      });
    }
    const terminal = testTerminal({ cwd: folder, env: { HOME: folder } });
    expect(await run(['experiment', '--data', 'data'], terminal)).toBe(0);
    const out = terminal.written.out();
    expect(out).toContain('claude-sonnet-5, since ');
    expect(out).toContain('  Verdict: cannot tell yet.\n');
    expect(out).toContain(
      '  Ended conversations: none; 1 open. A conversation has ended when it was silent for six hours.\n',
    );
    expect(await run(['experiment', '--data', 'data', '--json'], terminal)).toBe(0);
    expect(JSON.parse(terminal.written.out().slice(out.length))).toMatchObject({
      experiments: [{ open: 1 }],
    });
  } finally {
    await rm(folder, { recursive: true });
  }
});

it('a conversation that a thread folds is counted, too', async () => {
  const models = { '*': { windowTokens: 200_000, tokenizer: { encoding: 'o200k_base' } } } as const;
  const tokenBudget = { triggerTokens: 8_000, targetTokens: 3_000, bufferTokens: 1 };
  const own = { ...settings, models, triggers: { ...settings.triggers, tokenBudget } };
  await using stack = await startStack(script, own, { foldThreadBytes: 1_000 });
  await (await post(stack.url, 'messages', countedBody(8))).text();
  await eventually(async () => {
    const answer = await (await fetch(`${stack.url}/_leporello/experiment`)).json();
    expect(answer).toMatchObject({ experiments: [{ open: 1 }] });
  });
});
