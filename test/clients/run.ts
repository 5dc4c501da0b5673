/**
 * Runs real agent CLIs through the gateway: installs each once, at a pinned version, and plays its loops against the scripted provider.
 * Usage: npm run test:clients [-- [--bodies FOLDER] NAME...]. A name is a client's, or `client/format`. With `--wrapped`, the clients run
 * under `leporello wrap` instead, two at once, and a name is one that `wrap` knows. With `--guardrail`, the proxies of LiteLLM and Portkey run beside
 * the gateway instead, and with `--hooks`, clients without a gateway run `leporello hook`. With `--pictures FOLDER`, two wrapped clients make the
 * pictures of the page. With `--runtimes`, the library and the adapters run in each Node, Bun, Deno and workerd; with `--adapters`, the adapters run
 * with the real packages; without a name, both follow the clients. A table at the end says what worked where.
 */
import { parseArgs } from 'node:util';
import type { Client, Variant } from './client.ts';
import { claudeCode } from './clis/claude-code.ts';
import { codex } from './clis/codex.ts';
import { geminiCli } from './clis/gemini-cli.ts';
import { opencode } from './clis/opencode.ts';
import { pi } from './clis/pi.ts';
import { qwenCode } from './clis/qwen-code.ts';
import { writeBodies, writeFailure } from './evidence-files.ts';
import { install } from './install.ts';
import { figuresOf, problemsOf } from './judge.ts';
import { type MatrixRow, clientRow, spelledMatrix } from './matrix.ts';
import { foldedLoop, type Loop, plainLoop, sizesOf, stepsOf, toolSearchLoop } from './loops.ts';
import { playLoop } from './play-loop.ts';
import { freePort } from '../support/free-port.ts';
import { labelOf, playWrapped, wrappedClients } from './wrapped.ts';

const clients: readonly Client[] = [codex, claudeCode, geminiCli, opencode, pi, qwenCode];

const { values, positionals: names } = parseArgs({
  allowPositionals: true,
  options: {
    bodies: { type: 'string' },
    wrapped: { type: 'boolean' },
    guardrail: { type: 'boolean' },
    hooks: { type: 'boolean' },
    pictures: { type: 'string' },
    runtimes: { type: 'boolean' },
    adapters: { type: 'boolean' },
  },
});
const all = clients.flatMap((client) => client.variants.map((variant) => ({ client, variant })));
const unknown = names.filter((name) => !all.some((one) => isCalled(one, name)));
const counts = { passed: 0, failed: 0 };
const matrix: MatrixRow[] = [];

if (values.guardrail) {
  const { playGuardrail, playInARow, playWebhook } = await import('./guardrail.ts');
  const results = [...(await playGuardrail()), ...(await playWebhook()), ...(await playInARow())];
  for (const { check, passed } of results) {
    say(`${passed === undefined ? 'not possible' : passed ? 'passed' : 'FAILED'}  ${check}`);
    if (passed !== undefined) counts[passed ? 'passed' : 'failed'] += 1;
  }
  sayCounts();
} else if (values.hooks) {
  const { playHooks } = await import('./hooked.ts');
  for (const { check, problems } of await playHooks(names)) {
    say(`${problems.length === 0 ? 'passed' : 'FAILED'}  ${check}`);
    for (const problem of problems) say(`       ${problem}`);
    counts[problems.length === 0 ? 'passed' : 'failed'] += 1;
  }
  sayCounts();
} else if (values.pictures !== undefined) {
  const { takePictures } = await import('./pictures.ts');
  for (const line of await takePictures(values.pictures)) say(line);
} else if (values.runtimes || values.adapters) {
  if (values.adapters) await driveAdapters();
  if (values.runtimes) await driveRuntimes();
  sayMatrix();
} else if (values.wrapped) {
  await driveWrapped();
} else if (unknown.length > 0) {
  sayUnknown(unknown, all.map(nameOf));
} else {
  // A client has its own process group, so a signal does not reach it; it is killed when this process exits.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
  const chosen = all.filter((one) => names.length === 0 || names.some((name) => isCalled(one, name)));
  for (const one of chosen) await drive(one);
  if (names.length === 0) {
    await driveAdapters();
    await driveRuntimes();
  }
  sayMatrix();
}

type Chosen = { readonly client: Client; readonly variant: Variant };

