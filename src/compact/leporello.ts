/** Leporello in process: fold a request body before sending it, answer a recall, bring an original back. */
import type { Codec } from '../codecs/codec.ts';
import { inMemoryStore } from '../memory/in-memory.ts';
import type { Store } from '../memory/store.ts';
import { createVault } from '../memory/vault.ts';
import { answerRecall } from './answer-recall.ts';
import { createDefaultEngine, type FoldSettings } from './default-engine.ts';
import type { Prepared } from './prepared.ts';

export type LeporelloOptions = FoldSettings & {
  /** Where originals and folds are kept. Default: in this process, at most 128 MiB. */
  readonly store?: Store;
  /** At least 32 bytes; what ids and encryption come from. Needed to read a store again after a restart. Default: random. */
  readonly secret?: Uint8Array;
};

export interface Leporello {
  /**
   * The body as it should be sent. Never rejects: what goes wrong is the outcome `failed`, with the body as it came. `tenant` names whose
   * conversation it is (a-z, 0-9, -); memories of one tenant are never read for another.
   */
  prepare(request: {
    readonly codec: Codec;
    readonly body: Uint8Array;
    readonly tenant?: string;
  }): Promise<Prepared>;
  /** The text that answers a call of `prepared.recallTool`, at most `maxTokens` (default 8,000) of it, whatever the model sent. */
  recall(prepared: Prepared, argumentsJson: string, maxTokens?: number): Promise<string>;
  /** The exact JSON bytes behind an id; undefined when there are none for this tenant. Rejects with `store-failed`. */
  original(id: string, tenant?: string): Promise<Uint8Array | undefined>;
}

/**
 * Throws `bad-config` for options out of range.
 * @example
 * const leporello = createLeporello();
 * const prepared = await leporello.prepare({ codec, body }); // of leporello/codecs/...;
 * await fetch(url, { method: 'POST', headers, body: prepared.body });
 */
export function createLeporello(options: LeporelloOptions = {}): Leporello {
  const { store = inMemoryStore(), secret = crypto.getRandomValues(new Uint8Array(32)) } = options;
  const vault = createVault({ store, secret, ttlMs: options.memoryTtlMs });
  const engine = createDefaultEngine(options, vault);
  return {
    prepare: ({ codec, body, tenant = 'local' }) => engine.prepare({ codec, body, tenant }),
    recall: async (prepared, argumentsJson, maxTokens = 8_000) =>
      (await answerRecall(prepared, argumentsJson, maxTokens)).text,
    async original(id, tenant = 'local') {
      const found = await vault.recall(tenant, id);
      return found.status === 'found' ? found.original : undefined;
    },
  };
}
