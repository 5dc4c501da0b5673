/**
 * Runs every program of `examples/` as a process of its own and compares what it prints. The programs that ask a provider get the scripted one by
 * the variables that a user sets. test/recipes.laws.test.ts runs those of `examples/recipes/`.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, expect, it } from 'vitest';
import { httpStore } from '../src/store/http.ts';
import { eventually } from './support/eventually.ts';
import { freePort } from './support/free-port.ts';
import { type Script, startFakeProvider } from './support/index.ts';
import { isRedisMissing, startRedis } from './support/redis-server.ts';

const logs = 12;
const folder = mkdtempSync(join(tmpdir(), 'leporello-examples-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Reads all logs, then asks the memory for the first, and answers with the port only if the request shows it by then. */
const script: Script = ({ index, body }) => {
  const shown = /port of worker 50 of service 0: (\d+)/.exec(JSON.stringify(body))?.[1];
  const says = (words: string) => ({ type: 'turn', parts: [{ type: 'text', text: words }] }) as const;
  const calls = (name: string, input: object) =>
    ({ type: 'turn', parts: [{ type: 'tool-call', name, arguments: JSON.stringify(input) }] }) as const;
  if (index < logs) return calls('read_log', { service: index });
  if (index > logs) return says(`It has port ${shown}.`);
  return shown === undefined
    ? calls('read_memory', { query: 'worker 50 of service 0' })
    : says('Nothing was folded.');
};

/** Folds, and at last a recall, then the answer that needs it. */
const foldedBySdk = [
  /^Receipt: token-budget, \d+ tokens → \d+, recalls: 0\.$/,
  /^Receipt: (token-budget|no new fold), \d+ tokens → \d+, recalls: 1\.$/,
  /^It has port 4050\.$/,
];
const largest = /^Largest request: (\d+) tokens; untouched (\d+)\.$/;

/** Runs a program with variables that name the scripted provider. Resolves with what it printed; it must end with 0 and print no error. */
async function run(name: string, variables: Readonly<Record<string, string>> = {}): Promise<string> {
  const provider = await startFakeProvider({ script });
  const child = spawn(process.execPath, [...process.execArgv, join('examples', name)], {
    env: {
      PATH: process.env['PATH'],
      HOME: folder,
      LEPORELLO_DATA: join(folder, name),
      OPENAI_BASE_URL: `${provider.url}/v1`,
      LEPORELLO_OPENAI_URL: `${provider.url}/v1`,
      ANTHROPIC_BASE_URL: provider.url,
      GOOGLE_GEMINI_BASE_URL: provider.url,
      ...variables,
    },
  });
  const [stdout, stderr, [status]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close'),
  ]);
  await provider.close();
  expect({ stdout, stderr, status }).toEqual({ stdout, stderr: '', status: 0 });
  return stdout;
}

/** The lines that each program prints, as patterns. Figures are checked below, or vary with the estimate of tokens. */
const printed: Readonly<Record<string, readonly RegExp[]>> = {
  'openai-sdk.ts': [...foldedBySdk, /^The program keeps 26 messages; the recalls are not among them\.$/],
  'anthropic-sdk.ts': [...foldedBySdk, /^The program keeps 26 messages; the recalls are not among them\.$/],
  'google-genai-sdk.ts': [
    ...foldedBySdk,
    /^The program keeps 26 contents; the recalls are not among them\.$/,
  ],
  'mcp.ts': [
    /^It has port 4050\.$/,
    /^The receipt of the newest fold: .*, model gpt-4o, session .*, [\d,]+ → [\d,]+ tokens /,
    /^ {2}With its earlier folds repeated, the request had [\d,]+ tokens, more than its token budget /,
    /^ {2}mem_[a-z0-9]{16} {2}result of read_log service=\d+, [\d,]+ tokens$/,
    /^The memory found mem_[a-z0-9]{16}: port of worker 50 of service 0: 4050$/,
    /^port of worker 51 of service 0: 4051$/,
    /^\[Lines 51-52 of 90\.\]$/,
  ],
  'ai-sdk.ts': [
    /^Service 0 has port 4000, service 1 has port 4001\.$/,
    /^The program keeps 121 messages; the recalls are not among them\.$/,
    /^Requests of the program: 61; requests to the provider: 63\.$/,
    /^Folds: [1-9]\d*\.$/,
    largest,
    /^Tokens of all requests: \d+; untouched \d+\.$/,
  ],
  'langchain.ts': [
    /^Service 0 has port 4000, service 1 has port 4001\.$/,
    /^The state has 122 messages; the recalls are not among them\.$/,
    /^Requests to the provider: 63\.$/,
    largest,
  ],
  'openai-agents.ts': [
    /^Service 0 has port 4000, service 1 has port 4001\.$/,
    /^The session has 122 items; the recalls are not among them\.$/,
    /^Requests to the provider: 63\.$/,
    largest,
  ],
  'long-agent.ts': [
    /^500 actions with \d+ tokens\. The largest request had 1[0-5]\d{3} tokens, the last context has 1[0-4]\d{3}\.$/,
    /^Sub-goal s7: Move service-7$/,
    /^Outcome: service-7 logs to port 4007$/,
    /^$/,
    /^a31 read \{"path":"services\/service-7\/log\.ts"\}$/,
    /^\[Lines 1-4 of 17\. For the rest: \{"id":"s7","lines":"5-17"\}\]$/,
    /^action$/,
    /^The state has \d+ bytes\.$/,
  ],
  'fold-in-process.ts': [
    /^Outcome: compacted by must-fit, \d+ tokens before, [1-7]\d{3} after, [1-9]\d* originals stored\.$/,
    /^The model reads mem_[a-z0-9]{16}:$/,
    /^service-0 started$/,
    /^service-0 is well$/,
    /^\[Lines 1-2 of 151\.\]$/,
    /^The original has 2871 bytes of JSON\.$/,
  ],
};

