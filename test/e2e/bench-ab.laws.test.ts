/**
 * Tests `leporello bench-ab` as its own process, against a scripted provider and a scripted agent with known effects: an agent that sees a stub reads
 * one file again, makes one edit that fails, and does not solve every third task.
 */
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it, vi } from 'vitest';
import { startFakeProvider } from '../support/fake-provider/fake-provider.ts';
import type { Reply, ScriptRequest } from '../support/fake-provider/script.ts';

// Each run starts a process for each task and arm, which takes minutes on a machine that is busy with other work.
vi.setConfig({ testTimeout: 1_200_000 });

const main = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url));
const agent = fileURLToPath(new URL('./ab-agent.ts', import.meta.url));
const run = promisify(execFile);

const usd = { input: 2, cacheRead: 0.5, output: 8 } as const;
const files = 8;

/** Thirty days, longer than a timer can wait. */
const timeout = ['--timeout-seconds', '2592000'];

/** The provider's own bill, by the arm's name and the task. */
type Bill = { usd: number; calls: number; cached: string };

/** A model that reads files and ends, and a provider that caches prompts by their beginning. */
function scripted({ sharesCache = false, refuses = false } = {}) {
  const bills = new Map<string, Bill>();
  const refusedOnce = new Set<string>();

  function billed(body: ScriptRequest['body']): { key: string; task: number; usage: Record<string, number> } {
    const text = JSON.stringify(body['messages']);
    const [, task = '0'] = /Solve task-(\d+)/.exec(text) ?? [];
    const [, arm = ''] = /Run ab-\d+-(one|two)/.exec(text) ?? [];
    const key = `${arm} ${task}`;
    const bill = bills.get(key) ?? { usd: 0, calls: 0, cached: '' };
    let common = 0;
    while (common < bill.cached.length && bill.cached[common] === text[common]) common += 1;
    const input = Math.ceil(text.length / 4);
    const cacheRead = sharesCache ? input - 1 : Math.floor(Math.min(common, text.length) / 4);
    const output = 20;
    const cost = ((input - cacheRead) * usd.input + cacheRead * usd.cacheRead + output * usd.output) / 1e6;
    bills.set(key, { usd: bill.usd + cost, calls: bill.calls + 1, cached: text });
    return { key, task: Number(task), usage: { input, cacheRead, cacheWrite: 0, output } };
  }

  function script({ body }: ScriptRequest): Reply {
    const text = JSON.stringify(body['messages']);
    const isFolded = /mem_[a-z0-9]{16}/.test(text);
    const key = /Run ab-\d+-one/.test(text) && /Solve task-2\./.test(text) ? 'refused' : '';
    if (refuses && key !== '' && isFolded && !refusedOnce.has(key)) {
      refusedOnce.add(key);
      return { type: 'error', status: 429 };
    }
    const { task, usage } = billed(body);
    const made = (text.match(/"tool_call_id"/g) ?? []).length;
    const call = (name: string, file: number): Reply => ({
      type: 'turn',
      usage,
      parts: [{ type: 'tool-call', id: `call-${made}`, name, arguments: { file } }],
    });
    if (made < files) return call('read', made);
    if (isFolded && made === files) return call('read', files - 1);
    if (isFolded && made === files + 1) return call('edit', 1);
    const isSolved = !(isFolded && task % 3 === 0);
    return { type: 'turn', usage, parts: [{ type: 'text', text: isSolved ? 'SOLVED' : 'GIVEN UP' }] };
  }

  const total = (arm: string): number =>
    [...bills].reduce((sum, [key, bill]) => sum + (key.startsWith(arm) ? bill.usd : 0), 0);
  return { script, total };
}

type Compared = {
  readonly tasks: number;
  readonly refused: readonly { readonly task: string; readonly reason: string }[];
  readonly solved: Readonly<Record<string, number>>;
  readonly failed: Readonly<Record<string, number>>;
  readonly means: Readonly<Record<'folded' | 'untouched', Readonly<Record<string, number>>>>;
  readonly usd: {
    readonly estimate: number;
    readonly interval: { readonly low: number | null; readonly high: number | null };
  };
  readonly runs: readonly { readonly task: string; readonly arm: string }[];
};

