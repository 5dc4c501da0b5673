/**
 * Keeps one thread that folds large bodies: starts it with the first call, and another one after it has ended. The thread calls back for the store,
 * for what the engines learn together, and for summaries.
 */
import { Worker } from 'node:worker_threads';
import { LeporelloError } from '../../errors.ts';
import { openStoreView } from '../../store/wrapped-store.ts';
import { loadVocabulary } from '../../tokens/load-counter.ts';
import type { EngineParts } from '../app.ts';
import { type Remote, openCalls } from './calls.ts';
import { offerLearned } from './learned.ts';
import type { RunningSummaries } from './remade.ts';
import { type SharedBudget, forgetEngine } from './shared-budget.ts';
import type { ParentFunctions, ThreadData, ThreadFunctions } from './thread.ts';

/** A thread, and the functions that it offers. */
type RunningThread = { readonly remote: Remote<ThreadFunctions>; readonly worker: Worker };

/** The thread of one engine. */
export interface FoldWorker {
  /** Returns the thread, which is started if there is none. Throws `store-failed` after `close`. */
  running(): RunningThread;
  close(): Promise<void>;
}

export type FoldWorkerOptions = {
  readonly parts: EngineParts;
  readonly heapMb: number;
  readonly budget: SharedBudget;
  /** The place of the thread's engine in the budget. */
  readonly place: number;
  readonly summaries: RunningSummaries;
};

export function openWorker({ parts, heapMb, budget, place, summaries }: FoldWorkerOptions): FoldWorker {
  const { log, secret, settings } = parts;
  // The engines of both threads find the same transient entries.
  const store = openStoreView(parts.store, { deadlineMs: settings.storeDeadlineMs });
  const workerData: ThreadData = { settings, secret, storeName: store.name, budget, engine: place };
  const offered: ParentFunctions = {
    getMany: (keys) => store.getMany(keys),
    getFirst: (keys) => store.getFirst(keys),
    putMany: (entries) => store.putMany(entries),
    putUnless: (guards, entries) => store.putUnless(guards, entries),
    touch: (keys, expiresAt) => store.touch(keys, expiresAt),
    delete: (keys) => store.delete(keys),
    ...offerLearned(parts.learned),
    vocabulary: loadVocabulary,
    summarize: (number, request) => summaries.summarize(number, request),
  };
  let current: RunningThread | undefined;
  let isClosed = false;

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
    const started: RunningThread = { remote, worker };
    const ended = (reason: string): void => {
      if (current === started) {
        current = undefined;
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

  return {
    running() {
      if (isClosed)
        throw new LeporelloError('store-failed', 'The thread that folds large requests was closed.');
      current ??= start();
      return current;
    },
    async close() {
      isClosed = true;
      await current?.worker.terminate();
    },
  };
}

/** The thread's module: a TypeScript source in a checkout, compiled JavaScript in the package. */
const threadFile = new URL(import.meta.url.endsWith('.ts') ? './thread.ts' : './thread.js', import.meta.url);
