/** Plays the long loop against the scripted provider, and checks what must be true of a run through any adapter. */
import { expect } from 'vitest';
import { createLeporelloFetch, type Receipt } from '../../../src/adapters/fetch.ts';
import { type FoldReport, type Leporello, createLeporello } from '../../../src/index.ts';
import { startFakeProvider } from '../../support/fake-provider/fake-provider.ts';
import {
  changedBeginnings,
  contentOf,
  firstDifference,
  model,
  type ModelOptions,
  paths,
  requestsOfRun,
  settings,
} from './long-loop.ts';

type Fetch = typeof globalThis.fetch;

/** Makes something of an SDK that asks the provider at a URL, by this fetch if there is one. */
export type AtUrl<Client> = (url: string, fetch?: Fetch) => Client;

/** The ways in which each adapter plays the loop. */
export const ways = [
  ['plain', { streaming: false, thinks: false }],
  ['streamed', { streaming: true, thinks: false }],
  ['plain, with a model that reasons', { streaming: false, thinks: true }],
  ['streamed, with a model that reasons', { streaming: true, thinks: true }],
] as const;

/**
 * Plays the loop with a model that reasons and a provider that searches, through the gateway and through an adapter, and fails unless each request has the
 * same results and the same stubs. Messages of a framework and requests of a provider differ in their spelling, so their counts are not equal;
 * `apart` is how far they may be apart. The window is one in which no fold is that near to another decision; in many others, one of the runs folds otherwise.
 */
export async function expectSameEdits(
  playWith: (how: {
    /** The gateway's, for the first run. */
    readonly fetch: Fetch | undefined;
    /** The adapter's, for the second run. */
    readonly leporello: Leporello;
    readonly onPrepared: (prepared: { readonly report: FoldReport }) => void;
  }) => Promise<Sent>,
  apart: number,
  windowTokens = 33_000,
): Promise<void> {
  const folding = { ...settings, models: { '*': { windowTokens } } };
  const [byGateway, byAdapter]: [number[], number[]] = [[], []];
  const fetch = createLeporelloFetch({
    ...folding,
    cacheMarks: false,
    prepareDeadlineMs: 600_000,
    onReceipt: (receipt) => void byGateway.push((receipt as Receipt).tokensAfter ?? 0),
  });
  const leporello = createLeporello(folding);
  const gateway = await playWith({ fetch, leporello, onPrepared: () => undefined });
  const adapter = await playWith({
    fetch: undefined,
    leporello,
    onPrepared: ({ report }) => void byAdapter.push(report.tokensAfter ?? 0),
  });
  expect(firstDifference(adapter.sent, gateway.sent)).toBeUndefined();
  const differences = byGateway.map((tokens, at) => Math.abs(tokens - byAdapter[at]!));
  expect(Math.max(...differences)).toBeLessThan(apart);
}

type Sent = { readonly toolsRun: readonly string[]; readonly sent: readonly string[] };

/**
 * Starts a provider and runs a program with its URL and the function of the tool. Returns what the program saw, the paths that it read, and the
 * bodies that the provider got.
 */
export async function playLoop<Seen>(
  options: ModelOptions,
  run: (url: string, read: (args: { readonly path: string }) => string) => Promise<Seen>,
): Promise<Seen & Sent> {
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
  { toolsRun, sent }: Sent,
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
