/**
 * Runs in the thread that folds large bodies: an engine of its own, over the store of the main thread, which it reaches with calls. It is one
 * more instance of the engine, and all instances send the same bytes.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { createCaches, openFixed } from '../../caches.ts';
import type { Codec } from '../../codecs/codec.ts';
import type { HiddenRecall, KeptReply } from '../../conversation/conversation.ts';
import { createLearned } from '../../engine/state.ts';
import type { EngineRequest, PreparedRequest, SummaryJob } from '../../engine/types.ts';
import { LeporelloError } from '../../errors.ts';
import { type CallState, type Calls, begin, moving, openCalls } from './calls.ts';
import { type LearnedFunctions, sharedLearned } from './learned.ts';
import { type SharedBudget, joinBudget } from './shared-budget.ts';
import { copyBody } from '../http/body.ts';
import { codecOf } from '../routing/routes.ts';
import { warmUp } from '../warm-up.ts';
import { type ServedSettings, createDefaultEngine } from '../../library/default-engine.ts';
import type { SummaryRequest } from '../../outline/summarizer.ts';
import { createEncryptedStore } from '../../store/encrypted-store.ts';
import type { RequestDetail } from '../../receipts/detail.ts';
import type { Store } from '../../store/store.ts';
import { type loadVocabulary, provideVocabularies } from '../../tokens/load-counter.ts';

/** Data with which the thread is started. */
export type ThreadData = {
  readonly settings: ServedSettings;
  readonly secret: Uint8Array;
  readonly storeName: string;
  /** The budget for caches, and the place of this thread's engine in it. */
  readonly budget: SharedBudget;
  readonly engine: number;
};

/** A request as it is sent to the thread. */
export type ThreadRequest = Omit<EngineRequest, 'codec' | 'leftMs'> & {
  readonly format: string;
  /** The model and mode from the URL's path, in formats that put them there. */
  readonly route: Codec['route'];
  /** Deadline in milliseconds since the epoch; undefined for none. */
  readonly endsAt: number | undefined;
};

/** The fields of a prepared request that are copied back as they are. */
const copiedFields = [
  'outcome',
  'maySendClientBody',
  'report',
  'problem',
  'planTime',
  'trial',
  'identity',
  'recallTool',
  'notesTool',
  'wantsJson',
  'media',
  'room',
  'prompt',
] as const satisfies readonly (keyof PreparedRequest)[];

type CopiedField = (typeof copiedFields)[number];

/** The other fields, which the main thread makes by itself. All must be named, so that a new field cannot be forgotten. */
export type RemadeFields = Required<Omit<PreparedRequest, CopiedField>>;

/** The parts of a prepared request that can be copied back. The rest stays in the thread and is requested with `handle`. */
export type ThreadPrepared = {
  readonly handle: number;
  readonly copied: Pick<PreparedRequest, CopiedField>;
  /** The body to send; undefined for the client's own body. */
  readonly body: Uint8Array | undefined;
  readonly isCounted: boolean;
  readonly searched: readonly string[];
  /** The strategies of the fold that was held back. */
  readonly heldBack: string | undefined;
  readonly summary:
    | (Pick<SummaryJob, 'writes' | 'key' | 'tokens'> & { readonly earlier: ReadonlySet<string> })
    | undefined;
};

/** Functions of the main thread that this thread calls. */
export type ParentFunctions = Pick<
  Store,
  'getMany' | 'getFirst' | 'putMany' | 'putUnless' | 'touch' | 'delete'
> &
  LearnedFunctions & {
    /** Writes the summary that was started under this number. */
    summarize(
      number: number,
      request: Omit<SummaryRequest, 'count'> & { readonly count: undefined },
    ): Promise<string | undefined>;
    /** Returns the vocabulary of an encoding, in memory that both threads share. */
    vocabulary: typeof loadVocabulary;
  };

/** Functions of this thread that the main thread calls. */
export type ThreadFunctions = ReturnType<typeof openThread>;

/** Keys that are looked up with one call, so that a call does not occupy the main thread for long. */
const maxKeys = 500;

const port = parentPort!;
const { remote: parent }: Calls<ParentFunctions> = openCalls(
  {
    post: (message, moved) => port.postMessage(message, moved),
    listen: (listener) => void port.on('message', listener),
  },
  openThread(workerData as ThreadData),
);
provideVocabularies((encoding) => parent.vocabulary(encoding));

