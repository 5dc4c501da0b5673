/** An engine over an in-memory store for tests, with every part real but for the window, which the test chooses. */
import { createEngine, type Engine } from '../compact/engine.ts';
import type { EngineOptions } from '../compact/options.ts';
import { sha256 } from '../memory/digest.ts';
import { inMemoryStore } from '../memory/in-memory.ts';
import { createGhosts } from '../memory/ghosts.ts';
import { createKeptReplies } from '../memory/kept-replies.ts';
import { createLedger } from '../memory/ledger.ts';
import type { Store } from '../memory/store.ts';
import { createVault, type Vault } from '../memory/vault.ts';
import { defaultStrategies } from '../strategies/default-strategies.ts';
import { loadTokenCounter } from '../tokens/load-counter.ts';
import { defaultTriggers, type TriggerOptions } from '../triggers/default-triggers.ts';

const testSecret: Uint8Array = new Uint8Array(32).fill(7);

export type TestEngine = { readonly engine: Engine; readonly vault: Vault };

export function testEngine(
  options: Partial<EngineOptions> & {
    /** Tokens. */
    readonly window?: number;
    readonly store?: Store;
    readonly triggerOptions?: TriggerOptions;
  } = {},
): TestEngine {
  const { window = 128_000, store = inMemoryStore(), triggerOptions, ...rest } = options;
  const vault = createVault({ store, secret: testSecret, storeDeadlineMs: 60_000 });
  const engine = createEngine({
    vault,
    ledger: createLedger({ vault }),
    ghosts: createGhosts({ vault }),
    keptReplies: createKeptReplies({ vault }),
    digest: sha256,
    triggers: defaultTriggers(triggerOptions),
    strategies: defaultStrategies,
    counterFor: (model) => loadTokenCounter(model),
    windowFor: () => Promise.resolve({ tokens: window, holdsReply: true }),
    // Most tests compare bodies, and say so when the tool is to stand in each of them.
    offerRecall: 'with-fold',
    ...rest,
  });
  return { engine, vault };
}