async function benchAb(
  model: ReturnType<typeof scripted>,
  tasks: number,
  flags: readonly string[],
): Promise<string> {
  const provider = await startFakeProvider({ script: model.script });
  const folder = await mkdtemp(join(tmpdir(), 'leporello-ab-'));
  try {
    const list = join(folder, 'tasks.txt');
    await writeFile(
      list,
      `# tasks\n${Array.from({ length: tasks }, (_, at) => `task-${at + 1}\n`).join('')}`,
    );
    const settings = [
      'triggers.tokenBudget={"triggerTokens":8000,"targetTokens":3000,"bufferTokens":1}',
      'triggers.cacheRent=false',
      'triggers.coldCache=false',
      'shrinks=false',
      `usdPerMillionTokens={"gpt-4o":${JSON.stringify(usd)}}`,
      'limits.storeDeadlineMs=60000',
      'limits.prepareDeadlineMs=600000',
    ];
    const set = settings.flatMap((setting) => ['--set', setting]);
    const args = [
      'bench-ab',
      list,
      '--openai-url',
      `${provider.url}/v1`,
      '--max-usd',
      '0.2',
      ...set,
      ...flags,
    ];
    const { stdout } = await run(process.execPath, [main, ...args, '--', process.execPath, agent, '{task}'], {
      env: { PATH: process.env['PATH'], HOME: folder },
      maxBuffer: 64 * 1024 * 1024,
    });
    return stdout;
  } finally {
    await provider.close();
    await rm(folder, { recursive: true, force: true });
  }
}

it('measures known effects of a scripted agent, to the cent of the provider', async () => {
  const model = scripted();
  const compared = JSON.parse(await benchAb(model, 4, ['--json', ...timeout])) as Compared;
  expect(compared.refused).toEqual([]);
  expect(compared).toMatchObject({
    tasks: 4,
    models: ['gpt-4o'],
    solved: { folded: 3, untouched: 4 },
    failed: { folded: 0, untouched: 0 },
    means: {
      folded: { steps: files + 3, refetches: 1, failedEdits: 1 },
      untouched: { steps: files + 1, refetches: 0, failedEdits: 0 },
    },
    steps: { estimate: (files + 3) / (files + 1) },
    verdict: 'cannot tell',
  });
  // The arm's name is the same length in both arms, and the provider's bill agrees with the receipts.
  expect(compared.means.folded['usd']).toBeCloseTo(model.total('one') / 4, 6);
  expect(compared.means.untouched['usd']).toBeCloseTo(model.total('two') / 4, 6);
  const effect = model.total('one') / model.total('two');
  expect(compared.usd.estimate).toBeCloseTo(effect, 4);
  const { low, high } = compared.usd.interval;
  expect((low ?? -1) < effect && effect < (high ?? Number.POSITIVE_INFINITY)).toBe(true);
  // Both orders occur, and the same seed draws them again.
  const first = compared.runs.filter((_, at) => at % 2 === 0).map(({ arm }) => arm);
  expect(new Set(first).size).toBe(2);
});

it('refuses a pair that read more from the cache than it sent', async () => {
  const failed = await benchAb(scripted({ sharesCache: true }), 1, []).catch((error: unknown) => error);
  expect(failed).toMatchObject({ code: 1 });
  const { stdout } = failed as { readonly stdout: string };
  expect(stdout).toContain('0 tasks in both arms');
  expect(stdout).toMatch(
    /Refused: task-1\. folded: \d+ tokens were read from the cache in 11 steps, more than/,
  );
});

it('counts a 429 as no saving, and prints a table', async () => {
  const table = await benchAb(scripted({ refuses: true }), 2, []);
  expect(table).toMatch(/failed requests, all +1 +0 +counted as no saving\n/);
  for (const label of ['solved', 'USD per solved task', 'steps', 're-fetches', 'failed edits', 'Cost: '])
    expect(table).toContain(label);
});
