/** Implements `leporello demo`: connects a client, the gateway and a scripted model on the loopback, and prints what happens between them. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { assembleGateway } from '../../gateway/app.ts';
import { serveNode } from '../../gateway/http/node-server.ts';
import { undiciUpstream } from '../../gateway/http/undici-upstream.ts';
import { sqliteStore } from '../../store/sqlite/sqlite.ts';
import type { Receipt } from '../../receipts/receipt.ts';
import type { DemoArgs } from '../args.ts';
import { chatClient, demoScript, sampleBody, startScriptedProvider } from './model-and-client.ts';
import { closing, type DemoSum, type DemoTurn, opening, playDemo, turnText } from './play.ts';
import { storeFile } from '../open-store.ts';
import type { Terminal } from '../terminal.ts';

/** The window in tokens, small so that a short conversation fills it. */
const window = 8_000;
const fractions = { triggerShare: 0.85, targetShare: 0.6 };

/** A fixed secret, so that ids are always the same. The demo stores nothing that it must protect. */
const secret = new TextEncoder().encode('the demo keeps nothing that needs a secret');

export async function demo(args: DemoArgs, terminal: Terminal): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), 'leporello-demo-'));
  const stage = await setUp(folder);
  let stopped = false;
  const removeStopListener = terminal.onStop(() => {
    stopped = true;
  });
  try {
    const client = chatClient(stage.url);
    const startedAt = performance.now();
    const turns: DemoTurn[] = [];
    if (!args.json) await terminal.out(opening(window, fractions));
    for await (const turn of playDemo({ ...stage, sample: sampleBody, client })) {
      await terminal.out(args.json ? jsonLine(turn) : turnText(turn));
      turns.push(turn);
      if (stopped) return 130;
    }
    const seconds = (performance.now() - startedAt) / 1_000;
    const sum = sumOf(turns, await countRestored(turns, stage.original), seconds);
    await terminal.out(args.json ? `${JSON.stringify({ total: sum })}\n` : closing(sum, window));
    return 0;
  } finally {
    removeStopListener();
    await stage.tearDown();
    await rm(folder, { recursive: true, force: true });
  }
}

async function setUp(folder: string) {
  const store = await sqliteStore({ file: storeFile(folder) });
  const provider = await startScriptedProvider(demoScript(sampleBody));
  const upstream = undiciUpstream();
  const gateway = assembleGateway(
    {
      models: { [sampleBody.model]: { windowTokens: window, tokenizer: { encoding: 'o200k_base' } } },
      triggers: { windowFraction: fractions },
      urls: { openai: `${provider.url}/v1` },
      // The first request waits for the tokenizer to load, which takes long on a slow machine.
      prepareDeadlineMs: 60_000,
    },
    { store, secret, upstream, log: { info: () => undefined, warn: () => undefined } },
  );
  const server = await serveNode(gateway, { port: 0, host: '127.0.0.1' });
  const url = `http://127.0.0.1:${server.port}`;
  const ask = async (path: string): Promise<unknown> => {
    const response = await fetch(url + path, { headers: { authorization: 'Bearer demo' } });
    return response.json();
  };
  return {
    url,
    provider,
    receipt: (id: string) => waitForReceipt(() => ask(`/_leporello/receipts/${id}`)),
    original: (id: string) => ask(`/_leporello/memory/${id}`),
    async tearDown(): Promise<void> {
      await server.close(0);
      await upstream.close();
      await provider.close();
      await store.close();
    },
  };
}

/** Asks until the receipt exists: it is written when its response has ended, which the client may notice slightly earlier. */
async function waitForReceipt(ask: () => Promise<unknown>): Promise<Receipt> {
  for (let tries = 1; ; tries++) {
    const answer = (await ask()) as Receipt | { readonly error: unknown };
    if ('id' in answer) return answer;
    if (tries > 500)
      throw new Error(`The gateway wrote no receipt within 5 seconds: ${JSON.stringify(answer.error)}`);
    await pause(10);
  }
}

/** Counts the folded texts that the gateway returns exactly as the client has them. */
async function countRestored(
  turns: readonly DemoTurn[],
  originalOf: (id: string) => Promise<unknown>,
): Promise<number> {
  let count = 0;
  for (const { id, original } of turns.flatMap((turn) => turn.folded)) {
    if ((await originalOf(id)) === original) count += 1;
  }
  return count;
}

function sumOf(turns: readonly DemoTurn[], restored: number, seconds: number): DemoSum {
  const before = turns.map((turn) => turn.tokensBefore);
  // A recall needs a second request: everything that was sent before, and the answer.
  const after = turns.flatMap(({ tokensAfter, recall }) =>
    recall === undefined ? [tokensAfter] : [tokensAfter, tokensAfter + recall.tokens],
  );
  return {
    turns: turns.length,
    tokensBefore: before.reduce((sum, tokens) => sum + tokens, 0),
    tokensAfter: after.reduce((sum, tokens) => sum + tokens, 0),
    largestBefore: Math.max(...before),
    largestAfter: Math.max(...after),
    folded: turns.flatMap((turn) => turn.folded).length,
    givenBack: restored,
    seconds,
  };
}

function jsonLine({ folded, ...turn }: DemoTurn): string {
  return `${JSON.stringify({ ...turn, folded: folded.map(({ id, text }) => ({ id, stub: text })) })}\n`;
}
