/** Runs `leporello doctor`, `leporello` and a second `leporello serve` beside a gateway that runs. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ownCommand } from '../home.ts';
import { inDataFolder } from '../open-store.ts';
import { type FakeProvider, startFakeProvider } from '../../../test/support/fake-provider/fake-provider.ts';
import { testTerminal, type TestTerminal } from '../../../test/support/test-terminal.ts';
import { run } from '../run.ts';
import { serve } from '../serve/serve.ts';
import { doctor, state } from './doctor.ts';
import { type DoctorDeps, type Finding, dataFindings } from './setup-checks.ts';

let home: string;
let provider: FakeProvider;
let gateway: { readonly url: string; readonly port: number; readonly terminal: TestTerminal };
let ended: Promise<number>;

beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), 'leporello-doctor-'));
  provider = await startFakeProvider({
    script: ({ body }) =>
      body['model'] === 'refused'
        ? { type: 'error', status: 429, body: { error: { message: 'Too many requests' } } }
        : { type: 'turn', parts: [{ type: 'text', text: 'Hello' }] },
  });
  await started({});
});

async function started(env: Readonly<Record<string, string>>): Promise<void> {
  const terminal = testTerminal({ cwd: home, env: { ...variables(), ...env } });
  ended = run(['serve', '--json', '--port', '0'], terminal);
  await terminal.shows('\n');
  const { url, port } = JSON.parse(terminal.written.out()) as { readonly url: string; readonly port: number };
  gateway = { url, port, terminal };
}

async function restarted(env: Readonly<Record<string, string>>): Promise<void> {
  gateway.terminal.stop();
  expect(await ended).toBe(0);
  await started(env);
}

afterEach(async () => {
  gateway.terminal.stop();
  expect(await ended).toBe(0);
  await provider.close();
  rmSync(home, { recursive: true, force: true });
});

function variables(): Readonly<Record<string, string>> {
  return { HOME: home, LEPORELLO_OPENAI_URL: `${provider.url}/v1` };
}

const deps: DoctorDeps = {
  nodeVersion: '24.1.0',
  reach: () => Promise.resolve(),
  now: () => Date.now(),
  deadlineMs: 60_000,
};

async function examined(env: Readonly<Record<string, string>> = {}, change: Partial<DoctorDeps> = {}) {
  const port = String(gateway.port);
  const terminal = testTerminal({ cwd: home, env: { ...variables(), LEPORELLO_PORT: port, ...env } });
  const settings = { file: undefined, values: [] };
  const code = await doctor({ command: 'doctor', settings, json: true }, terminal, { ...deps, ...change });
  const { findings } = JSON.parse(terminal.written.out()) as { readonly findings: readonly Finding[] };
  return { code, findings };
}

async function ask(model: string): Promise<void> {
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer k' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hi' }] }),
  });
  await response.text();
}

const said = (findings: readonly Finding[], ...checks: readonly string[]) =>
  findings
    .filter(({ check }) => checks.includes(check))
    .map(({ level, says, fix }) => [level, says.replaceAll(/\d+ (?:s|min)\b/g, 'N s'), fix]);

describe('leporello doctor beside a gateway', () => {
  it('says that all is well', async () => {
    await ask('gpt-4o');
    const { code, findings } = await examined({ OPENAI_BASE_URL: `${gateway.url}/v1` });
    expect(said(findings, 'gateway', 'requests', 'failures', 'models', 'base-url')).toEqual([
      [
        'ok',
        `A gateway runs on ${gateway.url} for N s (version 0.1.0, store: ${home}/.leporello).`,
        undefined,
      ],
      ['ok', 'The last request was N s ago; there was no fold yet.', undefined],
      ['ok', 'The windows and prices of all models seen are known: gpt-4o.', undefined],
      ['ok', `The base URL in OPENAI_BASE_URL leads to the gateway on ${gateway.url}.`, undefined],
    ]);
    // SQLite has not yet merged what the gateway wrote: the database alone has 4 kB.
    const [[, usable]] = said(findings, 'data') as [[string, string]];
    expect(Number(/Its store has (\S+) MB\.$/.exec(usable)?.[1])).toBeGreaterThan(0);
    expect(code).toBe(0);
  });

  it('warns of a disk that is nearly full', async () => {
    await ask('gpt-4o');
    const folder = join(home, '.leporello');
    const onDisk = (mb: number) => dataFindings(folder, inDataFolder, undefined, () => Promise.resolve(mb));
    expect((await onDisk(20)).map(({ level }) => level)).toEqual(['ok']);
    expect(await onDisk(1.23)).toEqual([
      {
        check: 'data',
        level: 'warning',
        says: expect.stringMatching(
          /can be used\. Its store has \S+ MB\. But its disk has only 1\.2 MB free: requests whose fold cannot be stored are sent without it\.$/,
        ) as string,
        fix: 'Free some space, or set another folder with LEPORELLO_DATA.',
      },
    ]);
  });

  it('finds models that the catalog lacks', async () => {
    await ask('a-model-of-ours');
    const { code, findings } = await examined();
    expect(said(findings, 'models')).toEqual([
      [
        'warning',
        'The catalog has no window of the model a-model-of-ours, so 128,000 tokens are assumed.',
        `LEPORELLO_MODELS='{"a-model-of-ours":{"windowTokens":128000}}' with its real window.`,
      ],
      [
        'warning',
        'The catalog has no price of the model a-model-of-ours, so receipts show no money.',
        `LEPORELLO_USD_PER_MILLION_TOKENS='{"a-model-of-ours":{"input":1,"output":5}}' with its real prices.`,
      ],
    ]);
    expect(code).toBe(1);
  });

  it('assumes no window that the gateway was told', async () => {
    await restarted({ LEPORELLO_MODELS: '{"a-model-of-ours":{"windowTokens":32000}}' });
    await ask('a-model-of-ours');
    expect(said((await examined()).findings, 'models').map(([, says]) => says)).toEqual([
      'The catalog has no price of the model a-model-of-ours, so receipts show no money.',
    ]);
  });

  it('finds the last failure', async () => {
    await ask('refused');
    expect(said((await examined()).findings, 'failures')).toEqual([
      [
        'warning',
        'The provider answered a request N s ago with status 429 (/v1/chat/completions).',
        "The provider's rate limit was reached: wait, or use another key.",
      ],
    ]);
  });

  it('checks the settings of the gateway where those of this shell differ', async () => {
    const asked: string[] = [];
    const reach: DoctorDeps['reach'] = async (url) => {
      asked.push(url);
      if (url === 'https://wrong.example/v1') throw new Error('nobody is there');
    };
    const other = { LEPORELLO_OPENAI_URL: 'https://wrong.example/v1' };
    const { findings } = await examined(other, { reach });
    expect(asked.toSorted()).toEqual([
      `${provider.url}/v1`,
      'https://api.anthropic.com',
      'https://generativelanguage.googleapis.com',
    ]);
    expect(said(findings, 'configuration', 'upstream')).toEqual([
      ['ok', 'The configuration is valid.', undefined],
      [
        'ok',
        `The running gateway was started with other settings than this shell has. The checks use its own: openaiUrl ${provider.url}/v1.`,
        `Nothing, if that is meant. To use the settings of this shell, stop the gateway and run ${ownCommand} serve here.`,
      ],
      ['ok', `${provider.url}/v1 can be reached.`, undefined],
      ['ok', 'https://api.anthropic.com can be reached.', undefined],
      ['ok', 'https://generativelanguage.googleapis.com can be reached.', undefined],
    ]);
    // An own upstream that nobody can reach is a failure, and one that is not used is none.
    const ours = `${provider.url}/v1`;
    const failing: DoctorDeps['reach'] = (url) =>
      url === ours ? Promise.reject(new Error('nobody is there')) : Promise.resolve();
    const { code } = await examined(other, { reach: failing });
    expect(code).toBe(2);
    // A gateway of somebody else decides nothing here.
    asked.length = 0;
    const stranger = await examined({ ...other, LEPORELLO_DATA: join(home, 'other') }, { reach });
    expect(asked).toContain('https://wrong.example/v1');
    expect(said(stranger.findings, 'configuration')).toEqual([
      ['ok', 'The configuration is valid.', undefined],
    ]);
  });

  it('finds a gateway with another data folder', async () => {
    const { code, findings } = await examined({ LEPORELLO_DATA: join(home, 'other') });
    expect(said(findings, 'gateway').map(([level, says]) => [level, says])).toEqual([
      [
        'warning',
        `Port ${gateway.port} is used by a Leporello with another data folder (${home}/.leporello) or of another user.`,
      ],
    ]);
    expect(code).toBe(1);
  });
});

describe('leporello without arguments', () => {
  const shown = async (env: Readonly<Record<string, string>>): Promise<string> => {
    const terminal = testTerminal({ cwd: home, env: { ...variables(), ...env }, isTty: { out: true } });
    expect(await state(terminal, deps.deadlineMs)).toBe(0);
    return terminal.written.out();
  };

  it('shows the state of the gateway on a terminal', async () => {
    await ask('gpt-4o');
    const text = await shown({ LEPORELLO_PORT: String(gateway.port) });
    expect(text.replace(/for \d+ (?:s|min)\b/, 'for N s').replace(/\d+ tokens/, 'N tokens')).toBe(
      `Leporello 0.1.0 runs on ${gateway.url} for N s
  requests  1 request, N tokens, net $0.00 (estimate)
  store     ${home}/.leporello
  wraps     0
  page      ${gateway.url}/

  ${ownCommand} wrap claude --port ${gateway.port}   connects an agent for one run
  ${ownCommand} doctor --port ${gateway.port}        checks the set-up
  ${ownCommand} help          shows all commands
`,
    );
  });

  it('shows the help if there is no gateway of this user', async () => {
    const env = { LEPORELLO_PORT: String(gateway.port), LEPORELLO_DATA: join(home, 'other') };
    expect(await shown(env)).toMatch(/^leporello - keeps an LLM agent inside/);
  });
});

describe('a second leporello serve', () => {
  it('names the gateway that has the port', async () => {
    const terminal = testTerminal({ cwd: home, env: variables() });
    const { port } = gateway;
    const settings = { file: undefined, values: [{ flag: '--port', key: 'port', text: String(port) }] };
    const second = serve(
      { command: 'serve', settings, forWraps: false, json: false },
      terminal,
      deps.deadlineMs,
    );
    const other = port === 65_535 ? port - 1 : port + 1;
    await expect(second).rejects.toThrow(
      `A Leporello (version 0.1.0, originals in ${home}/.leporello) already runs on ${gateway.url}. Use it: ${ownCommand} wrap claude --port ${port}, or ${gateway.url} as the base URL of a client. For a second one: ${ownCommand} serve --port ${other}.`,
    );
  });
});
