/** Writes the page of a session: its requests as a chart (what came, what was sent, what was cached) and as a table. */
import { type KeptReceipt, count, duration, isNewFold, number, requestReceipt } from '../receipts/detail.ts';
import type { Receipt } from '../receipts/receipt.ts';
import { type PageContent, pageRoot, tableOf } from './frame.ts';
import { type Html, html } from './html.ts';
import { requestColumns, requestRow, warningOf } from './overview.ts';

/** Milliseconds between two requests that count as a pause: most providers' caches have expired by then. */
const pauseMs = 5 * 60_000;

/** Returns the page of a session. `receipts`: those of the session, the newest first. */
export function sessionPage(name: string, receipts: readonly KeptReceipt[]): PageContent {
  const requests = receipts.flatMap((one) => requestReceipt(one) ?? []).toReversed();
  return {
    title: `Session ${name}`,
    under: pageRoot,
    body: html`<p class="crumb"><a href="${pageRoot}">Requests</a></p><h1>Session <code>${name}</code></h1>
${requests.length === 0 ? html`<p class="empty">No request of this session is kept.</p>` : chartOf(requests)}
<h2>Its requests</h2>
${tableOf('requests of the session', requestColumns, receipts.map(requestRow))}`,
  };
}

/** The chart for wide windows and the one for phones. The style shows one of them: a wide one would be scaled down there, with its text. */
const charts = [
  { name: 'wide', width: 960, height: 300 },
  { name: 'narrow', width: 360, height: 260 },
] as const;
type ChartSize = (typeof charts)[number];

const bottom = 34;
const top = 40;

type RequestPoint = {
  readonly receipt: Receipt;
  readonly x: number;
  readonly came: number;
  readonly sent: number;
  readonly cached: number;
};

function chartOf(requests: readonly Receipt[]): Html {
  const counted = requests.filter(
    ({ tokensBefore, tokensAfter }) => tokensBefore !== undefined && tokensAfter !== undefined,
  );
  if (counted.length === 0) return html`<p class="empty">No request of this session was counted.</p>`;
  return html`<figure>${charts.map((size) => drawingOf(counted, size))}
<figcaption><span class="key came">came from the client</span><span class="key sent">was sent</span><span class="key cached">of it read from the provider's cache</span><span class="key fold">fold</span><span class="key recall">recall</span><span class="key pause">pause of 5 minutes or more</span></figcaption></figure>`;
}

function drawingOf(counted: readonly Receipt[], { name, width, height }: ChartSize): Html {
  const maxTokens = Math.max(...counted.map(({ tokensBefore = 0 }) => tokensBefore), 1);
  // The labels of the axis stand left of it.
  const left = Math.max(64, 16 + 9 * number(maxTokens).length);
  const right = width - 12;
  const xOf = (at: number) => Math.round((left + ((right - left) * (at + 0.5)) / counted.length) * 10) / 10;
  const yOf = (tokens: number) =>
    Math.round((height - bottom - ((height - bottom - top) * Math.min(tokens, maxTokens)) / maxTokens) * 10) /
    10;
  const points = counted.map(
    (receipt, at): RequestPoint => ({
      receipt,
      x: xOf(at),
      came: yOf(receipt.tokensBefore ?? 0),
      sent: yOf(receipt.tokensAfter ?? 0),
      cached: yOf(receipt.rounds[0]?.cacheRead ?? receipt.usage?.cacheRead ?? 0),
    }),
  );
  const base = height - bottom;
  const area = (of: (point: RequestPoint) => number) => {
    const first = points[0]!;
    const last = points.at(-1)!;
    const line = points.map((point) => `${point.x} ${of(point)}`).join('L');
    return points.length === 1
      ? `M${first.x - 14} ${base}V${of(first)}H${first.x + 14}V${base}z`
      : `M${first.x} ${base}L${line}L${last.x} ${base}z`;
  };
  const ticks = [0, 0.5, 1].map(
    (share) =>
      html`<line class="grid" x1="${left}" x2="${right}" y1="${yOf(maxTokens * share)}" y2="${yOf(maxTokens * share)}"/><text x="${left - 8}" y="${yOf(maxTokens * share) + 4}" text-anchor="end">${number(maxTokens * share)}</text>`,
  );
  const marks = points.flatMap((point, at) => marksOf(point, points[at - 1], base));
  const last = counted.at(-1)!;
  const label = `Tokens of ${count(counted.length, 'request')}: the last one came with ${number(last.tokensBefore ?? 0)} and was sent with ${number(last.tokensAfter ?? 0)}.`;
  return html`<svg class="chart ${name}" viewBox="0 0 ${width} ${height}" role="img" aria-label="${label}">
${ticks}<path class="came" d="${area(({ came }) => came)}"/><path class="sent" d="${area(({ sent }) => sent)}"/><path class="cached" d="${area(({ cached }) => cached)}"/>${marks}
<text x="${left - 8}" y="14" text-anchor="end">tokens</text><text x="${left}" y="${height - 10}">first request</text><text x="${right}" y="${height - 10}" text-anchor="end">newest</text></svg>`;
}

function marksOf(
  { receipt, x, came }: RequestPoint,
  before: RequestPoint | undefined,
  base: number,
): readonly Html[] {
  const { recalls, at, tokensBefore = 0, tokensAfter = 0 } = receipt;
  const isFold = isNewFold(receipt);
  const paused = before ? at - before.receipt.at : 0;
  const warning = warningOf(receipt);
  const about = `${new Date(at).toISOString().slice(11, 19)} UTC: ${number(tokensBefore)} came, ${number(tokensAfter)} sent`;
  const words = [
    about,
    ...(isFold ? ['fold'] : []),
    ...(recalls.length > 0 ? [count(recalls.length, 'recall')] : []),
    ...(warning === undefined ? [] : [warning]),
  ].join(', ');
  return [
    ...(paused >= pauseMs
      ? [
          html`<line class="pause" x1="${x}" x2="${x}" y1="${top}" y2="${base}"><title>pause of ${duration(paused)}</title></line>`,
        ]
      : []),
    html`<circle class="dot ${warning === undefined ? '' : 'bad'}" cx="${x}" cy="${came}" r="3"><title>${words}</title></circle>`,
    ...(isFold ? [html`<path class="fold" d="M${x - 7} 8h14l-7 12z"><title>${words}</title></path>`] : []),
    ...(recalls.length > 0
      ? [html`<circle class="recall" cx="${x}" cy="29" r="5"><title>${words}</title></circle>`]
      : []),
  ];
}
