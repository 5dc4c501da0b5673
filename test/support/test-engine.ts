/** Makes an engine for tests over an in-memory store. Every part is real except the window, which the test chooses. */
import { createEngine } from '../../src/engine/prepare.ts';
import type { Engine } from '../../src/engine/types.ts';
import type { EngineOptions } from '../../src/engine/types.ts';
import { type EncryptedStore, createEncryptedStore, sha256 } from '../../src/store/encrypted-store.ts';
import { inMemoryStore } from '../../src/store/in-memory.ts';
import { createHiddenRecalls, createKeptReplies } from '../../src/store/hidden-recalls.ts';
import { createFoldStore } from '../../src/store/fold-store.ts';
import type { Store } from '../../src/store/store.ts';
import { defaultStrategies } from '../../src/strategies/default-strategies.ts';
import { loadTokenCounter } from '../../src/tokens/load-counter.ts';
import { defaultTriggers, type TriggerSettings } from '../../src/triggers/default-triggers.ts';

const testSecret: Uint8Array = new Uint8Array(32).fill(7);

export type TestEngine = { readonly engine: Engine; readonly encryptedStore: EncryptedStore };

export function testEngine(
  options: Partial<EngineOptions> & {
    /** The context window in tokens. */
    readonly window?: number;
    readonly store?: Store;
    readonly triggerOptions?: TriggerSettings;
  } = {},
): TestEngine {
  const { window = 128_000, store = inMemoryStore(), triggerOptions, ...rest } = options;
  const encryptedStore = createEncryptedStore({ store, secret: testSecret, storeDeadlineMs: 60_000 });
  const engine = createEngine({
    encryptedStore,
    foldStore: createFoldStore({ encryptedStore }),
    hiddenRecalls: createHiddenRecalls({ encryptedStore }),
    keptReplies: createKeptReplies({ encryptedStore }),
    digest: sha256,
    triggers: defaultTriggers(triggerOptions),
    strategies: defaultStrategies(),
    counterFor: (model) => loadTokenCounter(model),
    windowFor: () => Promise.resolve({ tokens: window, holdsReply: true }),
    // Most tests compare bodies, and set `always` if each of them should offer the tool.
    offerRecall: 'with-fold',
    ...rest,
  });
  return { engine, encryptedStore };
}
