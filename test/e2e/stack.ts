/** Starts a scripted provider and the whole gateway with a SQLite store, in a folder that is removed when the test ends. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { assembleGateway, type GatewaySettings } from '../../src/gateway/app.ts';
import { foldThread } from '../../src/gateway/fold-thread/fold-thread.ts';
import { serveNode } from '../../src/gateway/http/node-server.ts';
import type { GatewayTracing } from '../../src/gateway/options.ts';
import type { ReceiptArchive } from '../../src/gateway/receipts/archive.ts';
import { prometheusMetrics } from '../../src/gateway/receipts/prometheus.ts';
import { undiciUpstream } from '../../src/gateway/http/undici-upstream.ts';
import { sqliteStore } from '../../src/store/sqlite/sqlite.ts';
import type { Store } from '../../src/store/store.ts';
import {
  type FakeProvider,
  type FakeProviderOptions,
  startFakeProvider,
} from '../support/fake-provider/fake-provider.ts';
import type { Script } from '../support/fake-provider/script.ts';

export type Stack = AsyncDisposable & {
  readonly provider: FakeProvider;
  /** The gateway's base URL, `http://127.0.0.1:PORT`. */
  readonly url: string;
  /** The gateway's log messages with their fields. A change of the prefix that a test expects must be taken out. */
  readonly logged: string[];
  /** Stops the gateway and starts another on the same data. */
  restart(): Promise<void>;
  /** Starts another gateway on the same data and returns its URL. It ends with the stack. */
  another(): Promise<string>;
};

/** Settings that offer the recall tool in every request, for models that recall before anything was folded. */
export const offering: GatewaySettings = { offerRecall: 'always' };

/** Settings that fold each request of more than 8,000 tokens, and nothing else. */
export const foldingEarly: GatewaySettings = {
  tenant: 'local',
  offerRecall: 'always',
  models: { '*': { windowTokens: 200_000, tokenizer: { encoding: 'o200k_base' } } },
  triggers: {
    mustFit: false,
    windowFraction: false,
    cacheRent: false,
    coldCache: false,
    tokenBudget: { triggerTokens: 8_000, targetTokens: 4_000, bufferTokens: 1 },
  },
  calibration: false,
};

export async function startStack(
  script: Script,
  settings: GatewaySettings = {},
  deps: {
    readonly store?: Store;
    readonly secret?: Uint8Array;
    readonly archive?: ReceiptArchive;
    readonly upstreamUrl?: string;
    readonly other?: FakeProviderOptions['other'];
    /** Bodies of this many bytes or more are folded in a worker thread. Default: none. */
    readonly foldThreadBytes?: number;
    readonly tracing?: GatewayTracing;
    readonly whenIdle?: () => Promise<boolean>;
  } = {},
): Promise<Stack> {
  const data = await mkdtemp(join(tmpdir(), 'leporello-e2e-'));
  const provider = await startFakeProvider({ script, ...(deps.other ? { other: deps.other } : {}) });
  const logged: string[] = [];
  const record = (fields: object, message: string) => {
    logged.push(`${message} ${JSON.stringify(fields)}`);
  };
  const additional: { close(): Promise<void> }[] = [];
  let running = await startGateway();

  async function startGateway() {
    const store = deps.store ?? (await sqliteStore({ file: join(data, 'memory.db') }));
    const upstream = undiciUpstream();
    const { foldThreadBytes: fromBytes } = deps;
    const thread = fromBytes === undefined ? undefined : foldThread({ fromBytes });
    const url = deps.upstreamUrl ?? provider.url;
    const handler = assembleGateway(
      // Everything is slow on a busy machine, so only tests of a deadline set a short one.
      {
        urls: { openai: url, anthropic: url, gemini: url },
        offerRecall: 'with-fold',
        storeDeadlineMs: 600_000,
        prepareDeadlineMs: 600_000,
        ...settings,
      },
      {
        store,
        secret: deps.secret ?? new Uint8Array(32).fill(9),
        upstream,
        log: { info: record, warn: record },
        metrics: prometheusMetrics(),
        ...(thread && { foldThread: thread }),
        ...(deps.archive && { archive: deps.archive }),
        ...(deps.tracing && { tracing: deps.tracing }),
        ...(deps.whenIdle && { whenIdle: deps.whenIdle }),
        pageClients: {
          snippets: (base) => [{ name: 'An SDK', text: `BASE_URL=${base}/v1`, note: 'Any format.' }],
          findings: async () => [
            { level: 'ok', says: 'The secret can be read.' },
            { level: 'warning', says: 'The base URL in <b>a file</b> leads nowhere.', fix: 'Remove it.' },
            { level: 'warning', says: `The catalog has no price of the model ${'w'.repeat(300)}.` },
          ],
        },
      },
    );
    await thread?.warmUp('gpt-4o');
    const server = await serveNode(handler, {
      port: 0,
      host: '127.0.0.1',
      onError: (error) => record({}, String(error)),
    });
    return {
      url: `http://127.0.0.1:${server.port}`,
      async close() {
        await deps.archive?.close();
        await server.close(1_000);
        await thread?.close();
        await upstream.close();
        await store.close();
      },
    };
  }

  return {
    provider,
    logged,
    get url() {
      return running.url;
    },
    async restart() {
      await running.close();
      running = await startGateway();
    },
    async another() {
      const gateway = await startGateway();
      additional.push(gateway);
      return gateway.url;
    },
    async [Symbol.asyncDispose]() {
      // The gateway must not break the prompt cache of any conversation in these tests.
      expect(logged.filter((line) => line.startsWith('the sent prefix changed'))).toEqual([]);
      await Promise.all([running, ...additional].map((gateway) => gateway.close()));
      await provider.close();
      await rm(data, { recursive: true });
    },
  };
}
