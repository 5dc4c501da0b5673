/** Plays the long loop against the scripted provider with an adapter, and checks what must be true of a run through any adapter. */
import { describe, expect, it } from 'vitest';
import type { AdapterOptions } from '../../../src/adapters/ai-sdk.ts';
import { createLeporelloFetch, type Receipt } from '../../../src/adapters/fetch.ts';
import { createLeporello, type FoldReport, inMemoryStore, type Leporello } from '../../../src/index.ts';
import { startFakeProvider } from '../../support/fake-provider/fake-provider.ts';
import {
  changedBeginnings,
  contentOf,
  firstDifference,
  model,
  type ModelOptions,
  paths,
  requestsOfRun,
  searching,
  settings,
} from './long-loop.ts';

type Fetch = typeof globalThis.fetch;

/** Makes something of an SDK that asks the provider at a URL, by this fetch if there is one. */
export type AtUrl<Client> = (url: string, fetch?: Fetch) => Client;

/** How a run folds: by the gateway's fetch, or by the adapter. */
export type Folding =
  | { readonly fetch: Fetch }
  | {
      readonly fetch?: undefined;
      readonly leporello: Leporello;
      readonly options?: AdapterOptions;
    };

/** How the program asks, and what the model and the provider do. */
export type Way = ModelOptions & {
  readonly streaming: boolean;
  readonly thinks: boolean;
  /** Set if the provider keeps no replies, so that requests have all that they continue. */
  readonly isStateless?: boolean;
};

/** The ways in which each adapter plays the loop. */
export const ways: readonly (readonly [string, Way])[] = [
  ['plain', { streaming: false, thinks: false }],
  ['streamed', { streaming: true, thinks: false }],
  ['plain, with a model that reasons', { streaming: false, thinks: true }],
  ['streamed, with a model that reasons', { streaming: true, thinks: true }],
];

/** Chat Completions has no reasoning, and no blocks for tools that the provider runs. */
export const plainFormat = 'chat completions';

export type Played = {
  /** The paths that the program read. */
  readonly toolsRun: readonly string[];
  /** The bodies that the provider got. */
  readonly sent: readonly string[];
};

/** An adapter, tested with the real packages of its framework. */
export type TestedAdapter<Seen> = {
  /** The function that adds Leporello. The matrix of clients has a row for it and each format. */
  readonly name: string;
  /** The formats of the providers that the framework is used with. */
  readonly formats: readonly string[];
  /** Formats whose streams the framework does not keep whole. The gateway has the rest in its record of a recall. */
  readonly losesInStreams?: readonly string[];
  /** Set if the framework could not be installed. */
  readonly isSkipped?: boolean;
  /** Plays the conversation. Returns what the program saw. */
  readonly play: (format: string, way: Way, folding: Folding) => Promise<Seen & Played>;
  /** Fails unless the program has the whole conversation. Returns everything in which it must not see folds and recalls. */
  readonly check: (run: Seen & Played, format: string, way: Way) => readonly unknown[];
};

/** Windows in which the gateway and the adapter are compared, in tokens. */
const windows = Array.from({ length: 10 }, (_, at) => 28_000 + 1_000 * at);

export function describeAdapter<Seen>({
  name,
  formats,
  play,
  check,
  losesInStreams = [],
  isSkipped = false,
}: TestedAdapter<Seen>): void {
  describe.skipIf(isSkipped).each(formats)(`${name} over %s`, (format) => {
    it.each(ways)('runs 60 steps through folds and hidden recalls, %s', async (_name, way) => {
      const reports: FoldReport[] = [];
      const options: AdapterOptions = { onPrepared: ({ report }) => void reports.push(report) };
      const folding = { leporello: createLeporello(settings), options };
      const run = await play(format, { ...way, searches: searching }, folding);
      expectFoldedRun(run, reports, check(run, format, way));
    });

    it('sends the same from a second instance on the same store', async () => {
      const store = inMemoryStore();
      const sent = async () => {
        const leporello = createLeporello({ ...settings, store });
        return (await play(format, { streaming: false, thinks: false }, { leporello })).sent;
      };
      expect(firstDifference(await sent(), await sent())).toBeUndefined();
    });

    it.each(windows)(
      'is sent and counted as by the gateway, in a window of %i tokens',
      async (windowTokens) => {
        const folding = { ...settings, models: { '*': { windowTokens } } };
        const way = {
          streaming: windowTokens % 2_000 === 0 && !losesInStreams.includes(format),
          thinks: format !== plainFormat,
          searches: searching,
          isStateless: true,
        };
        const [byGateway, byAdapter]: [unknown[], unknown[]] = [[], []];
        const fetch = createLeporelloFetch({
          ...folding,
          cacheMarks: false,
          prepareDeadlineMs: 600_000,
          onReceipt: (receipt) => void byGateway.push((receipt as Receipt).tokensAfter),
        });
        const gateway = await play(format, way, { fetch });
        const adapter = await play(format, way, {
          leporello: createLeporello(folding),
          options: { onPrepared: ({ report }) => void byAdapter.push(report.tokensAfter) },
        });
        expect(firstDifference(adapter.sent, gateway.sent)).toBeUndefined();
        // Replies with a recall have several requests, of which only the first is reported.
        expect([byAdapter.length, byAdapter]).toEqual([requestsOfRun - 2, byGateway]);
      },
    );
  });
}

/**
 * Starts a provider and runs a program with its URL and the function of the tool. Returns what the program saw, the paths that it read, and the
 * bodies that the provider got.
 */
export async function playLoop<Seen>(
  options: ModelOptions,
  run: (url: string, read: (args: { readonly path: string }) => string) => Promise<Seen>,
): Promise<Seen & Played> {
  const provider = await startFakeProvider({ script: model(options) });
  try {
    const toolsRun: string[] = [];
    const seen = await run(provider.url, ({ path }) => {
      toolsRun.push(path);
      return contentOf(path);
    });
    const sent = provider.requests.map(({ body }) => new TextDecoder().decode(body));
    return { ...seen, toolsRun, sent };
  } finally {
    await provider.close();
  }
}

/** Fails unless the program read every log once, saw nothing of folds and recalls, and only folds changed the beginning of what was sent. */
export function expectFoldedRun(
  { toolsRun, sent }: Played,
  reports: readonly FoldReport[],
  seenByProgram: readonly unknown[],
): void {
  expect(toolsRun).toEqual(paths);
  expect(sent.length).toBe(requestsOfRun);
  const everything = JSON.stringify(seenByProgram);
  expect(['read_memory', 'mem_', '[Folded'].filter((text) => everything.includes(text))).toEqual([]);
  // The untouched context overflows.
  expect(reports.at(-1)!.tokensBefore).toBeGreaterThan(32_000);
  expect(Math.max(...reports.map(({ tokensAfter }) => tokensAfter!))).toBeLessThan(32_000);
  const folds = reports.filter(({ trigger }) => trigger !== undefined).length;
  expect(folds).toBeGreaterThan(0);
  expect(changedBeginnings(sent)).toBe(folds);
}
