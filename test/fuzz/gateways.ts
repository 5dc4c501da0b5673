/** Opens gateways within the process that fold early, each in its own way and with its own strict provider. */
import { assembleGateway, type GatewaySettings } from '../../src/gateway/app.ts';
import type { Handler } from '../../src/gateway/http/http.ts';
import { inMemoryStore } from '../../src/store/in-memory.ts';
import { createEncryptedStore, type EncryptedStore } from '../../src/store/encrypted-store.ts';
import { strictProvider, type StrictProvider } from './strict-upstream.ts';

const budget = { triggerTokens: 900, targetTokens: 400, bufferTokens: 100 };
const secret = new Uint8Array(32).fill(5);

/** Settings that fold early. `isForced`: they also fold text that cannot be recalled, because the request would not fit. */
const settings: readonly { readonly of: GatewaySettings; readonly isForced: boolean }[] = [
  { of: { triggers: { tokenBudget: budget } }, isForced: false },
  { of: { triggers: { tokenBudget: budget }, minResultBytes: 100 }, isForced: false },
  { of: { triggers: { tokenBudget: budget }, summaries: { kind: 'extractive' } }, isForced: false },
  {
    of: { triggers: { tokenBudget: budget }, subgoals: { minActions: 0, levels: 'always' } },
    isForced: false,
  },
  { of: { triggers: { messageCount: { targetMessages: 4, bufferMessages: 4 } } }, isForced: false },
  { of: { offerRecall: 'always', triggers: { tokenBudget: budget } }, isForced: false },
  { of: { offerRecall: 'never', triggers: { tokenBudget: budget } }, isForced: true },
  { of: { models: { '*': { windowTokens: 2_500 } } }, isForced: true },
];

export type Gateway = {
  readonly handler: Handler;
  readonly provider: StrictProvider;
  readonly encryptedStore: EncryptedStore;
  readonly isForced: boolean;
  readonly isLeveled: boolean;
};

/** The providers of `short` gateways refuse long requests, from which these gateways learn the window. */
export type Gateways = { readonly usual: readonly Gateway[]; readonly short: readonly Gateway[] };

export function openGateways(): Gateways {
  return {
    usual: settings.map((one) => openGateway(one)),
    short: settings.map((one) => openGateway({ ...one, isForced: true })),
  };
}

function openGateway({ of, isForced }: (typeof settings)[number]): Gateway {
  const provider = strictProvider();
  const store = inMemoryStore();
  const handler = assembleGateway(
    { urls, tenant: 'fuzz', prepareDeadlineMs: 60_000, ...of },
    { store, secret, upstream: provider.upstream, log: { info: () => undefined, warn: () => undefined } },
  );
  const isLeveled = of.subgoals !== undefined || of.summaries !== undefined;
  return { handler, provider, encryptedStore: createEncryptedStore({ store, secret }), isForced, isLeveled };
}

const urls = { openai: 'http://p', anthropic: 'http://p', gemini: 'http://p' };
