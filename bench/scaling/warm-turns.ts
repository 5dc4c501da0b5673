/** Measures the turns of one conversation in an engine that saw the previous turn, and parse + stringify of the same bodies. */
import type { Codec } from '../../src/codecs/codec.ts';
import { createSeenBodies } from '../../src/codecs/earlier-bodies.ts';
import { type FoldSettings, createDefaultEngine } from '../../src/library/default-engine.ts';
import type { Engine } from '../../src/engine/types.ts';
import { commonLength, createEncryptedStore, sha256 } from '../../src/store/encrypted-store.ts';
import type { Store } from '../../src/store/store.ts';
import { type StepTimes, profileSteps } from '../steps.ts';
import { quantile, round, sum } from '../tokens/arithmetic.ts';
import { type Messages, callWithResult, chatBody } from './bodies.ts';

export type Case = {
  readonly name: string;
  readonly codec: Codec;
  readonly model: string;
  /** Converts a Chat Completions body to the codec's format. */
  readonly convert: (chat: Uint8Array) => Uint8Array;
  readonly messages: Messages;
  readonly settings: FoldSettings;
  readonly rounds: number;
  /** True to divide the time of a turn by step, too. */
  readonly showsSteps?: boolean;
  /** Plays the requests before the first measured turn. Default: the whole conversation in one request. */
  readonly before?: (engine: Engine) => Promise<void>;
};

export type Row = ReturnType<typeof rowOf>;

export const tenant = 'bench';

const warmUp = 12;
/** Bytes of the tool result that each turn adds. */
const turnBytes = 1_500;
/** The conversation restarts from its original messages after this many turns. */
const turnsPerRestart = 8;

/** A row of the table, and the steps of a turn if they were wanted. */
export type WarmTurns = { readonly row: Row; readonly steps: StepTimes | undefined };

export async function measureWarmTurns(one: Case, store: Store): Promise<WarmTurns> {
  const { codec, model, convert, messages, settings, rounds } = one;
  const engine = createDefaultEngine(
    settings,
    createEncryptedStore({ store, secret: new Uint8Array(32).fill(1) }),
  );
  const seen = createSeenBodies({ commonLength });
  const reading = { digest: sha256, blocks: new Map(), seen };
  const bodyAt = (turn: number) => {
    const first = turn - (turn % turnsPerRestart);
    const turns = Array.from({ length: turn - first + 1 }, (_, at) =>
      callWithResult(1_000_000 + first + at, turnBytes),
    );
    return convert(chatBody([...messages, ...turns.flat()], model));
  };
  const times: Times = { prepare: openTimes(), read: openTimes(), parse: openTimes() };
  let consumed = 0;
  let edits = 0;
  let shrinks = 0;
  let hiddenRecalls = 0;
  if (one.before) await one.before(engine);
  else await engine.prepare({ codec, body: convert(chatBody(messages, model)), tenant });
  for (let turn = -warmUp; turn < rounds; turn++) {
    const body = bodyAt(turn + warmUp);
    const prepared = await timed(times.prepare, () => engine.prepare({ codec, body, tenant }));
    if (prepared.outcome.status === 'failed') throw new Error(`${one.name}: ${prepared.outcome.reason}`);
    // Turns that fold are left out.
    if (prepared.report.steps.length > 0) for (const list of Object.values(times.prepare)) list.pop();
    edits = prepared.report.replayed;
    shrinks = prepared.report.shrunk;
    hiddenRecalls = prepared.report.hiddenRecalls;
    consumed += prepared.body.length;
    consumed += (await timed(times.read, () => codec.read(body, reading))).messages.length;
    consumed += (await timed(times.parse, () => parseAndStringify(body))).length;
    if (turn < 0) for (const { wall, cpu } of Object.values(times)) wall.length = cpu.length = 0;
  }
  const steps = one.showsSteps ? await stepsOfTurns() : undefined;
  const body = bodyAt(rounds);
  const count = codec.read(body, reading).messages.length;
  if (consumed === 0) throw new Error('All measured functions returned nothing.');
  const row = rowOf(one.name, { bytes: body.length, count, edits, shrinks, hiddenRecalls, times });
  return { row, steps };

  /** Prepares further turns under a profiler. The bodies are made before. */
  async function stepsOfTurns(): Promise<StepTimes> {
    const bodies = Array.from({ length: rounds }, (_, turn) => bodyAt(turn + warmUp + rounds));
    const stop = await profileSteps();
    for (const next of bodies) await engine.prepare({ codec, body: next, tenant });
    return stop(rounds);
  }
}