function openThread(data: ThreadData) {
  const { settings, secret } = data;
  const { memoryTtlMs: ttlMs, storeDeadlineMs } = settings;
  const store = storeOf(data.storeName);
  const caches = createCaches(joinBudget(data.budget, data.engine).memory);
  const engine = createDefaultEngine(
    settings,
    createEncryptedStore({ store, secret, ttlMs, storeDeadlineMs, caches }),
    { caches, learned: sharedLearned(createLearned({ ...settings, caches }), () => parent) },
  );
  const held = openFixed<number, PreparedRequest>('prepared requests', {
    unitsOf: ({ body, conversation }) => body.length + (conversation?.body.length ?? 0) + 10_000,
  });
  let handles = 0;

  return {
    /** Warms up the thread for requests to this model. */
    async warmUp(model: string): Promise<void> {
      await warmUp(model);
    },
    /** Prepares a request; undefined when the call was given up before it began. */
    async prepare(asked: ThreadRequest, state: CallState): Promise<ThreadPrepared | undefined> {
      if (!begin(state)) return undefined;
      return hold(await engine.prepare(requestOf(asked)), asked.body);
    },
    disableFolding: (asked: ThreadRequest): Promise<void> => engine.disableFolding(requestOf(asked)),
    learnFrom: (asked: ThreadRequest, reported: number): Promise<void> =>
      engine.reportPromptTokens(requestOf(asked), reported),
    async original(handle: number, id: string): Promise<Uint8Array | undefined> {
      // Sending a view would copy the whole body.
      return (await held.get(handle)?.original(id))?.slice();
    },
    /** Holds the request with the fold that was held back, too. */
    async heldBack(handle: number): Promise<ThreadPrepared | undefined> {
      const folded = await held.get(handle)?.heldBack?.prepared();
      return folded && hold(folded, noBytes);
    },
    titleOf: (handle: number, id: string) => held.get(handle)?.titleOf(id),
    detail: async (handle: number): Promise<RequestDetail | undefined> => held.get(handle)?.detail?.(),
    known: (handle: number): Promise<void> => held.get(handle)?.known ?? Promise.resolve(),
    reportPromptTokens: (handle: number, reported: number): void =>
      held.get(handle)?.reportPromptTokens(reported),
    remember: (handle: number, recall: HiddenRecall): Promise<void> => heldBy(handle).remember(recall),
    keepReply: (handle: number, knownAs: string, reply: KeptReply): Promise<void> =>
      heldBy(handle).keepReply(knownAs, reply),
    claimSummary: (handle: number, forMs: number): Promise<boolean> => summaryBy(handle).claim(forMs),
    writeSummary(handle: number, name: string, number: number): Promise<number> {
      return summaryBy(handle).write({
        name,
        // A function cannot be sent, and the main thread counts by itself.
        summarize: (request) => parent.summarize(number, { ...request, count: undefined }),
      });
    },
    release(handle: number): void {
      held.delete(handle);
    },
  };

  function hold(prepared: PreparedRequest, clientBody: Uint8Array): Promise<ThreadPrepared> {
    const handle = handles++;
    held.set(handle, prepared);
    return dataOf(handle, prepared, clientBody);
  }

  function heldBy(handle: number): PreparedRequest {
    const prepared = held.get(handle);
    if (prepared) return prepared;
    throw new LeporelloError(
      'store-failed',
      'The thread no longer holds this request: too many large requests are in progress.',
    );
  }

  function summaryBy(handle: number): SummaryJob {
    const { summary } = heldBy(handle);
    if (summary) return summary;
    throw new LeporelloError('summary-failed', 'This request needs no summary.');
  }
}

const noBytes = new Uint8Array();

function requestOf({ format, route, endsAt, ...request }: ThreadRequest): EngineRequest {
  const codec = codecOf(format, route);
  if (endsAt === undefined) return { ...request, codec };
  return { ...request, codec, leftMs: () => endsAt - performance.timeOrigin - performance.now() };
}

async function dataOf(
  handle: number,
  prepared: PreparedRequest,
  clientBody: Uint8Array,
): Promise<ThreadPrepared> {
  const { body, summary, counter } = prepared;
  // The thread keeps its body, so a copy is moved to the main thread.
  const changed = body === clientBody ? undefined : await copyBody(body);
  const copied = Object.fromEntries(copiedFields.map((name) => [name, prepared[name]]));
  const data: ThreadPrepared = {
    handle,
    copied: copied as ThreadPrepared['copied'],
    body: changed,
    isCounted: counter !== undefined,
    searched: prepared.searched(),
    heldBack: prepared.heldBack?.strategies,
    summary: summary && {
      writes: summary.writes,
      key: summary.key,
      earlier: summary.earlier(),
      tokens: summary.tokens,
    },
  };
  return changed ? moving(data, changed) : data;
}

function storeOf(name: string): Store {
  return {
    name,
    async get(key) {
      return (await parent.getMany([key]))[0];
    },
    async getMany(keys) {
      const found = await Promise.all(piecesOf(keys).map((piece) => parent.getMany(piece)));
      return found.flat();
    },
    async getFirst(keys) {
      for (const [number, piece] of piecesOf(keys).entries()) {
        const found = await parent.getFirst(piece);
        if (found) return { ...found, at: found.at + number * maxKeys };
      }
      return undefined;
    },
    putMany: (entries) => parent.putMany(entries),
    putUnless: (guards, entries) => parent.putUnless(guards, entries),
    async touch(keys, expiresAt) {
      for (const piece of piecesOf(keys)) await parent.touch(piece, expiresAt);
    },
    delete: (keys) => parent.delete(keys),
    // The main thread closes the store.
    close: () => Promise.resolve(),
  };
}

function piecesOf(keys: readonly string[]): readonly (readonly string[])[] {
  const pieces: (readonly string[])[] = [];
  for (let at = 0; at < keys.length; at += maxKeys) pieces.push(keys.slice(at, at + maxKeys));
  return pieces;
}
