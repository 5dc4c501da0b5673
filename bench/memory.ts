/**
 * Measures the memory of a gateway that has served many long conversations, and what a smaller cache costs: 1,000 conversations of 100,000 tokens
 * (bodies of 450 kB), one request each, through `leporello serve` with several values of `limits.cacheMb`. Then come the next turns of the
 * conversations that were served last, which are still in the caches, and of those that were served first, which are not, if the caches are smaller than
 * all conversations. Run `node bench/memory.ts [--conversations N] [--kB N] [--mb N]... [-- serve options]`; it prints a table and, without options, writes
 * bench/results/memory.json. It takes about ten minutes.
 *
 * Traps: (1) RSS includes memory that the allocator keeps for later, which depends on the history of the process. "Highest" is the highest of
 * samples after each request. (2) The conversations come one after the other; requests at the same time need memory for their bodies as well. (3) Bodies
 * of 256 kB and more are folded in a thread of their own, which has nearly the whole budget here, because the other two engines use
 * little of it. (4) CPU is that of the whole process, garbage collection included. (5) The conversations are generated, four bytes a token,
 * and have nothing in common; those of one agent share system text and tools. (6) The provider answers at once, in this process. (7) On a busy machine a request
 * may not be folded within `limits.prepareDeadlineMs` (2 s) and is sent unfolded; `outcomes` says how many, and why.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { urlOf, warmedUp } from './first-token/processes.ts';
import { startUpstream } from './gateway/upstream.ts';
import { generate } from './memory/conversations.ts';
import type { MemoryUse } from './memory/probe.ts';
import { writeResult } from './results.ts';
import { median, round } from './tokens/arithmetic.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    conversations: { type: 'string', default: '1000' },
    mb: { type: 'string', multiple: true, default: ['32', '64', '160', '512'] },
    kB: { type: 'string', default: '450' },
  },
});
const conversations = Number(values.conversations);
const bytes = Number(values.kB) * 1_000;
/** Conversations whose next turn is measured, at each end. */
const probed = Math.min(20, Math.floor(conversations / 2));

const provider = await startUpstream();
const rows = [];
for (const mb of values.mb) {
  rows.push(await measure(Number(mb)));
  console.table(rows);
}
writeResult('memory', { conversations, kB: bytes / 1_000, probed, rows });
process.exit();

async function measure(cacheMb: number) {
  const data = mkdtempSync(join(tmpdir(), 'leporello-bench-'));
  const { child, url } = await startGateway(data, cacheMb);
  try {
    const empty = await useOf(child);
    const outcomes = new Map<string, number>();
    let highest = 0;
    for (let seed = 1; seed <= conversations; seed++) {
      const { outcome } = await send(url, generate(seed, bytes).body(0));
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
      highest = Math.max(highest, (await useOf(child)).rssMb);
    }
    const full = await useOf(child);
    const newest = await nextTurns(child, url, (at) => conversations - at);
    const oldest = await nextTurns(child, url, (at) => at + 1);
    return {
      cacheMb,
      'RSS at start, MB': round(empty.rssMb, 0),
      'RSS, MB': round(full.rssMb, 0),
      'highest RSS, MB': round(highest, 0),
      'heap of the main thread, MB': round(full.heapMb, 0),
      'bodies of the main thread, MB': round(full.bodiesMb, 0),
      'first request, CPU ms': round((full.cpuMs - empty.cpuMs) / conversations, 1),
      'next turn, served last, CPU ms': newest.cpuMs,
      'next turn, served last, p50 ms': newest.p50Ms,
      'next turn, served first, CPU ms': oldest.cpuMs,
      'next turn, served first, p50 ms': oldest.p50Ms,
      outcomes: [...outcomes].map(([name, count]) => `${count} ${name}`).join(', '),
    };
  } finally {
    child.kill('SIGKILL');
    await once(child, 'exit');
    rmSync(data, { recursive: true, force: true });
  }
}

async function nextTurns(child: ChildProcess, url: string, seedAt: (at: number) => number) {
  const before = await useOf(child);
  const times: number[] = [];
  for (let at = 0; at < probed; at++) times.push((await send(url, generate(seedAt(at), bytes).body(1))).ms);
  const after = await useOf(child);
  return { cpuMs: round((after.cpuMs - before.cpuMs) / probed, 1), p50Ms: round(median(times), 1) };
}

async function send(url: string, body: Uint8Array) {
  const start = performance.now();
  const answer = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer bench' },
    body: Buffer.from(body),
  });
  await answer.text();
  if (answer.status !== 200) throw new Error(`Expected status 200, got ${answer.status}.`);
  const ms = performance.now() - start;
  const status = answer.headers.get('x-leporello-outcome') ?? 'none';
  const receipt = answer.headers.get('x-leporello-receipt');
  const outcome =
    status === 'failed' ? `${status}: ${await problemIn(`${url}/_leporello/receipts/${receipt}`)}` : status;
  return { outcome, ms };
}

/** Returns why a request was sent without its fold. */
async function problemIn(receiptUrl: string): Promise<string> {
  const { outcome } = (await (await fetch(receiptUrl)).json()) as {
    readonly outcome?: { readonly reason?: string };
  };
  return outcome?.reason ?? 'unknown';
}

async function useOf(child: ChildProcess): Promise<MemoryUse> {
  child.send('use');
  const [use] = (await once(child, 'message')) as [MemoryUse];
  return use;
}

async function startGateway(data: string, cacheMb: number) {
  const main = new URL('../src/cli/main.ts', import.meta.url).pathname;
  const probe = new URL('memory/probe.ts', import.meta.url).href;
  const settings = [`openaiUrl=${provider}`, `limits.cacheMb=${cacheMb}`].flatMap((one) => ['--set', one]);
  const child = fork(main, ['serve', '--port', '0', '--json', '--data', data, ...settings, ...positionals], {
    execArgv: ['--import', probe],
    stdio: ['ignore', 'pipe', 'ignore', 'ipc'],
  });
  const url = await urlOf(child);
  await warmedUp(url);
  return { child, url };
}
