/** The engine itself as a policy: as it is made for every user, over a store of its own for each conversation. */
import { createDefaultEngine, type FoldSettings, type OtherParts } from '../engine/default-engine.ts';
import { inMemoryStore } from '../store/in-memory.ts';
import { createEncryptedStore } from '../store/encrypted-store.ts';
import type { TokenCounter } from '../tokens/token-counter.ts';
import type { Policy } from './policy.ts';

export type EnginePolicyOptions = {
  readonly name: string;
  readonly settings: FoldSettings;
  /** Tokens; whatever the body says of its model. */
  readonly window: number;
  readonly counter: TokenCounter;
  /** Default: the usual ones. */
  readonly strategies?: OtherParts['strategies'];
};

/** Fixed, so that a run gives the same ids, and the same bytes, as the one before. */
const secret: Uint8Array = new Uint8Array(32).fill(1);

/** Throws `bad-config` for settings out of range when a conversation is opened. */
export function enginePolicy(options: EnginePolicyOptions): Policy {
  const { name, settings, window, counter, strategies } = options;
  const models = { ...settings.models, '*': { window, tokenizer: counter } };
  return {
    name,
    hasMemory: true,
    open(codec) {
      const encryptedStore = createEncryptedStore({ store: inMemoryStore(), secret });
      let now = 0;
      const parts = { clock: () => now, ...(strategies && { strategies }) };
      const engine = createDefaultEngine({ cacheMarks: false, ...settings, models }, encryptedStore, parts);
      return {
        async send({ conversation, at }) {
          now = at;
          const prepared = await engine.prepare({ codec, body: conversation.body, tenant: 'replay' });
          return { body: prepared.body, prepared };
        },
      };
    },
  };
}
