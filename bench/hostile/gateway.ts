/** Starts a gateway with a stall probe in its own process, and the provider behind it, and sends them requests. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { defaultFoldThreadBytes } from '../../src/gateway/fold-thread/fold-thread.ts';
import { warmedUp } from '../first-token/processes.ts';
import { chatBody, toolLoop } from '../scaling/bodies.ts';
import { round } from '../tokens/arithmetic.ts';
import type { HostileCase } from './bodies.ts';
import type { FormatName } from './spell.ts';

/** Figures of the gateway since they were last taken, in milliseconds of CPU. `stallMs`: of its main thread. `cpuMs`: of all threads. */
export type GatewayFigures = { readonly stallMs: number; readonly cpuMs: number };

export type ProbedGateway = {
  readonly url: string;
  readonly figures: () => Promise<GatewayFigures>;
  /** Waits until everything is done, such as the receipt of the last request. */
  readonly figuresWhenQuiet: () => Promise<GatewayFigures>;
  readonly stop: () => Promise<void>;
};

/** The path of a model call in each format. */
export const paths: Readonly<Record<FormatName, string>> = {
  messages: '/v1/messages',
  chat: '/v1/chat/completions',
  responses: '/v1/responses',
  gemini: '/v1beta/models/gemini-2.5-pro:generateContent',
};

/** Starts a provider that answers every request with the same small reply. */
export async function startProvider(): Promise<string> {
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

/** A gateway that uses less CPU time than this in so many milliseconds is done. A receipt waits 250 ms for others. */
const quietMs = 300;
const maxQuietCpuMs = 30;

/** Starts `leporello serve` with a data folder of its own. Resolves when it has warmed up. */
export async function startProbedGateway(
  provider: string,
  options: readonly string[] = [],
): Promise<ProbedGateway> {
  const data = mkdtempSync(join(tmpdir(), 'leporello-bench-'));
  const command = new URL('../../src/cli/main.ts', import.meta.url).pathname;
  const probe = new URL('stall-probe.ts', import.meta.url).href;
  const upstreams = ['openai', 'anthropic', 'gemini'].flatMap((name) => ['--set', `${name}Url=${provider}`]);
  const child = fork(command, ['serve', '--port', '0', '--json', '--data', data, ...upstreams, ...options], {
    execArgv: ['--import', probe],
    stdio: ['ignore', 'pipe', 'ignore', 'ipc'],
  });
  const [line] = (await once(child.stdout!, 'data')) as [Buffer];
  const { url } = JSON.parse(line.toString()) as { readonly url: string };
  await warmedUp(url);
  const figures = async (): Promise<GatewayFigures> => {
    child.send('figures');
    const [taken] = (await once(child, 'message')) as [GatewayFigures];
    return taken;
  };
  const figuresWhenQuiet = async (): Promise<GatewayFigures> => {
    const sum = { stallMs: 0, cpuMs: 0 };
    for (;;) {
      await new Promise((resolve) => setTimeout(resolve, quietMs));
      const { stallMs, cpuMs } = await figures();
      sum.stallMs = Math.max(sum.stallMs, stallMs);
      sum.cpuMs += cpuMs;
      if (cpuMs < maxQuietCpuMs) return sum;
    }
  };
  // The second fold thread warms up after the gateway is ready.
  await figuresWhenQuiet();
  return {
    url,
    figures,
    figuresWhenQuiet,
    async stop() {
      const exit = once(child, 'exit');
      child.kill('SIGKILL');
      await exit;
      rmSync(data, { recursive: true, force: true });
    },
  };
}

/** Sends a request with the credential of a tenant, and reads the answer. Rejects unless it succeeds. */
export async function send(method: string, url: string, body?: Buffer, tenant = 'attacker'): Promise<void> {
  const done = Promise.withResolvers<void>();
  const headers = {
    authorization: `Bearer ${tenant}`,
    'content-type': 'application/json',
    ...(body && { 'content-length': body.length }),
  };
  const outgoing = request(url, { method, headers }, (answer) => {
    if (answer.statusCode !== 200) done.reject(new Error(`${method} ${url}: ${answer.statusCode}`));
    answer.resume().once('end', done.resolve);
  });
  outgoing.once('error', done.reject);
  outgoing.end(body);
  await done.promise;
}

/** The figures of one body in the gateway. */
export type InGateway = GatewayFigures & { readonly MB: number };

/** Starts a gateway with a provider behind it, and sends it an ordinary body for each of its threads: the first one is slower. */
export async function openGateway(): Promise<ProbedGateway> {
  const gateway = await startProbedGateway(await startProvider());
  for (const turns of [120, 400, 1_600])
    await send('POST', gateway.url + paths.chat, Buffer.from(chatBody(toolLoop(turns, 1_500))), 'warm-up');
  await gateway.figuresWhenQuiet();
  return gateway;
}

/** Sends the bodies of a case to a gateway, one after the other, and returns the figures of each. */
export async function measureInGateway(
  gateway: ProbedGateway,
  one: HostileCase,
): Promise<readonly InGateway[]> {
  const measured: InGateway[] = [];
  for (const body of bodiesOf(one)) {
    // Another task makes it another conversation.
    const text = body.toString().replace('Read them all.', `Read them all, ${measured.length}.`);
    await gateway.figures();
    await send('POST', gateway.url + paths[one.format], Buffer.from(text));
    const { stallMs, cpuMs } = await gateway.figuresWhenQuiet();
    measured.push({
      MB: round(body.length / 1e6, 2),
      stallMs: round(stallMs, 1),
      cpuMs: round(cpuMs, 1),
    });
  }
  return measured;
}

/** Bytes of the largest body whose stall is limited. */
const maxBytes = 8_800_000;

/** Returns a body just too small for a fold thread, the largest limited one, and one that is larger than that, if the case has them. */
function bodiesOf({ sizes, body }: HostileCase): readonly Buffer[] {
  const bytesOf = (size: number) => Buffer.from(JSON.stringify(body(size)));
  const all = sizes.map(bytesOf);
  const [first] = sizes;
  let small = all[0]!;
  for (let size = first!; small.length >= defaultFoldThreadBytes && size > 1; )
    small = bytesOf((size = Math.floor((size * defaultFoldThreadBytes * 0.98) / small.length)));
  const limited = all.findLast(({ length }) => length <= maxBytes);
  const largest = all.at(-1)!;
  return [...new Set([small, limited, largest])].filter((one) => one !== undefined);
}