function nameOf({ client, variant }: Chosen): string {
  return `${client.name}/${variant.format}`;
}

function isCalled(one: Chosen, name: string): boolean {
  return one.client.name === name || nameOf(one) === name;
}

async function drive(one: Chosen): Promise<void> {
  try {
    const command = await install(one.client);
    const receipts = await judged(one, command, plainLoop);
    if (receipts.length < stepsOf(plainLoop).length) return;
    const { cannotResume } = one.client;
    const sizes = sizesOf(receipts);
    const loop = one.variant.loadsTools
      ? toolSearchLoop(sizes)
      : foldedLoop(sizes, cannotResume === undefined);
    await judged(one, command, loop);
    if (cannotResume !== undefined) say(`       no second session: ${cannotResume}`);
  } catch (error) {
    counts.failed++;
    say(`FAILED ${nameOf(one)}: ${String(error)}`);
  }
}

/** Plays and checks a loop, and resolves to its receipts. */
async function judged(one: Chosen, command: string, loop: Loop) {
  const played = await playLoop(command, one.variant, loop);
  const problems = problemsOf(loop, one.variant, played);
  if (loop.name !== 'plain') matrix.push(clientRow(nameOf(one), loop, played, problems));
  const result = problems.length === 0 ? 'passed' : 'failed';
  counts[result]++;
  say(`${result} ${nameOf(one).padEnd(30)} ${loop.name.padEnd(11)}  ${figuresOf(played)}`);
  const file = nameOf(one).replaceAll('/', '-');
  if (values.bodies !== undefined) await writeBodies(values.bodies, `${file}-${loop.name}`, played);
  for (const problem of problems) say(`       ${problem}`);
  if (problems.length > 0) say(`       see ${await writeFailure(`${file}-${loop.name}`, played)}`);
  return played.receipts;
}

/** Plays the library in each runtime. */
async function driveRuntimes(): Promise<void> {
  const { playRuntimes } = await import('./runtimes/play.ts');
  const rows = await playRuntimes();
  for (const { runtime, problem } of rows) if (problem !== undefined) say(`${runtime}: ${problem}`);
  for (const { start, problem: _, ...row } of rows) {
    addRow(row);
    if (start !== undefined) say(`${row.runtime}: ${start}`);
  }
}

/** Runs the adapters with the packages that they are for. */
async function driveAdapters(): Promise<void> {
  const { adapterRows } = await import('./adapters/rows.ts');
  for (const row of await adapterRows()) addRow(row);
}

/** Adds a row, which counts as one check. */
function addRow(row: MatrixRow): void {
  matrix.push(row);
  counts[Object.values(row).includes('FAILED') ? 'failed' : 'passed'] += 1;
}

function sayMatrix(): void {
  say(spelledMatrix(matrix).trimEnd());
  sayCounts();
}

/** Runs the clients under `leporello wrap`, two at a time, each with a gateway of its own. */
async function driveWrapped(): Promise<void> {
  const chosen = wrappedClients.filter((one) => names.length === 0 || names.includes(labelOf(one)));
  const strange = names.filter((name) => !wrappedClients.some((one) => labelOf(one) === name));
  if (strange.length > 0) {
    sayUnknown(
      strange,
      wrappedClients.map((one) => labelOf(one)),
    );
    return;
  }
  const waiting = [...chosen];
  const lane = async (): Promise<void> => {
    for (let one = waiting.shift(); one; one = waiting.shift()) {
      for (const { problems, closing } of await playWrapped(one, await freePort())) {
        counts[problems.length === 0 ? 'passed' : 'failed']++;
        say(`${problems.length === 0 ? 'passed' : 'failed'} ${labelOf(one).padEnd(13)} ${closing}`);
        for (const problem of problems) say(`       ${problem}`);
      }
    }
  };
  await Promise.all([lane(), lane()]);
  sayCounts();
}

/** Ends the output. The process fails if a check failed. */
function sayCounts(): void {
  say(`${counts.passed} passed, ${counts.failed} failed`);
  if (counts.failed > 0) process.exitCode = 1;
}

function sayUnknown(unknownNames: readonly string[], known: readonly string[]): void {
  say(`No client is called ${unknownNames.join(', ')}. There are: ${known.join(', ')}.`);
  process.exitCode = 2;
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
