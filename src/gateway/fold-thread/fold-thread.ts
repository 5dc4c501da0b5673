/**
 * Folds large bodies in a worker thread, so that one client's body does not delay other requests. The engine here folds small requests with a
 * local engine, and large ones with an engine in the thread. A request whose thread ends is sent unfolded, and the next one starts a new
 * thread.
 */
import { Worker } from 'node:worker_threads';
import { defaultCacheMb } from '../../caches.ts';
import type { Engine } from '../../engine/types.ts';
import type { EngineRequest, PreparedRequest, SummaryJob } from '../../engine/types.ts';
import { maxTimerMs } from '../../checks.ts';
import { LeporelloError, reasonOf } from '../../errors.ts';
import { withResolvers } from '../../es2024.ts';
import type { EngineParts } from '../app.ts';
import { type CallState, type Remote, giveUp, moving, openCallState, openCalls } from './calls.ts';
import { offerLearned } from './learned.ts';
import {
  type BudgetMember,
  type SharedBudget,
  forgetEngine,
  joinBudget,
  openSharedBudget,
} from './shared-budget.ts';
import { copyBody } from '../http/body.ts';
import type {
  ParentFunctions,
  RemadeFields,
  ThreadData,
  ThreadFunctions,
  ThreadPrepared,
  ThreadRequest,
} from './thread.ts';
import type { ServedSettings } from '../../library/default-engine.ts';
import type { Summarizer } from '../../outline/summarizer.ts';
import { openStoreView } from '../../store/wrapped-store.ts';
import { loadTokenCounter, loadVocabulary } from '../../tokens/load-counter.ts';
import { FALLBACK_WINDOW, loadModelInfo } from '../../tokens/models.ts';

/** Options of the fold threads. */
export type FoldThreadOptions = {
  /** Bytes of the smallest body that is folded in a thread; bodies of eight times as many use a second thread. Default: 262,144. */
  readonly fromBytes?: number;
  /** Megabytes of heap of each thread; a thread that needs more ends. Default: 2,048. */
  readonly heapMb?: number;
};

/** The threads of one gateway: one for large bodies, and one for the largest. */
export type FoldThread = {
  /** Opens the memory for caches of the main thread. It is shared with the threads of the engine that is opened next. */
  openMemory(bytes: number): BudgetMember;
  /** Returns an engine that folds large bodies in the threads. Throws `bad-config` when the settings cannot be copied to a thread. */
  engineFor(parts: EngineParts): Engine;
  /**
   * Starts and warms up the threads. Resolves when the thread for large bodies is ready. Never rejects: if a thread cannot be started, the
   * first request for it is sent unfolded.
   */
  warmUp(model: string): Promise<void>;
  /** Ends the threads. Requests that wait for one are sent unfolded. */
  close(): Promise<void>;
};

/**
 * Bytes of the smallest body that is folded in a thread, by default. Measured (bench/hostile.ts): the worst bodies of this size take about
 * 50 ms of CPU when they are first seen. Sending one to another thread and back takes 0.1 ms or more.
 */
export const defaultFoldThreadBytes = 256 * 1024;

/** Bytes of a body per token, at least, in all but unusual bodies. */
const bytesPerToken = 3;

/** Milliseconds after which a thread that has not answered is terminated. */
const maxSilenceMs = 180_000;

/** A running thread. */
type RunningThread = {
  readonly remote: Remote<ThreadFunctions>;
  readonly worker: Worker;
  end(error: LeporelloError): void;
};

/** Creates the threads that fold the large bodies of one gateway, for `foldThread` of `assembleGateway`. */
export function foldThread(options: FoldThreadOptions = {}): FoldThread {
  const { fromBytes = defaultFoldThreadBytes, heapMb = 2_048 } = options;
  let lanes: readonly FoldLane[] = [];
  let budget = openSharedBudget(defaultCacheMb * 1e6, engines);
  let own: BudgetMember | undefined;
  return {
    openMemory(bytes) {
      budget = openSharedBudget(bytes, engines);
      own = joinBudget(budget, 0);
      return own;
    },
    engineFor(parts) {
      const large = foldInThread(parts, { fromBytes, heapMb, budget }, 1);
      // The largest bodies take seconds when they are first seen, and other large bodies need not wait for them.
      const largest = foldInThread(
        { ...parts, local: large.engine },
        { fromBytes: fromBytes * 8, heapMb, budget },
        2,
      );
      lanes = [large, largest];
      return largest.engine;
    },
    async warmUp(model) {
      const [large, largest] = lanes;
      await large?.warmUp(model);
      // The second thread is seldom needed, so the gateway does not wait for it.
      void largest?.warmUp(model);
    },
    async close() {
      own?.leave();
      await Promise.all(lanes.map((lane) => lane.close()));
    },
  };
}

/** The main thread and the two threads have an engine each. */
const engines = 3;

