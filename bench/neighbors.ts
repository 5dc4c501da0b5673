/**
 * Measures how one tenant's worst bodies slow down other tenants. It starts a gateway (`leporello serve`, SQLite) in its own process. An
 * attacking tenant sends the bodies of hostile/bodies.ts one after the other for a minute. A third process requests `/healthz` 50 times per
 * second and sends small requests of another tenant. Run `node bench/neighbors.ts [SECONDS] [serve options]`, for example with
 * `--set limits.foldThreadBytes=0`. A run without arguments writes bench/results/neighbors.json.
 *
 * Traps: (1) The processes share this machine's cores, so on a busy machine `/healthz` also waits for a core. Compare with the row `idle`,
 * which is measured without the attacker. (2) `stall ms` is measured in the gateway: the most CPU time that its main thread used between two
 * runs of a timer of 2 ms. Other requests wait at least that long. (3) The provider answers at once, in a process of its own: the attacker's is
 * busy while it builds a body. (4) Latency is measured from the time at which a request was due, not from the time at which it was sent.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { hostileCases } from './hostile/bodies.ts';
import { type ProbedGateway, paths, send, startProbedGateway, startProvider } from './hostile/gateway.ts';
import { writeResult } from './results.ts';
import { chatBody, toolLoop } from './scaling/bodies.ts';
import { quantile, round } from './tokens/arithmetic.ts';

const [, script, role = '60', ...rest] = process.argv;
/** The largest body of the attacker in bytes. */
const maxBytes = 8_800_000;

if (role === '--watch') await watch(rest[0]!, Number(rest[1]));
else if (role === '--provider') process.send?.(await startProvider());
else await main(Number(role), rest);

async function main(seconds: number, options: readonly string[]): Promise<void> {
  const providing = fork(script!, ['--provider']);
  const [provider] = (await once(providing, 'message')) as [string];
  const gateway = await startProbedGateway(provider, options);
  try {
    const idle = await runWatcher(gateway, Math.min(15, seconds));
    const attack = { isOver: false, sent: 0, megabytes: 0 };
    const attacking = attackWith(attack, gateway.url);
    const attacked = await runWatcher(gateway, seconds);
    attack.isOver = true;
    await attacking;
    const rows = [
      { load: 'idle', ...idle },
      { load: `attacked by ${attack.sent} bodies, ${Math.round(attack.megabytes)} MB`, ...attacked },
    ];
    console.table(rows);
    writeResult('neighbors', { seconds, rows });
  } finally {
    await gateway.stop();
    providing.kill();
  }
  process.exit();
}

/** Runs the watcher in its own process and returns its figures. */
async function runWatcher(gateway: ProbedGateway, seconds: number) {
  await gateway.figures();
  const child = fork(script!, ['--watch', gateway.url, `${seconds}`]);
  const [latencies] = (await once(child, 'message')) as [object];
  const { stallMs } = await gateway.figures();
  return { ...latencies, 'stall ms': round(stallMs, 1) };
}

/** Runs in the watcher: sends each request when it is due, even if earlier ones are still waiting. */
async function watch(url: string, seconds: number): Promise<void> {
  const health: number[] = [];
  const small: number[] = [];
  const body = Buffer.from(chatBody(toolLoop(8, 1_500)));
  const pending: Promise<void>[] = [];
  const start = performance.now();
  for (let tick = 0; tick < seconds * 50; tick++) {
    const due = start + tick * 20;
    const wait = due - performance.now();
    if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
    pending.push(timed(health, due, () => send('GET', `${url}/healthz`)));
    if (tick % 10 === 0)
      pending.push(timed(small, due, () => send('POST', `${url}/v1/chat/completions`, body, 'small')));
  }
  await Promise.all(pending);
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

/** Sends the largest allowed body of each case, again and again, each time as another conversation. */
async function attackWith(
  attack: { isOver: boolean; sent: number; megabytes: number },
  url: string,
): Promise<void> {
  for (let times = 0; !attack.isOver; times++) {
    for (const one of hostileCases) {
      for (const size of one.sizes.toReversed()) {
        const text = JSON.stringify(one.body(size)).replace('Read them all.', `Read them all, ${times}.`);
        if (attack.isOver) return;
        if (Buffer.byteLength(text) > maxBytes) continue;
        await send('POST', url + paths[one.format], Buffer.from(text));
        attack.sent++;
        attack.megabytes += text.length / 1e6;
        break;
      }
    }
  }
}
