/**
 * Folds large bodies in a worker thread, so that one client's body does not delay other requests. The engine here folds small requests with a
 * local engine, and large ones with an engine in the thread. A request whose thread ends is sent unfolded, and the next one starts a new
 * thread.
 */
import { defaultCacheMb } from '../../caches.ts';
import type { Engine } from '../../engine/types.ts';
import type { EngineRequest, PreparedRequest } from '../../engine/types.ts';
import { maxTimerMs } from '../../checks.ts';
import { LeporelloError, reasonOf } from '../../errors.ts';
import { withResolvers } from '../../es2024.ts';
import type { EngineParts } from '../app.ts';
import { type Remote, giveUp, moving, openCallState } from './calls.ts';
import { openSummaries, preparedOf } from './remade.ts';
import { type BudgetMember, type SharedBudget, joinBudget, openSharedBudget } from './shared-budget.ts';
import { copyBody } from '../http/body.ts';
import type { ThreadFunctions, ThreadRequest } from './thread.ts';
import { openWorker } from './worker.ts';
import type { ServedSettings } from '../../library/default-engine.ts';
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
  const { local } = parts;
  const settings = copiedSettings(parts.settings);
  const summaries = openSummaries();
  const remadeParts = { ...parts, settings, summaries };
  const worker = openWorker({ parts: { ...parts, settings }, heapMb, budget, place, summaries });
  const isLarge = ({ body }: EngineRequest): boolean => body.length >= fromBytes;

  async function prepare(request: EngineRequest): Promise<PreparedRequest> {
    const deadlines = openDeadlines();
    try {
      const { remote, worker: thread } = worker.running();
      deadlines.after(maxSilenceMs, () => void thread.terminate());
      const state = openCallState();
      const late = withResolvers<undefined>();
      if (request.leftMs)
        deadlines.after(request.leftMs(), () => {
          mayBeGivenUp(request).then(
            (may) => may && giveUp(state) && late.resolve(undefined),
            () => undefined,
          );
        });
      const prepared = await Promise.race([remote.prepare(await requestData(request), state), late.promise]);
      if (prepared) return await preparedOf(remadeParts, remote, request, prepared);
      return await unfolded(
        request,
        'deadline: the thread that folds large requests was busy with other requests',
      );
    } catch (error) {
      return unfolded(request, reasonOf(error));
    } finally {
      deadlines.clear();
    }
  }

  function unfolded(request: EngineRequest, reason: string): Promise<PreparedRequest> {
    return local.unfolded(request, { status: 'failed', reason });
  }

  /** False for a request that, unfolded, might not fit its window. */
  async function mayBeGivenUp(request: EngineRequest): Promise<boolean> {
    const { report } = await unfolded(request, '');
    const info = await loadModelInfo(report.model, settings.models);
    const { window = FALLBACK_WINDOW, maxInput = window } = info;
    return request.refusal === undefined && request.body.length / bytesPerToken <= maxInput;
  }

  async function inThread(ask: (remote: Remote<ThreadFunctions>) => Promise<void>): Promise<void> {
    await ask(worker.running().remote);
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
    close: () => worker.close(),
  };
}

/** Runs functions after so many milliseconds, until it is cleared. */
function openDeadlines(): { after(ms: number, run: () => void): void; clear(): void } {
  const timers: ReturnType<typeof setTimeout>[] = [];
  return {
    after: (ms, run) => void timers.push(setTimeout(run, Math.min(Math.max(0, ms), maxTimerMs))),
    clear: () => timers.forEach((timer) => clearTimeout(timer)),
  };
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