type FoldLane = Pick<FoldThread, 'warmUp' | 'close'> & { readonly engine: Engine };

function foldInThread(
  parts: EngineParts,
  { fromBytes, heapMb, budget }: Required<FoldThreadOptions> & { readonly budget: SharedBudget },
  place: number,
): FoldLane {
  const { local, keptReplies, encryptedStore, log, secret } = parts;
  // The engines of both threads find the same transient entries.
  const store = openStoreView(parts.store, { deadlineMs: parts.settings.storeDeadlineMs });
  const settings = copiedSettings(parts.settings);
  const workerData: ThreadData = { settings, secret, storeName: store.name, budget, engine: place };
  const summarizers = new Map<
    number,
    {
      readonly summarizer: Summarizer;
      readonly count: (text: string) => number;
      readonly signal: AbortSignal | undefined;
    }
  >();
  let summaries = 0;
  let running: RunningThread | undefined;
  let isClosed = false;

  const offered: ParentFunctions = {
    getMany: (keys) => store.getMany(keys),
    getFirst: (keys) => store.getFirst(keys),
    putMany: (entries) => store.putMany(entries),
    putUnless: (guards, entries) => store.putUnless(guards, entries),
    touch: (keys, expiresAt) => store.touch(keys, expiresAt),
    delete: (keys) => store.delete(keys),
    ...offerLearned(parts.learned),
    vocabulary: loadVocabulary,
    async summarize(number, request) {
      const { summarizer, count, signal } = summarizers.get(number)!;
      return summarizer.summarize({ ...request, count }, signal);
    },
  };

  function start(): RunningThread {
    const worker = new Worker(threadFile, {
      workerData,
      resourceLimits: { maxOldGenerationSizeMb: heapMb },
      name: 'leporello-fold',
    });
    // The thread alone does not keep the process alive.
    worker.unref();
    const { remote, end } = openCalls<ThreadFunctions>(
      {
        post: (message, moved) => worker.postMessage(message, moved),
        listen: (listener) => void worker.on('message', listener),
      },
      offered,
    );
    const started: RunningThread = { remote, worker, end };
    const ended = (reason: string): void => {
      if (running === started) {
        running = undefined;
        forgetEngine(budget, place);
      }
      end(new LeporelloError('store-failed', `The thread that folds large requests ended: ${reason}.`));
    };
    worker.once('error', (error: Error & { readonly code?: string }) => {
      const reason = error.code ?? error.name;
      log.warn(
        { reason },
        'the thread that folds large requests failed; the next large request starts another',
      );
      ended(reason);
    });
    worker.once('exit', (code) => ended(`exit code ${code}`));
    return started;
  }

  function thread(): RunningThread {
    if (isClosed)
      throw new LeporelloError('store-failed', 'The thread that folds large requests was closed.');
    running ??= start();
    return running;
  }

  const isLarge = ({ body }: EngineRequest): boolean => body.length >= fromBytes;

  async function prepare(request: EngineRequest): Promise<PreparedRequest> {
    const state = openCallState();
    let by: RunningThread | undefined;
    const timers = [setTimeout(() => void by?.worker.terminate(), maxSilenceMs)];
    const unfolded = (reason: string) => local.unfolded(request, { status: 'failed', reason });
    try {
      by = thread();
      const late = withResolvers<undefined>();
      if (request.leftMs)
        timers.push(
          setTimeout(
            () => void isGivenUp(request, state).then(late.resolve, () => undefined),
            Math.min(Math.max(0, request.leftMs()), maxTimerMs),
          ),
        );
      const prepared = await Promise.race([
        by.remote.prepare(await requestData(request), state),
        late.promise,
      ]);
      return prepared
        ? await preparedOf(by.remote, request, prepared)
        : await unfolded('deadline: the thread that folds large requests was busy with other requests');
    } catch (error) {
      return unfolded(reasonOf(error));
    } finally {
      for (const timer of timers) clearTimeout(timer);
    }
  }

  /** Resolves when the call was given up. Never resolves when it has begun, or when the unfolded request may not fit its window. */
  async function isGivenUp(request: EngineRequest, state: CallState): Promise<undefined> {
    const { report } = await local.unfolded(request, { status: 'failed', reason: '' });
    const { window = FALLBACK_WINDOW, maxInput = window } = await loadModelInfo(
      report.model,
      settings.models,
    );
    const mayOverflow = request.refusal !== undefined || request.body.length / bytesPerToken > maxInput;
    if (mayOverflow || !giveUp(state)) await new Promise(() => {});
    return undefined;
  }

  async function preparedOf(
    remote: Remote<ThreadFunctions>,
    request: EngineRequest,
    { handle, copied, body = request.body, isCounted, searched, summary, heldBack }: ThreadPrepared,
  ): Promise<PreparedRequest> {
    const { tenant } = request;
    const counter = isCounted ? await loadTokenCounter(copied.report.model, settings.models) : undefined;
    // Referenced by everything that uses the thread's copy; when this is garbage-collected, the thread may forget its copy.
    const kept = { handle };
    releaseWithout(kept, remote, handle);
    const remade: RemadeFields = {
      body,
      counter,
      conversation: undefined,
      searched: () => searched,
      titleOf: (id) => remote.titleOf(kept.handle, id).catch(() => undefined),
      async original(id) {
        const here = await remote.original(kept.handle, id).catch(() => undefined);
        if (here) return here;
        if (!copied.report.memories.includes(id)) return undefined;
        const stored = await encryptedStore.recall(tenant, id);
        return stored.status === 'found' ? stored.original : undefined;
      },
      remember: (recall) => remote.remember(kept.handle, recall),
      async keepReply(knownAs, reply) {
        // Stored here too, because a request that is sent unfolded asks only this thread.
        await Promise.all([
          remote.keepReply(kept.handle, knownAs, reply),
          keptReplies.record(tenant, knownAs, reply),
        ]);
      },
      known: remote.known(handle).catch(() => undefined),
      reportPromptTokens: (reported) =>
        void remote.reportPromptTokens(kept.handle, reported).catch(() => undefined),
      detail: () => remote.detail(kept.handle).catch(() => undefined),
      heldBack:
        heldBack === undefined
          ? undefined
          : {
              strategies: heldBack,
              async prepared() {
                const folded = await remote.heldBack(kept.handle).catch(() => undefined);
                return folded && preparedOf(remote, request, folded);
              },
            },
      summary: summary && jobOf(remote, kept, summary, (text) => counter?.count(text) ?? text.length),
    };
    return { ...copied, ...remade };
  }

  function jobOf(
    remote: Remote<ThreadFunctions>,
    kept: { readonly handle: number },
    { writes, key, earlier, tokens }: NonNullable<ThreadPrepared['summary']>,
    count: (text: string) => number,
  ): SummaryJob {
    return {
      writes,
      key,
      earlier: () => earlier,
      tokens,
      claim: (forMs) => remote.claimSummary(kept.handle, forMs),
      async write(summarizer, signal) {
        const number = summaries++;
        summarizers.set(number, { summarizer, count, signal });
        try {
          return await remote.writeSummary(kept.handle, summarizer.name, number);
        } finally {
          summarizers.delete(number);
        }
      },
    };
  }

  const engine: Engine = {
    prepare: (request) => (isLarge(request) ? prepare(request) : local.prepare(request)),
    unfolded: (request, outcome, waitMs) => local.unfolded(request, outcome, waitMs),
    async disableFolding(request) {
      if (!isLarge(request)) return local.disableFolding(request);
      // If this fails, folding is not disabled, and a later refusal is handled again.
      await inThread(async (remote) => remote.disableFolding(await requestData(request))).catch(
        () => undefined,
      );
    },
    async reportPromptTokens(request, reported) {
      if (!isLarge(request)) return local.reportPromptTokens(request, reported);
      // If this fails, the counter is not calibrated with this request.
      await inThread(async (remote) => remote.learnFrom(await requestData(request), reported)).catch(
        () => undefined,
      );
    },
  };
  return {
    engine,
    async warmUp(model) {
      await inThread((remote) => remote.warmUp(model)).catch(() => undefined);
    },
    async close() {
      isClosed = true;
      await running?.worker.terminate();
    },
  };

  async function inThread(ask: (remote: Remote<ThreadFunctions>) => Promise<void>): Promise<void> {
    await ask(thread().remote);
  }
}

/** The thread's module: a TypeScript source in a checkout, compiled JavaScript in the package. */
const threadFile = new URL(import.meta.url.endsWith('.ts') ? './thread.ts' : './thread.js', import.meta.url);

const released = new FinalizationRegistry<() => void>((release) => release());

function releaseWithout(kept: object, remote: Remote<ThreadFunctions>, handle: number): void {
  released.register(kept, () => void remote.release(handle).catch(() => undefined));
}

/** Returns the request as data. Its body is a copy, which is moved to the thread: the gateway may have to send the client's own bytes. */
async function requestData({ codec, leftMs, body, ...request }: EngineRequest): Promise<ThreadRequest> {
  const copy = await copyBody(body);
  const data = {
    ...request,
    format: codec.name,
    route: codec.route,
    body: copy,
    endsAt: leftMs && performance.timeOrigin + performance.now() + leftMs(),
  };
  return moving(data, copy);
}

function copiedSettings(settings: ServedSettings): ServedSettings {
  try {
    return structuredClone(settings);
  } catch (cause) {
    throw new LeporelloError(
      'bad-config',
      'The settings contain functions, which cannot be sent to a thread: fold all requests in one thread, or leave the functions out.',
      { cause },
    );
  }
}
