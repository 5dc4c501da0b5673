/**
 * Divides the CPU time of warm requests by step, so that an expensive step shows. A sampling profiler records the call stack of the thread every
 * 0.1 ms; the innermost function of `functionsOf` on the stack decides the step. The profiler itself slows the code by some percent, so compare
 * shares, and take times from the tables.
 */
import { existsSync, readFileSync } from 'node:fs';
import { type Profiler, Session } from 'node:inspector/promises';

/** Functions by step, each with its file in src/. Everything that a function calls counts for its step, unless that is named here, too. */
const functionsOf = {
  read: ['codecs/read-body.ts readInSlices'],
  prefix: ['engine/history.ts linksInSteps', 'engine/state.ts clientLinksOf'],
  'look-up': ['engine/history.ts lookUpIn', 'store/fold-store.ts load', 'store/fold-store.ts decideInSteps'],
  replay: ['engine/history.ts openRequest', 'engine/state.ts replayFold'],
  shrink: ['engine/shrinks.ts shrinksOf'],
  count: ['engine/plan.ts countInSlices', 'engine/plan.ts countInSteps', 'engine/demand.ts calibratorFor'],
  triggers: ['engine/prepare.ts demandNow', 'engine/demand.ts triggerState'],
  write: ['engine/plan.ts draft'],
  record: ['engine/prepare.ts save', 'engine/state.ts markSent', 'engine/state.ts renewUsed'],
  finish: ['engine/prepare.ts finish', 'engine/ahead/summary.ts summaryFor'],
  report: [
    'engine/report.ts preparedFrom',
    'gateway/model-call.ts receiptOf',
    'gateway/receipts/receipts.ts openReceipt',
  ],
} as const;

type Step = keyof typeof functionsOf | 'other engine work' | 'HTTP, gateway, Node' | 'garbage collection';

/** Milliseconds of CPU time of the thread for one request, and the share of the whole, by step. */
export type StepTimes = Readonly<Partial<Record<Step, { readonly ms: number; readonly percent: number }>>>;

/** Steps by folder, for functions that a promise or the event loop calls. */
const stepByFolder: Readonly<Record<string, Step>> = {
  store: 'look-up',
  tokens: 'count',
  arrival: 'shrink',
  triggers: 'triggers',
  strategies: 'triggers',
  receipts: 'report',
};

const stepByFunction: ReadonlyMap<string, Step> = new Map(
  Object.entries(functionsOf).flatMap(([step, functions]) => functions.map((name) => [name, step as Step])),
);

/** Starts to record this thread. The returned function stops, and divides the time since by the number of requests. */
export async function profileSteps(): Promise<(requests: number) => Promise<StepTimes>> {
  const [missing] = missingFunctions();
  if (missing) throw new Error(missing);
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.setSamplingInterval', { interval: 100 });
  await session.post('Profiler.start');
  return async (requests) => {
    const { profile } = await session.post('Profiler.stop');
    session.disconnect();
    return timesOf(profile, requests);
  };
}

/** Tells which functions of the table do not exist, because their time would silently count for another step. */
export function missingFunctions(): readonly string[] {
  return [...stepByFunction.keys()].flatMap((name) => {
    const [file = '', called = ''] = name.split(' ');
    const url = new URL(`../src/${file}`, import.meta.url);
    const source = existsSync(url) ? readFileSync(url, 'utf8') : '';
    return new RegExp(`function\\*? ${called}\\b`).test(source)
      ? []
      : `src/${file} has no function ${called}: correct functionsOf in bench/steps.ts.`;
  });
}

function timesOf({ nodes, samples = [], timeDeltas = [] }: Profiler.Profile, requests: number): StepTimes {
  const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id])));
  const frames = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]));
  const stackOf = (leaf: number) => {
    const stack: { readonly name: string; readonly url: string }[] = [];
    for (let id: number | undefined = leaf; id !== undefined; id = parents.get(id)) {
      const { functionName = '', url = '' } = frames.get(id) ?? {};
      stack.push({ name: `${url.split('/src/').at(-1)} ${functionName}`, url });
    }
    return stack;
  };
  // The profiler's own time counts as idle.
  const stepOf = (leaf: number): Step | 'idle' => {
    const called = frames.get(leaf)?.functionName;
    if (called === '(idle)') return 'idle';
    if (called === '(garbage collector)') return 'garbage collection';
    const stack = stackOf(leaf);
    if (stack.some(({ url }) => url === 'node:inspector')) return 'idle';
    const step = stack.map(({ name }) => stepByFunction.get(name)).find((found) => found !== undefined);
    // The request that is sent is read, too.
    if (step === 'read' && stack.some(({ name }) => name === 'engine/plan.ts draft')) return 'write';
    if (step) return step;
    const folders = stack.map(({ name }) => stepByFolder[name.split('/')[0] ?? '']);
    const byFolder = folders.find((found) => found !== undefined);
    if (byFolder) return byFolder;
    return stack.some(({ url }) => /\/src\/(?!gateway\/)/.test(url))
      ? 'other engine work'
      : 'HTTP, gateway, Node';
  };
  const steps = new Map(nodes.map(({ id }) => [id, stepOf(id)]));
  const sums = new Map<Step, number>();
  let total = 0;
  for (const [at, leaf] of samples.entries()) {
    const step = steps.get(leaf) ?? 'idle';
    if (step === 'idle') continue;
    const ms = (timeDeltas[at] ?? 0) / 1_000;
    total += ms;
    sums.set(step, (sums.get(step) ?? 0) + ms);
  }
  const order: readonly Step[] = [
    ...(Object.keys(functionsOf) as Step[]),
    'other engine work',
    'HTTP, gateway, Node',
    'garbage collection',
  ];
  return Object.fromEntries(
    order.map((step) => {
      const ms = sums.get(step) ?? 0;
      return [
        step,
        { ms: Number((ms / requests).toFixed(4)), percent: Math.round((1_000 * ms) / total) / 10 },
      ];
    }),
  );
}

/** Prints the steps of several measurements, a column for each. */
export function printSteps(measured: Readonly<Record<string, StepTimes>>): void {
  const rows = new Map<string, Record<string, string>>();
  for (const [name, times] of Object.entries(measured)) {
    for (const [step, { ms, percent }] of Object.entries(times))
      rows.set(step, { ...rows.get(step), [name]: `${ms.toFixed(3)} ms, ${percent.toFixed(1)} %` });
  }
  console.table(Object.fromEntries(rows));
}