/** Expects the lines of `output` to match the patterns in order. A pattern may match several lines in a row. */
function expectLines(output: string, patterns: readonly RegExp[]): void {
  const lines = output.trimEnd().split('\n');
  let at = -1;
  const unmatched = lines.filter((line) => {
    if (patterns[at + 1]?.test(line)) at++;
    else return !patterns[at]?.test(line);
    return false;
  });
  expect({ unmatched, missing: patterns.slice(at + 1), output }).toEqual({
    unmatched: [],
    missing: [],
    output,
  });
}

/** Expects that each line with tokens before and after an arrow has fewer after it; returns the number of those lines. */
function expectFewer(output: string): number {
  const pairs = [...output.matchAll(/([\d,]+)(?: tokens)? → ([\d,]+)/g)].map(([, ...pair]) =>
    pair.map((figure) => Number(figure.replaceAll(',', ''))),
  );
  for (const [before, after] of pairs) expect(after).toBeLessThan(before!);
  return pairs.length;
}

it.each(Object.keys(printed))('examples/%s prints what it says', async (name) => {
  const output = await run(name);
  expectLines(output, printed[name]!);
  expect(expectFewer(output)).toBeGreaterThanOrEqual(output.includes('eceipt') ? 1 : 0);
  const sizes = new RegExp(largest, 'm').exec(output);
  if (sizes === null) return;
  // The untouched conversation overflows the window of 32,000 tokens; no request does.
  expect(Number(sizes[1])).toBeLessThan(32_000);
  expect(Number(sizes[2])).toBeGreaterThan(32_000);
});

it.skipIf(isRedisMissing)('examples/redis.ts repeats the folds of one gateway on the other', async () => {
  await using redis = await startRedis();
  const output = await run('redis.ts', { LEPORELLO_MEMORY_REDIS_PORT: String(redis.port) });
  const receipts = [...output.matchAll(/^Receipt of gateway ([01]): (token-budget|repeated folds), /gm)];
  expect(receipts.length).toBe(expectFewer(output));
  // The request after the first fold goes to the other gateway.
  const [fold, next] = receipts.map(([, gateway, trigger]) => ({ gateway, trigger }));
  expect(fold).toEqual({ gateway: expect.any(String), trigger: 'token-budget' });
  expect(next).toEqual({ gateway: fold!.gateway === '0' ? '1' : '0', trigger: 'repeated folds' });
  expectLines(output, [/^Stores: redis and redis\.$/, /^Receipt of gateway/, /^It has port 4050\.$/]);
});

it('examples/memory-server.ts keeps what a store gives it', async () => {
  const port = await freePort();
  const child = spawn(process.execPath, [...process.execArgv, 'examples/memory-server.ts', String(port)]);
  const store = httpStore({ url: `http://127.0.0.1:${port}`, timeoutMs: 60_000 });
  try {
    const value = new TextEncoder().encode('port 4000');
    await eventually(() => store.putMany([{ key: 'a', value, expiresAt: undefined }]));
    expect(await store.getMany(['a', 'b'])).toEqual([value, undefined]);
  } finally {
    child.kill();
    await store.close();
  }
});

it('every program of the folder is run here', () => {
  const programs = globSync('examples/*.ts').map((path) => basename(path));
  expect(programs.toSorted()).toEqual([...Object.keys(printed), 'redis.ts', 'memory-server.ts'].toSorted());
});
