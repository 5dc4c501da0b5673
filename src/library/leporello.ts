/** Leporello in process: fold a request body before sending it, answer a recall, bring an original back. */
import type { Codec, RecallTool } from '../codecs/codec.ts';
import { type Prepared, passThrough } from '../engine/types.ts';
import {
  type CompressedResult,
  type Flights,
  type ResultRequest,
  compressResult,
} from './compress-result.ts';
import { type FoldSettings, createDefaultEngine } from './default-engine.ts';
import { checkSettings, object, secret as secretValue, shown, thingWith } from './checks.ts';
import { foldChecks } from './settings.ts';
import { resolveRecall } from '../recall/resolve.ts';
import { recallToolFor } from '../recall/tool.ts';
import { checkedTenant, createEncryptedStore, secretFor } from '../store/encrypted-store.ts';
import { inMemoryStore } from '../store/in-memory.ts';
import type { Store } from '../store/store.ts';
import { loadTokenCounter } from '../tokens/load-counter.ts';

export type LeporelloOptions = FoldSettings & {
  /** Where originals and folds are kept. Default: in this process, at most 128 MiB. */
  readonly store?: Store;
  /** At least 32 bytes, the same with every start: ids and encryption come from it. Required beside a `store`; default without one: random. */
  readonly secret?: Uint8Array;
};

/** What a program keeps of a body that was folded, and what became of it. */
export type Compacted = Pick<Prepared, 'outcome' | 'body' | 'report'>;

export interface Leporello {
  /**
   * The body as it should be sent. What goes wrong is the outcome `failed`, with the body as it came. `tenant` names whose conversation it is
   * (1 to 64 of a-z, 0-9, -); memories of one tenant are never read for another. Rejects with `bad-config` for another label, and for
   * nothing else.
   */
  prepare(request: {
    readonly codec: Codec;
    readonly body: Uint8Array;
    readonly tenant?: string;
    /**
     * The response with which the provider refused the body of an earlier `prepare` for this request. One that is too long is folded
     * below the limit that the response names, and that limit holds for later requests to this model; refused reasoning is dropped; for
     * any other refusal the body comes back as it came.
     */
    readonly refusal?: { readonly status: number; readonly body: string };
  }): Promise<Prepared>;
  /** The text that answers a call of `prepared.recallTool`, at most `maxTokens` (default 8,000) of it, whatever the model sent. */
  recall(prepared: Prepared, argumentsJson: string, maxTokens?: number): Promise<string>;
  /**
   * For a program that keeps its own messages: the body with what is old in one summary and stubs, for its messages to be kept and gone on
   * from, in this process or another with the same store and secret. The next one takes the last summary in. A body whose tools hold
   * `recallTool` has stubs that name it. Rejects as `prepare` does.
   */
  compact(request: {
    readonly codec: Codec;
    readonly body: Uint8Array;
    readonly tenant?: string;
  }): Promise<Compacted>;
  /** The definition of `read_memory`, for the tools of a program that keeps its own messages. */
  readonly recallTool: RecallTool;
  /**
   * The text that answers a call of `recallTool` from memory, at most `maxTokens` (default 8,000) of it, whatever the model sent. Any id of
   * the tenant is answered. Rejects with `store-failed`.
   */
  readMemory(
    argumentsJson: string,
    options?: { readonly tenant?: string; readonly maxTokens?: number },
  ): Promise<string>;
  /**
   * A tool result as it should go into the messages of an agent loop that knows how many results it still expects: where it is more than its
   * part of the tokens left, and a list, its items are made smaller, least relevant first, the harder the less room there is. With a
   * `summarizer` in its words, each item once, kept by text and question. Rejects with `store-failed`.
   */
  compressResult(request: ResultRequest): Promise<CompressedResult>;
  /** The exact JSON bytes behind an id; undefined when there are none for this tenant. Rejects with `store-failed`. */
  original(id: string, tenant?: string): Promise<Uint8Array | undefined>;
}

/**
 * Throws `bad-config` for options that are unknown or not allowed, and for a store without a secret.
 * @example
 * const leporello = createLeporello();
 * const prepared = await leporello.prepare({ codec, body }); // of leporello/codecs/...;
 * await fetch(url, { method: 'POST', headers, body: prepared.body });
 */
