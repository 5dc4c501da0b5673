/**
 * Measures ratios of CPU times in seconds, so that CI notices when Leporello became slower: the gateway relative to a raw pipe and to parse +
 * stringify, a warm turn and a warm read relative to parse + stringify, and an event of a stream relative to a raw pipe. Run `node bench/speed.ts`;
 * it prints a table and writes bench/results/speed.json. `node bench/speed.ts --check` writes nothing and fails when a ratio is more than 1.5
 * times the recorded one (`npm run check -- speed`). It takes half a minute, and three times as long to
 * record. It needs neither recorded conversations nor a network.
 *
 * Traps: (1) The figures are not those of the full benchmarks: the runs are short, and the bodies are generated. Compare them only with each other. (2)
 * The contenders of a ratio run in turn, and each ratio is the lowest of several rounds, because on a busy machine some rounds favor one of them. The
 * body for the pipe is small, because a pipe that waits moves a large body in larger chunks, which costs it half. (3) A ratio that is too high is measured once
 * more, and the recorded one is the highest of three measurements, because other work on the machine moves some of them by half. (4)
 * Ratios depend on the processor: hashing with SHA-256 is slow on one without instructions for it. Record them again where CI runs.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import type { ReadBlock } from '../src/codecs/codec.ts';
import { openaiChat } from '../src/codecs/openai-chat/index.ts';
import { sha256 } from '../src/store/encrypted-store.ts';
import { inMemoryStore } from '../src/store/in-memory.ts';
import { load } from './gateway/load.ts';
import { startTarget, type TargetProcess } from './gateway/target-process.ts';
import { startUpstream } from './gateway/upstream.ts';
import { readResult, writeResult } from './results.ts';
import { callWithResult, chatBody, toolLoop } from './scaling/bodies.ts';
import { measureWarmTurns } from './scaling/warm-turns.ts';
import { highest, isSlower, lowest, maxGrowth, type Ratios, slower } from './speed/ratios.ts';
import { round as rounded, sum } from './tokens/arithmetic.ts';

const rounds = 5;
/** Requests in a round. */
const requests = 400;

const isCheck = process.argv[2] === '--check';
const recorded = (readResult('speed')?.['ratios'] ?? {}) as Ratios;
const measured: Record<string, number> = {};
for (const measure of [gatewayRatios, turnRatio, readRatio, streamRatio]) {
  const first = await measure();
  const isFine = Object.entries(first).every(([name, ratio]) => !isSlower(recorded[name], ratio));
  const others = isCheck ? (isFine ? [] : [await measure()]) : [await measure(), await measure()];
  Object.assign(measured, others.reduce(isCheck ? lowest : highest, first));
}
const all = Object.keys({ ...recorded, ...measured });
console.table(all.map((ratio) => ({ ratio, recorded: recorded[ratio], measured: measured[ratio] })));
if (isCheck) {
  const problems = slower(recorded, measured);
  for (const problem of problems) console.log(problem);
  if (problems.length > 0) {
    console.log(`A ratio above ${maxGrowth} times the recorded one means that something became slower.`);
    console.log('If that is intended, record the ratios: npm run bench bench/speed.ts');
    process.exitCode = 1;
  }
}
writeResult('speed', { rounds, ratios: measured });
process.exit();

/** The whole gateway, relative to two targets of bench/gateway.ts. */
async function gatewayRatios(): Promise<Ratios> {
  const origin = await startUpstream();
  const pipe = await startTarget('raw pipe', origin);
  const parsing = await startTarget('HTTP layer + parse + stringify', origin);
  const gateway = await startTarget('gateway', origin);
  const least = { pipe: Infinity, parse: Infinity };
  for (let turn = -2; turn < rounds; turn++) {
    const toPipe = (await cpuMs(gateway, 20_000)) / (await cpuMs(pipe, 20_000));
    const toParsing = (await cpuMs(gateway, 200_000)) / (await cpuMs(parsing, 200_000));
    if (turn < 0) continue;
    least.pipe = Math.min(least.pipe, toPipe);
    least.parse = Math.min(least.parse, toParsing);
  }
  for (const target of [pipe, parsing, gateway]) target.kill();
  return {
    'gateway / raw pipe, 20 kB': rounded(least.pipe, 2),
    'gateway / parse + stringify, 200 kB': rounded(least.parse, 2),
  };
}

async function cpuMs(target: TargetProcess, bytes: number): Promise<number> {
  const before = await target.use();
  await load({ origin: target.origin, connections: 4, bytes, requests });
  return (await target.use()).cpuMs - before.cpuMs;
}

/** A turn of a conversation of 100,000 tokens, in an engine that sends all of it. */
async function turnRatio(): Promise<Ratios> {
  let least = Infinity;
  for (let round = 0; round < rounds; round++) {
    const { row } = await measureWarmTurns(
      {
        name: 'speed',
        codec: openaiChat,
        model: 'gpt-4o',
        convert: (chat) => chat,
        messages: toolLoop(240, 1_500),
        rounds: 80,
        settings: {
          offerRecall: 'always',
          models: { '*': { windowTokens: 4_000_000 } },
          triggers: { tokenBudget: false, cacheRent: { minPayback: 1e9 } },
        },
      },
      inMemoryStore(),
    );
    least = Math.min(least, row.ratio);
  }
  return { 'warm turn / parse + stringify, 400 kB': least };
}

/** Reading bodies whose messages are known, except for the last ones, as bench/reading.ts does. */
function readRatio(): Ratios {
  const messages = toolLoop(800, 1_500);
  const bodies = Array.from({ length: 30 }, (_, at) =>
    chatBody([...messages, ...callWithResult(1_000_000 + at, 1_500)]),
  );
  const reading = { digest: sha256, blocks: new Map<string, ReadBlock>() };
  const read = (body: Uint8Array): number => openaiChat.read(body, reading).messages.length;
  let least = Infinity;
  for (let round = -1; round < rounds; round++) {
    const [own, parsing] = [read, parseAndStringify].map((run) => {
      const before = process.threadCpuUsage();
      const consumed = sum(bodies.map(run));
      const { user, system } = process.threadCpuUsage(before);
      if (consumed === 0) throw new Error('A measured function returned nothing.');
      return user + system;
    }) as [number, number];
    if (round >= 0) least = Math.min(least, own / parsing);
  }
  return { 'warm read / parse + stringify, 1.3 MB': rounded(least, 2) };
}

function parseAndStringify(body: Uint8Array): number {
  return JSON.stringify(JSON.parse(new TextDecoder().decode(body))).length;
}

/** An event of a stream through the gateway, relative to a raw pipe, as bench/streams.ts measures it. */
async function streamRatio(): Promise<Ratios> {
  const script = new URL('streams.ts', import.meta.url);
  const child = fork(script, ['--rounds', '2', '--format', 'chat'], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const [rows] = (await once(child, 'message')) as [readonly Readonly<Record<string, number | string>>[]];
  const least = (target: string): number =>
    Number(rows.find((row) => row['target'] === target)?.['least µs'] ?? Number.NaN);
  return { 'event of a stream / raw pipe': rounded(least('gateway') / least('raw pipe'), 2) };
}