/** The cost of some consecutive requests of a conversation that grows with each. */
export type GrowthRow = {
  readonly requests: string;
  readonly MB: number;
  readonly 'warm turn ms': number;
  readonly 'parse + stringify ms': number;
};

/**
 * Plays one conversation in which each request adds a call with its result, `plays` times with an engine for each, and averages the CPU time of
 * neighboring requests.
 */
export async function measureGrowth(
  { codec, model, settings }: Pick<Case, 'codec' | 'model' | 'settings'>,
  openStore: () => Promise<Store>,
  {
    requests,
    together,
    plays,
  }: { readonly requests: number; readonly together: number; readonly plays: number },
): Promise<readonly GrowthRow[]> {
  const sums = Array.from({ length: requests / together }, () => ({ ms: 0, parse: 0, bytes: 0 }));
  for (let play = -1; play < plays; play++) {
    const store = await openStore();
    const encryptedStore = createEncryptedStore({ store, secret: new Uint8Array(32).fill(1) });
    const engine = createDefaultEngine(settings, encryptedStore);
    const turns = Array.from({ length: requests }, (_, turn) => callWithResult(turn, turnBytes));
    const task = { role: 'user', content: 'Find the fault.' };
    // All bodies are made before, and parsed after, so that the garbage of that is not collected during a turn.
    const bodies = turns.map((_, at) => chatBody([task, ...turns.slice(0, at + 1).flat()], model));
    const times: Times = { prepare: openTimes(), read: openTimes(), parse: openTimes() };
    for (const body of bodies) await timed(times.prepare, () => engine.prepare({ codec, body, tenant }));
    for (const body of bodies) await timed(times.parse, () => parseAndStringify(body));
    // The first play compiles the code.
    for (const [request, { length }] of play < 0 ? [] : bodies.entries()) {
      const total = sums[Math.floor(request / together)]!;
      total.ms += times.prepare.cpu[request]!;
      total.parse += times.parse.cpu[request]!;
      total.bytes += length;
    }
    await store.close();
  }
  const mean = (all: number) => all / together / plays;
  return sums.map(({ ms, parse, bytes }, at) => ({
    requests: `${at * together + 1} to ${(at + 1) * together}`,
    MB: round(mean(bytes) / 1e6, 2),
    'warm turn ms': round(mean(ms), 2),
    'parse + stringify ms': round(mean(parse), 2),
  }));
}

/** Wall-clock and CPU milliseconds. The kernel may count CPU time in ticks of 4 ms, so use means of CPU time, not medians. */
type Durations = { readonly wall: number[]; readonly cpu: number[] };
type Times = Readonly<Record<'prepare' | 'read' | 'parse', Durations>>;

function openTimes(): Durations {
  return { wall: [], cpu: [] };
}

async function timed<T>({ wall, cpu }: Durations, run: () => T | Promise<T>): Promise<T> {
  const cpuBefore = process.threadCpuUsage();
  const start = performance.now();
  const result = await run();
  wall.push(performance.now() - start);
  const { user, system } = process.threadCpuUsage(cpuBefore);
  cpu.push((user + system) / 1_000);
  return result;
}

/** Does the least work of a gateway that represents the body as objects. */
function parseAndStringify(body: Uint8Array): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(JSON.parse(new TextDecoder().decode(body))));
}

type Measured = {
  readonly bytes: number;
  readonly count: number;
  readonly edits: number;
  readonly shrinks: number;
  readonly hiddenRecalls: number;
  readonly times: Times;
};

function rowOf(name: string, { bytes, count, edits, shrinks, hiddenRecalls, times }: Measured) {
  const cpu = (key: keyof Times) => round(sum(times[key].cpu) / times[key].cpu.length, 2);
  const { wall } = times.prepare;
  return {
    conversation: name,
    MB: round(bytes / 1e6, 2),
    messages: count,
    edits,
    shrinks,
    'hidden recalls': hiddenRecalls,
    'warm turn ms': cpu('prepare'),
    'reading ms': cpu('read'),
    'wall p50 ms': round(quantile(wall, 0.5), 2),
    'wall p95 ms': round(quantile(wall, 0.95), 2),
    'parse + stringify ms': cpu('parse'),
    ratio: round(cpu('prepare') / cpu('parse'), 2),
  };
}
