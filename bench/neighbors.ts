/**
 * Measures what one client's worst bodies cost the others: a real gateway (`leporello serve`, SQLite) in a process of its own, a tenant that sends the
 * bodies of hostile/bodies.ts one after the other for a minute, and a third process that asks `/healthz` 50 times a second and sends small requests of
 * another tenant. Run `node bench/neighbors.ts [SECONDS] [serve options]`, such as `--set limits.foldThreadBytes=0`; a run of 60 seconds or more without options writes
 * bench/results/neighbors.json.
 *
 * Traps. (1) Three processes and a provider on this machine's cores: on a busy machine `/healthz` waits for a core, too. The row `idle` is
 * the same without the attacker, on the same machine: compare with it. (2) `stall` is the gateway's own view: the most CPU time that its main thread
 * used between two turns of its event loop, which is what others would wait for at least on an idle machine. (3) The provider answers at once and is in the process of the
 * attacker. (4) Latency is measured from when a request was due, not from when it could be sent, so one that waits holds up the count of none.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hostileCases } from './hostile/bodies.ts';
import { chatBody, toolLoop } from './scaling/bodies.ts';
import { quantile, round } from './tokens/arithmetic.ts';

const [, script, role = '60', ...rest] = process.argv;
/** Bytes of the bodies that the attacker sends, at most. */
const mostBytes = 8_800_000;
const paths = {
  messages: '/v1/messages',
  chat: '/v1/chat/completions',
  responses: '/v1/responses',
  gemini: '/v1beta/models/gemini-2.5-pro:generateContent',
} as const;

if (role === '--watch') await watch(rest[0]!, Number(rest[1]));
else await main(Number(role), rest);

async function main(seconds: number, options: readonly string[]): Promise<void> {
  const provider = await startProvider();
  const data = mkdtempSync(join(tmpdir(), 'leporello-bench-'));
  const gateway = await startGateway(provider, data, options);
  try {
    const idle = await watched(gateway.url, Math.min(15, seconds), gateway.stall);
    const attack = { isOver: false, sent: 0, megabytes: 0 };
    const attacking = attackWith(attack, gateway.url);
    const attacked = await watched(gateway.url, seconds, gateway.stall);
    attack.isOver = true;
    await attacking;
    const rows = [
      { what: 'idle', ...idle },
      { what: `attacked by ${attack.sent} bodies, ${Math.round(attack.megabytes)} MB`, ...attacked },
    ];
    console.table(rows);
    if (seconds >= 60 && options.length === 0) {
      const results = new URL('results/', import.meta.url);
      mkdirSync(results, { recursive: true });
      writeFileSync(
        new URL('neighbors.json', results),
        `${JSON.stringify({ node: process.version, seconds, rows }, null, 2)}\n`,
      );
    }
  } finally {
    gateway.stop();
    rmSync(data, { recursive: true, force: true });
  }
  process.exit();
}

/** Answers every request with the same small reply. */
async function startProvider(): Promise<string> {
  const reply = JSON.stringify({
    id: 'x',
    object: 'chat.completion',
    choices: [],
    content: [],
    output: [],
    candidates: [],
  });
  const server = createServer((incoming, outgoing) => {
    incoming.resume().once('end', () => {
      outgoing.writeHead(200, { 'content-type': 'application/json' }).end(reply);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function startGateway(provider: string, data: string, options: readonly string[]) {
  const command = new URL('../src/cli/main.ts', import.meta.url).pathname;
  const probe = new URL('hostile/stall-probe.ts', import.meta.url).href;
  const upstreams = ['openai', 'anthropic', 'gemini'].flatMap((name) => ['--set', `${name}Url=${provider}`]);
  const child = fork(command, ['serve', '--port', '0', '--json', '--data', data, ...upstreams, ...options], {
    execArgv: ['--import', probe],
    stdio: ['ignore', 'pipe', 'ignore', 'ipc'],
  });
  const [line] = (await once(child.stdout!, 'data')) as [Buffer];
  const { url } = JSON.parse(line.toString()) as { readonly url: string };
  return {
    url,
    /** The longest stall since it was asked last, in milliseconds. */
    stall: async (): Promise<number> => {
      child.send('stall');
      const [ms] = (await once(child, 'message')) as [number];
      return ms;
    },
    stop: () => void child.kill('SIGKILL'),
  };
}

/** Runs the watcher beside, and says what it saw. */
async function watched(url: string, seconds: number, stall: () => Promise<number>) {
  await stall();
  const child = fork(script!, ['--watch', url, `${seconds}`]);
  const [seen] = (await once(child, 'message')) as [object];
  return { ...seen, 'stall ms': round(await stall(), 1) };
}

/** In the watcher: asks as often as it should, whatever is still waiting. */
async function watch(url: string, seconds: number): Promise<void> {
  const health: number[] = [];
  const small: number[] = [];
  const body = Buffer.from(chatBody(toolLoop(8, 1_500)));
  const asked: Promise<void>[] = [];
  const due = performance.now();
  for (let tick = 0; tick < seconds * 50; tick++) {
    const wait = due + tick * 20 - performance.now();
    if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
    const at = due + tick * 20;
    asked.push(timed(health, at, () => send('GET', `${url}/healthz`)));
    if (tick % 10 === 0)
      asked.push(timed(small, at, () => send('POST', `${url}/v1/chat/completions`, body, 'small')));
  }
  await Promise.all(asked);
  process.send?.({ ...figures('/healthz', health), ...figures('small requests', small) });
  process.disconnect();
}

async function timed(times: number[], due: number, run: () => Promise<void>): Promise<void> {
  await run();
  times.push(performance.now() - due);
}

function figures(name: string, times: readonly number[]) {
  const at = (share: number) => round(quantile(times, share), 1);
  return {
    [name]: times.length,
    [`${name} p50`]: at(0.5),
    [`${name} p99`]: at(0.99),
    [`${name} max`]: at(1),
  };
}

function send(method: string, url: string, body?: Buffer, tenant = 'attacker'): Promise<void> {
  const done = Promise.withResolvers<void>();
  const headers = {
    authorization: `Bearer ${tenant}`,
    'content-type': 'application/json',
    ...(body && { 'content-length': body.length }),
  };
  const asked = request(url, { method, headers }, (answer) => {
    answer.resume().once('end', done.resolve);
  });
  asked.once('error', done.reject);
  asked.end(body);
  return done.promise;
}

/** All bodies, largest allowed first, over and over; each time as another conversation. */
async function attackWith(
  attack: { isOver: boolean; sent: number; megabytes: number },
  url: string,
): Promise<void> {
  for (let times = 0; !attack.isOver; times++) {
    for (const one of hostileCases) {
      for (const size of one.sizes.toReversed()) {
        const text = JSON.stringify(one.body(size)).replace('Read them all.', `Read them all, ${times}.`);
        if (attack.isOver) return;
        if (Buffer.byteLength(text) > mostBytes) continue;
        await send('POST', url + paths[one.format], Buffer.from(text));
        attack.sent++;
        attack.megabytes += text.length / 1e6;
        break;
      }
    }
  }
}
