/**
 * Measures the CPU that a target uses per event of a stream: 64 concurrent streams, one connection each, with 100 small text deltas a second
 * each, in each wire format. The targets are a raw pipe, Leporello's HTTP layer alone, and the gateway, with the recall tool offered and not
 * called. Run `node bench/streams.ts [--rounds N] [--streams N] [--format NAME] [--against FOLDER]`; it prints a table and writes bench/results/streams.json.
 * It takes about two minutes. `--against` also measures the gateway of another checkout, in turn with this one.
 *
 * Traps: (1) The target has its own process, and only its CPU counts, of all its threads. Client and provider share this process. (2) If the
 * machine is so busy that events arrive late, several events arrive in one chunk, which is cheaper for every target. The column `in time` says
 * which share of the events was sent within 2 ms of the time at which it was due. (3) The streams of one run start at different times, spread over
 * the 10 ms between two events, so a millisecond has about six events. (4) CPU per event depends on the load: a process that wakes up for one
 * event pays more for it than one that finds six. (5) Requests, the first events of a stream and its end are not measured, only what is between.
 * (6) Everything runs on the loopback, without TLS. (7) Targets are measured in turn, and the table shows medians of rounds; the ratios are
 * medians of the ratios within rounds.
 */
import { once } from 'node:events';
import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { loadavg } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { bodyOf, type Format, formats, paths } from './first-token/bodies.ts';
import { startTarget, type TargetProcess } from './gateway/target-process.ts';
import { writeResult } from './results.ts';
import { openText, type StreamText } from './streams/events.ts';
import { median, round as rounded } from './tokens/arithmetic.ts';

const eventsPerSecond = 100;
const warmMs = 700;
const roundMs = 2_000;
/** Bytes of a request. Its cost is not measured. */
const requestBytes = 5_000;

const bodies = new Map(formats.map((format) => [format, bodyOf(format, requestBytes).bytes]));

const measured = ['raw pipe', 'HTTP layer', 'gateway'];

type Running = TargetProcess & { readonly name: string };
type Sample = {
  /** Microseconds of CPU per event. */
  readonly cpuUs: number;
  readonly rssMb: number;
  readonly inTime: number;
};
await main();

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      rounds: { type: 'string' },
      streams: { type: 'string' },
      against: { type: 'string' },
      format: { type: 'string' },
    },
  });
  const rounds = Number(values.rounds ?? 3);
  const streams = Number(values.streams ?? 64);
  const provider = await startProvider();
  const running: Running[] = [];
  for (const name of measured) running.push({ name, ...(await startTarget(name, provider.origin)) });
  if (values.against !== undefined) {
    const other = await startTarget('gateway', provider.origin, values.against);
    running.push({ name: `gateway of ${values.against}`, ...other });
  }
  const measuredFormats = formats.filter((format) => values.format === undefined || values.format === format);
  const samples = new Map<string, Sample[]>();
  for (let turn = 0; turn < rounds; turn += 1) {
    for (const format of measuredFormats) {
      for (const target of running) {
        const key = `${format}, ${target.name}`;
        const sample = await measure(provider, target, { format, streams });
        samples.set(key, [...(samples.get(key) ?? []), sample]);
      }
    }
  }
  const rows = measuredFormats.flatMap((format) =>
    running.map((target) => rowOf(format, target.name, samples)),
  );
  const [load] = loadavg();
  console.log(
    `CPU of the target per event, ${streams} streams of ${eventsPerSecond} events a second, load average ${load}.`,
  );
  console.table(rows);
  process.send?.(rows);
  writeResult('streams', { rounds, streams, eventsPerSecond, roundMs, rows });
  process.exit();
}

function rowOf(format: Format, target: string, samples: ReadonlyMap<string, readonly Sample[]>) {
  const pipes = samples.get(`${format}, raw pipe`)!;
  const own = samples.get(`${format}, ${target}`)!;
  const cpu = own.map((sample) => sample.cpuUs);
  return {
    format,
    target,
    'µs per event': rounded(median(cpu), 1),
    'least µs': rounded(Math.min(...cpu), 1),
    'times a raw pipe': rounded(median(cpu.map((us, turn) => us / pipes[turn]!.cpuUs)), 2),
    'in time': rounded(median(own.map((sample) => sample.inTime)), 2),
    'rss MB': rounded(median(own.map((sample) => sample.rssMb)), 0),
  };
}

