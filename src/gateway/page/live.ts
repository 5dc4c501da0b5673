/**
 * Streams new requests to open pages as server-sent events. Requests are collected for a moment and sent as rows that the gateway has
 * written, so a busy gateway spends little on an open page; without one, nothing is written at all.
 */
import { type WithResolvers, withResolvers } from '../../es2024.ts';
import { requestRow, totalsOf } from '../../page/overview.ts';
import type { AnyReceipt } from '../receipts/receipts.ts';
import { type GatewayResponse, jsonResponse } from '../http/http.ts';
import type { PageData, Viewer } from './data.ts';

/** Milliseconds for which requests are collected. */
const collectMs = 300;

/** Milliseconds between two signs of life: a connection that broke unnoticed is found by them. */
const aliveMs = 15_000;

/** The newest requests of one event. */
const maxAtOnce = 30;

/** The most pages of one gateway that are followed at once. */
const maxStreams = 32;

/** The number of pages that are followed, by the archive that they watch: each gateway has one. */
const followed = new WeakMap<PageData['archive'], number>();

/** Returns the stream of the requests that the reader may see. */
export function liveStream(
  { archive, totals }: Pick<PageData, 'archive' | 'totals'>,
  { tenant }: Viewer,
): GatewayResponse {
  const streams = followed.get(archive) ?? 0;
  if (streams >= maxStreams || archive.isClosed())
    return jsonResponse(503, { error: `At most ${maxStreams} pages are followed at once: close some.` });
  const encoder = new TextEncoder();
  let collected: AnyReceipt[] = [];
  const chunks: Uint8Array[] = [encoder.encode('retry: 2000\n\n')];
  let waiting: WithResolvers<IteratorResult<Uint8Array>> | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isOver = false;
  followed.set(archive, streams + 1);
  const alive = setInterval(() => push(': alive\n\n'), aliveMs).unref();
  const stop = archive.watch((owner, receipt) => {
    if (receipt === undefined) return end();
    if (tenant !== undefined && owner !== tenant) return;
    collected.push(receipt);
    if (collected.length > maxAtOnce) collected.shift();
    timer ??= setTimeout(send, collectMs).unref();
  });

  function send(): void {
    timer = undefined;
    const rows = collected
      .toReversed()
      .map((receipt) => requestRow({ id: receipt.id, receipt }).markup)
      .join('');
    collected = [];
    const data = JSON.stringify({ rows, totals: totalsOf(totals.total(tenant)).markup });
    push(`event: requests\ndata: ${data}\n\n`);
  }

  function push(text: string): void {
    if (isOver) return;
    const chunk = encoder.encode(text);
    if (waiting) {
      waiting.resolve({ done: false, value: chunk });
      waiting = undefined;
    } else if (chunks.length < maxAtOnce) chunks.push(chunk);
  }

  function end(): void {
    if (isOver) return;
    isOver = true;
    followed.set(archive, (followed.get(archive) ?? 1) - 1);
    clearTimeout(timer);
    clearInterval(alive);
    stop();
    waiting?.resolve({ done: true, value: undefined });
  }

  const body: AsyncIterable<Uint8Array> = {
    [Symbol.asyncIterator]: () => ({
      async next() {
        const chunk = chunks.shift();
        if (chunk) return { done: false, value: chunk };
        if (isOver) return { done: true, value: undefined };
        waiting = withResolvers();
        return waiting.promise;
      },
      async return() {
        end();
        return { done: true, value: undefined };
      },
    }),
  };
  return {
    status: 200,
    headers: [
      ['content-type', 'text/event-stream'],
      ['cache-control', 'no-store'],
      ['x-content-type-options', 'nosniff'],
    ],
    body,
  };
}
