/**
 * Makes prepared requests from what a thread copies back: everything else is requested from the thread, which keeps its own copy. A summary is planned in
 * the thread and written here, because a summarizer cannot be sent to a thread.
 */
import type { EngineRequest, PreparedRequest, SummaryJob } from '../../engine/types.ts';
import type { Summarizer } from '../../outline/summarizer.ts';
import { loadTokenCounter } from '../../tokens/load-counter.ts';
import type { EngineParts } from '../app.ts';
import type { Remote } from './calls.ts';
import type { ParentFunctions, RemadeFields, ThreadFunctions, ThreadPrepared } from './thread.ts';

/** The summaries that are being written for a thread, by the number under which it asks for them. */
export interface RunningSummaries {
  /** Calls `write` with the number of a summary, which is written as long as that takes. */
  run<T>(summary: RunningSummary, write: (number: number) => Promise<T>): Promise<T>;
  /** Writes a summary, or a part of it. */
  summarize: ParentFunctions['summarize'];
}

type RunningSummary = {
  readonly summarizer: Summarizer;
  readonly count: (text: string) => number;
  readonly signal: AbortSignal | undefined;
};

export function openSummaries(): RunningSummaries {
  const running = new Map<number, RunningSummary>();
  let next = 0;
  return {
    async run(summary, write) {
      const number = next++;
      running.set(number, summary);
      try {
        return await write(number);
      } finally {
        running.delete(number);
      }
    },
    async summarize(number, request) {
      const { summarizer, count, signal } = running.get(number)!;
      return summarizer.summarize({ ...request, count }, signal);
    },
  };
}

/** The parts from which prepared requests are made. */
export type RemadeParts = Pick<EngineParts, 'settings' | 'encryptedStore' | 'keptReplies'> & {
  readonly summaries: RunningSummaries;
};

/** Returns the prepared request of a thread. */
export async function preparedOf(
  parts: RemadeParts,
  remote: Remote<ThreadFunctions>,
  request: EngineRequest,
  { handle, copied, body = request.body, isCounted, searched, summary, heldBack }: ThreadPrepared,
): Promise<PreparedRequest> {
  const { settings, encryptedStore, keptReplies, summaries } = parts;
  const { tenant } = request;
  const counter = isCounted ? await loadTokenCounter(copied.report.model, settings.models) : undefined;
  // Referenced by everything that uses the thread's copy. If nobody releases that, it goes when this is garbage-collected.
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
    release: () => void remote.release(kept.handle).catch(() => undefined),
    heldBack:
      heldBack === undefined
        ? undefined
        : {
            strategies: heldBack,
            async prepared() {
              const folded = await remote.heldBack(kept.handle).catch(() => undefined);
              return folded && preparedOf(parts, remote, request, folded);
            },
          },
    summary:
      summary && jobOf(summary, kept, remote, summaries, (text) => counter?.count(text) ?? text.length),
  };
  return { ...copied, ...remade };
}

function jobOf(
  { writes, key, earlier, tokens }: NonNullable<ThreadPrepared['summary']>,
  kept: { readonly handle: number },
  remote: Remote<ThreadFunctions>,
  summaries: RunningSummaries,
  count: (text: string) => number,
): SummaryJob {
  return {
    writes,
    key,
    earlier: () => earlier,
    tokens,
    claim: (forMs) => remote.claimSummary(kept.handle, forMs),
    write: (summarizer, signal) =>
      summaries.run({ summarizer, count, signal }, (number) =>
        remote.writeSummary(kept.handle, summarizer.name, number),
      ),
  };
}

const released = new FinalizationRegistry<() => void>((release) => release());

function releaseWithout(kept: object, remote: Remote<ThreadFunctions>, handle: number): void {
  released.register(kept, () => void remote.release(handle).catch(() => undefined));
}