async function measure(
  provider: Provider,
  { origin, use }: Running,
  { format, streams }: { readonly format: Format; readonly streams: number },
): Promise<Sample> {
  const clients = Array.from({ length: streams }, () => readStream(origin, format));
  await sleep(warmMs);
  const before = await use();
  provider.takeCounts();
  await sleep(roundMs);
  const counts = provider.takeCounts();
  const after = await use();
  // On a busy machine, a request may reach the provider only now.
  const ending = setInterval(() => provider.endAll(), 20);
  const received = (await Promise.all(clients)).reduce((sum, bytes) => sum + bytes, 0);
  clearInterval(ending);
  const written = provider.takeBytes();
  if (received !== written)
    throw new Error(`Expected ${written} bytes of ${format} from ${origin}, got ${received}.`);
  return {
    cpuUs: (1_000 * (after.cpuMs - before.cpuMs)) / counts.events,
    rssMb: after.rssMb,
    inTime: counts.inTime / counts.events,
  };
}

/** Sends a request on its own connection, and resolves to the bytes of the response's body. Rejects on any status but 200. */
async function readStream(origin: string, format: Format): Promise<number> {
  const headers = {
    'content-type': 'application/json',
    authorization: 'Bearer bench',
    'anthropic-version': '2023-06-01',
  };
  const sent = request(origin + paths[format], { method: 'POST', agent: false, headers });
  sent.end(bodies.get(format));
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  if (answer.statusCode !== 200)
    throw new Error(`Expected status 200 from ${origin}, got ${answer.statusCode}`);
  let bytes = 0;
  answer.on('data', (chunk: Uint8Array) => {
    bytes += chunk.length;
  });
  await once(answer, 'end');
  return bytes;
}

type OpenStream = { readonly outgoing: ServerResponse; readonly text: StreamText; due: number };

type Provider = {
  readonly origin: string;
  /** Returns the events that were sent since the last call, and how many of them were sent within 2 ms of their time. */
  takeCounts(): { readonly events: number; readonly inTime: number };
  /** Ends all streams. */
  endAll(): void;
  /** Returns the bytes of all bodies since the last call. */
  takeBytes(): number;
};

/** Starts a provider that streams to each request until `endAll`. */
async function startProvider(): Promise<Provider> {
  const open = new Set<OpenStream>();
  const interval = 1_000 / eventsPerSecond;
  let counts = { events: 0, inTime: 0 };
  let bytes = 0;
  let seed = 0;
  const write = ({ outgoing }: OpenStream, text: string): void => {
    bytes += Buffer.byteLength(text);
    outgoing.write(text);
  };
  const server = createServer((incoming, outgoing) => {
    incoming.resume().once('end', () => {
      const format = formats.find((one) => paths[one] === incoming.url)!;
      outgoing.writeHead(200, { 'content-type': 'text/event-stream' });
      seed += 1;
      const stream = {
        outgoing,
        text: openText(format, seed),
        due: performance.now() + ((seed * 7) % 64) * (interval / 64),
      };
      write(stream, stream.text.opening);
      open.add(stream);
    });
  });
  setInterval(() => {
    for (const stream of open) {
      const now = performance.now();
      if (now < stream.due) continue;
      counts.events += 1;
      if (now < stream.due + 2) counts.inTime += 1;
      stream.due += interval;
      write(stream, stream.text.delta());
    }
  }, 1);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    takeCounts() {
      const taken = counts;
      counts = { events: 0, inTime: 0 };
      return taken;
    },
    endAll() {
      for (const stream of open) {
        write(stream, stream.text.ending);
        stream.outgoing.end();
      }
      open.clear();
    },
    takeBytes() {
      const taken = bytes;
      bytes = 0;
      return taken;
    },
  };
}