export function createLeporello(options: LeporelloOptions = {}): Leporello {
  checkSettings(leporelloCheck, options);
  const { store = inMemoryStore({ isShared: false }) } = options;
  const secret = secretFor(options.store, options.secret);
  const { memoryTtlMs: ttlMs, storeDeadlineMs } = options;
  const encryptedStore = createEncryptedStore({ store, secret, ttlMs, storeDeadlineMs });
  const engine = createDefaultEngine(options, encryptedStore);
  const keeping = createDefaultEngine(keptSettings(options), encryptedStore, { isHistoryKept: true });
  const flights: Flights = new Map();
  const original = async (id: string, tenant: string): Promise<Uint8Array | undefined> => {
    const found = await encryptedStore.recall(checkedTenant(tenant), id);
    return found.status === 'found' ? found.original : undefined;
  };
  return {
    async prepare({ codec, body, tenant: label = 'local', refusal }) {
      const tenant = checkedTenant(label);
      if (!refusal) return engine.prepare({ codec, body, tenant });
      const overflow = codec.overflowIn(refusal.status, refusal.body);
      if (overflow) return engine.prepare({ codec, body, tenant, refusal: { reason: 'too long', overflow } });
      if (codec.refusesReasoning(refusal.status, refusal.body))
        return engine.prepare({ codec, body, tenant, refusal: { reason: 'reasoning' } });
      return passThrough(body, { status: 'untouched', reason: `the provider answered ${refusal.status}` });
    },
    recall: async (prepared, argumentsJson, maxTokens = 8_000) =>
      (await answerRecall(prepared, argumentsJson, maxTokens)).text,
    async compact({ codec, body, tenant = 'local' }) {
      const {
        outcome,
        body: folded,
        report,
      } = await keeping.prepare({ codec, body, tenant: checkedTenant(tenant) });
      return { outcome, body: folded, report };
    },
    recallTool: recallToolFor([], 'id'),
    async readMemory(argumentsJson, { tenant = 'local', maxTokens = 8_000 } = {}) {
      const counter = await loadTokenCounter(undefined);
      return resolveRecall({
        argumentsJson,
        async lookup(id) {
          const bytes = await original(id, tenant);
          return bytes && new TextDecoder().decode(bytes);
        },
        maxTokens,
        countTokens: (text) => counter.count(text),
      });
    },
    async compressResult(request) {
      const counter = await loadTokenCounter(undefined);
      const { name } = recallToolFor([]);
      const count = (text: string) => counter.count(text);
      checkedTenant(request.tenant ?? 'local');
      return compressResult(request, { encryptedStore, count, recallTool: name, flights });
    },
    original: (id, tenant = 'local') => original(id, tenant),
  };
}

const leporelloCheck = object<LeporelloOptions>({
  ...foldChecks,
  store: thingWith(
    'a store',
    'get',
    'getMany',
    'getFirst',
    'putMany',
    'putUnless',
    'touch',
    'delete',
    'close',
  ),
  secret: secretValue(
    'at least 32 bytes, such as new TextEncoder().encode(text)',
    (value) => value instanceof Uint8Array && value.length >= 32,
    (value) => (value instanceof Uint8Array ? shown(value) : `a value of the type ${typeof value}`),
  ),
});

/** What comes back as it was folded must stand by itself: no reference to a result that may go, no mark for one request's cache. */
function keptSettings(options: FoldSettings): FoldSettings {
  const { summaries, ...settings } = options;
  const maxTokens = summaries ? summaries.maxTokens : undefined;
  return {
    ...settings,
    shrinks: false,
    cacheMarks: false,
    subgoals: false,
    summaries: { kind: 'extractive', maxTokens },
  };
}

// Answers to the recall tool, from the request itself: who sees a stub may read its original.

export type RecallText = {
  /** For the model: the original, the part it asked for, or a sentence that says why not. */
  readonly text: string;
  /** Whether there was something to read: an original behind the id, or some to search. */
  readonly found: boolean;
  /** Of the text. */
  readonly tokens: number;
};

/** At most `maxTokens` of text, whatever arguments the model sent. */
export async function answerRecall(
  prepared: Prepared,
  argumentsJson: string,
  maxTokens: number,
): Promise<RecallText> {
  const count = (text: string) => prepared.counter?.count(text) ?? text.length;
  let found = false;
  const text = await resolveRecall({
    argumentsJson,
    async lookup(id) {
      const original = await (prepared.lookUpOriginal ?? prepared.original)(id);
      found ||= original !== undefined;
      return original && new TextDecoder().decode(original);
    },
    all: prepared.searched,
    maxTokens,
    countTokens: count,
  });
  return { text, found, tokens: count(text) };
}
