/**
 * Measures what the page costs the requests: the latency and the CPU time of requests through a gateway that keeps receipts and has open
 * pages, relative to one without, and when the page is first painted. Run `node bench/page.ts`; it takes a minute and only prints. The first
 * paint needs Chromium, and is left out without it.
 *
 * Traps: (1) The gateways take turns, ten requests each and at most 50 a second, so noise of the machine hits all alike; a second gateway
 * without a page shows how much two equal ones differ. (2) The bodies have 60 kB and differ by a few bytes; nothing is folded in them, so
 * the detail of a fold is not part of the figures. (3) Receipts are written to SQLite in groups, in the same thread: their CPU time is included.
 */
import { existsSync } from 'node:fs';
import { chromium } from 'playwright-core';
import { loadInTurns, quantile } from './gateway/in-turns.ts';
import { type TargetProcess, startTarget } from './gateway/target-process.ts';
import { startUpstream } from './gateway/upstream.ts';

const openPages = 3;
const upstream = await startUpstream();
const plain = await startTarget('gateway', upstream);
const again = await startTarget('gateway', upstream);
const paged = await startTarget('gateway with page', upstream);
const targets = [plain, again, paged];

const closing = new AbortController();
const events = await Promise.all(Array.from({ length: openPages }, () => openPage(paged)));
const { uses, requests, seconds } = await loadInTurns(targets, 100);
closing.abort();

const medians = uses.map(({ latencies }) => quantile(latencies, 0.5));
const rows = ['gateway', 'the same again', `with a page, open ${openPages} times`].map((name, at) => ({
  gateway: name,
  'p50 ms': round(medians[at]!),
  'p99 ms': round(quantile(uses[at]!.latencies, 0.99)),
  'p50 ratio': round(medians[at]! / medians[0]!),
  'CPU ms a request': round(uses[at]!.cpuMs),
  'RSS MB': Math.round(uses[at]!.rssMb),
}));
console.table(rows);
console.log(
  `${Math.round(requests / seconds)} requests a second through each; ${events.map((one) => one.count).join(', ')} events to the pages.`,
);
await printFirstPaint(paged);
for (const target of targets) target.kill();
process.exit();

/** Follows the stream of new requests, as an open page does, and counts its events. */
async function openPage({ origin }: TargetProcess): Promise<{ count: number }> {
  const response = await fetch(`${origin}/_leporello/live`, { signal: closing.signal });
  const counted = { count: 0 };
  void (async () => {
    for await (const chunk of response.body!)
      if (Buffer.from(chunk).includes('event: requests')) counted.count += 1;
  })().catch(() => undefined);
  return counted;
}

/** Prints the time from the navigation to the first paint, beside that of a page with one word, which the machine and the browser take. */
async function printFirstPaint({ origin }: TargetProcess): Promise<void> {
  const executablePath = '/usr/bin/chromium';
  if (!existsSync(executablePath)) {
    console.log('First paint: not measured, Chromium is not installed.');
    return;
  }
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] });
  const paints: Record<string, number[]> = {};
  for (let turn = -1; turn < 10; turn++) {
    for (const url of ['data:text/html,Hello', `${origin}/_leporello/`]) {
      const page = await browser.newPage();
      await page.goto(url);
      const paint = await page.evaluate(
        'new Promise((resolve) => new PerformanceObserver((list) => resolve(list.getEntries()[0].startTime)).observe({ type: "paint", buffered: true }))',
      );
      if (turn >= 0) (paints[url] ??= []).push(Number(paint));
      await page.close();
    }
  }
  await browser.close();
  const [least, own] = Object.values(paints).map((list) => round(quantile(list, 0.5)));
  const answers: number[] = [];
  for (let turn = 0; turn < 20; turn++) {
    const asked = performance.now();
    await (await fetch(`${origin}/_leporello/`)).text();
    answers.push(performance.now() - asked);
  }
  console.log(
    `First paint with 50 requests in the table: ${own} ms; of a page with one word: ${least} ms. The gateway answers with the page in ${round(quantile(answers, 0.5))} ms. Medians.`,
  );
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
