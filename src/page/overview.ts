/** Writes the first page: the sums with their scope, the newest requests, and the sessions. Its rows are also sent to open pages. */
import type { KeptReceipt } from '../receipts/detail.ts';
import { count, isNewFold, number, otherWords, outcomeWords, requestReceipt } from '../receipts/detail.ts';
import type { Receipt } from '../receipts/receipt.ts';
import type { NamedTotals, Totals } from '../receipts/totals.ts';
import { type PageContent, type TableColumn, pageRoot, tableOf } from './frame.ts';
import { type Html, html, shortName, timeTag, usdText } from './html.ts';

export type Overview = {
  readonly totals: Totals;
  readonly sessions: readonly NamedTotals[];
  /** A page of the requests, newest first, which leaves out this many newer ones. */
  readonly receipts: readonly Pick<KeptReceipt, 'id' | 'receipt'>[];
  readonly newer: number;
  /** Tells whether there are older ones, on a page or on none. */
  readonly older: 'none' | 'listed' | 'not listed';
  /** The results of experiments, as text. */
  readonly experiments: readonly string[];
  /** When the gateway started, in milliseconds since the epoch. */
  readonly startedAt: number;
};

/** The number of sessions that are shown. */
const maxSessions = 12;

export function overviewPage(overview: Overview): PageContent {
  const { totals, sessions, receipts, newer, experiments, startedAt } = overview;
  const rows = receipts.map(requestRow);
  return {
    title: 'Requests',
    under: pageRoot,
    body: html`<h1>Requests</h1>
<section aria-labelledby="sums"><h2 id="sums">What it cost, and what it saved</h2>
<div id="totals">${totalsOf(totals)}</div>
<p class="note">Since this gateway started, ${timeTag(startedAt)}. Paid is what providers bill at list prices. The estimate says what the same requests would have cost
without Leporello: an estimate, not a bill.${receipts.some(setsCacheMarks) && ' Leporello marked prompts for the cache whose client marks none. Their estimate counts no cache, so a part of the net comes from the cache and not from folds.'}</p></section>
${experiments.length > 0 && experimentsOf(experiments)}
<section aria-labelledby="live"><div class="head"><h2 id="live">${newer === 0 ? 'Newest requests' : 'Older requests'}</h2>
${newer === 0 && html`<span class="live" id="state" role="status">not live: reload to see more</span>`}</div>
${tableOf(newer === 0 ? 'newest requests' : 'older requests', requestColumns, rows, newer === 0 ? 'requests' : undefined)}
${pagesOf(overview)}
${rows.length === 0 && newer === 0 && html`<p id="empty" class="empty">No request has come yet. <a href="${pageRoot}setup">Set up a client</a>, and its requests appear here.</p>`}</section>
${sessions.length > 0 && sessionsOf(sessions)}`,
  };
}

/** Writes the links to newer and older requests. */
function pagesOf({ receipts, newer, older }: Overview): Html | false {
  if (newer === 0 && older === 'none') return false;
  return html`<p class="line">${newer > 0 && html`<a href="${pageRoot}">Newest requests</a>`}${older === 'listed' && html`<a href="${pageRoot}?newer=${newer + receipts.length}">Older requests</a>`}${older === 'not listed' && 'Older requests of all tenants are not listed here. The page of a session has its own.'}</p>`;
}

function setsCacheMarks(one: Overview['receipts'][number]): boolean {
  return (requestReceipt(one)?.cacheMarks ?? 0) > 0;
}

function experimentsOf(experiments: readonly string[]): Html {
  return html`<section aria-labelledby="experiments"><h2 id="experiments">Measured on your own traffic</h2>
<p class="note">With a holdout, a share of the conversations is not folded, and the bills of both groups are compared. With a shadow, some folded requests are sent again, and the replies are compared. The intervals hold however often you look.</p>
${experiments.map((text) => html`<pre tabindex="0">${text}</pre>`)}</section>`;
}

/** Writes the sums. */
export function totalsOf({
  money,
  requests,
  priced,
  folds,
  recalls,
  tokensBefore,
  tokensAfter,
  measuring,
}: Totals): Html {
  const net = money?.net;
  const sign = net === undefined || net === 0 ? '' : net > 0 ? 'good' : 'bad';
  const saved =
    tokensBefore === undefined || tokensAfter === undefined || tokensBefore === 0
      ? undefined
      : Math.round((1 - tokensAfter / tokensBefore) * 100);
  return html`<dl class="sums">
${sum('Paid', usdText(money?.paid.total), `${number(priced)} of ${count(requests, 'request')} with a known price`)}
${sum('Estimate without Leporello', usdText(money?.untouched.total), 'the same requests, unfolded')}
${sum('Net', usdText(net), 'estimate minus paid', sign)}
${sum('Cost of folds and recalls', usdText(money && money.folds + money.recalls + money.summaries), `part of paid: ${count(folds, 'fold')}, ${count(recalls, 'recall')}`)}
${sum('Tokens sent', tokensAfter === undefined ? 'unknown' : number(tokensAfter), saved === undefined ? 'none counted yet' : `${Math.abs(saved)} % ${saved < 0 ? 'more' : 'fewer'} than the ${number(tokensBefore ?? 0)} that came`)}
${measuring !== undefined && sum('Cost of measuring', usdText(measuring), 'requests that were sent again: in no other sum')}
</dl>`;
}

function sum(name: string, value: string, note: string, sign = ''): Html {
  return html`<div class="sum ${sign}"><dt>${name}</dt><dd class="value">${value}</dd><dd class="about">${note}</dd></div>`;
}

/** The columns of a table of requests. */
export const requestColumns: readonly TableColumn[] = [
  'Time',
  'Model',
  'Session',
  'What happened',
  { numeric: 'Tokens came → sent' },
  { numeric: 'From cache' },
  { numeric: 'Net' },
  { numeric: 'Added' },
];

/** Writes one request as a row of the table. */
export function requestRow({ id, receipt }: Pick<KeptReceipt, 'id' | 'receipt'>): Html {
  const request = requestReceipt({ receipt });
  if (!request) return otherRow(id, receipt);
  const { at, model, session, money, ms, tokensBefore, tokensAfter } = request;
  const warning = warningOf(request);
  const words = outcomeWords(request, request.outcome);
  const tokens =
    tokensBefore === undefined || tokensAfter === undefined
      ? html`<span class="dim">not counted</span>`
      : html`${number(tokensBefore)} → ${number(tokensAfter)}`;
  const kind = warning === undefined ? (isNewFold(request) ? 'folded' : '') : 'warning';
  return html`<tr class="${kind}" data-id="${id}"><td data-label="Time">${timeTag(at)}</td><td data-label="Model">${shortName(model)}</td><td data-label="Session">${sessionLink(session)}</td><td data-label="What happened"><a href="${pageRoot}requests/${id}">${words}</a>${recallWords(request)}${warning !== undefined && html`<strong class="alert">${warning}</strong>`}</td><td data-label="Tokens came → sent" class="n">${tokens}</td><td data-label="From cache" class="n">${cacheShare(request)}</td><td data-label="Net" class="n ${money && money.net < 0 ? 'loss' : ''}">${money ? usdText(money.net) : '–'}</td><td data-label="Added" class="n">${ms.prepare.toFixed(1)} ms</td></tr>`;
}

function otherRow(id: string, receipt: KeptReceipt['receipt']): Html {
  const { at, model, session } = receipt;
  return html`<tr data-id="${id}"><td data-label="Time">${timeTag(at)}</td><td data-label="Model">${shortName(model)}</td><td data-label="Session">${sessionLink(session)}</td><td data-label="What happened">${otherWords({ receipt })}</td><td></td><td></td><td></td><td></td></tr>`;
}

export function sessionLink(session: string | undefined): Html {
  if (session === undefined) return html`<span class="dim">none</span>`;
  return html`<a href="${pageRoot}sessions/${encodeURIComponent(session.toWellFormed())}">${shortName(session)}</a>`;
}

/** Returns what is wrong with a request; undefined for a sound one. */
export function warningOf(receipt: Receipt): string | undefined {
  const { unstableFrom, outcome, upstreamStatus, problem, cutOff } = receipt;
  if (unstableFrom !== undefined) return `unstable from message ${unstableFrom}`;
  if (upstreamStatus !== undefined && upstreamStatus >= 400) return `the provider answered ${upstreamStatus}`;
  if (cutOff === 'client left') return 'the client left before the end';
  const isAnswered = upstreamStatus !== undefined && cutOff === undefined;
  if (outcome.status === 'failed') return isAnswered ? 'answered, but the fold failed' : 'failed';
  if (problem !== undefined) return isAnswered ? 'answered, but with a problem' : 'failed';
  return undefined;
}

function recallWords({ recalls }: Receipt): Html | undefined {
  if (recalls.length === 0) return undefined;
  const missed = recalls.filter(({ found }) => !found).length;
  const words = `${count(recalls.length, 'recall')}${missed > 0 ? `, ${missed} missed` : ''}`;
  return html`<span class="tag">${words}</span>`;
}

function cacheShare({ usage }: Receipt): string {
  return usage === undefined || usage.input === 0
    ? '–'
    : `${Math.round((usage.cacheRead / usage.input) * 100)} %`;
}

function sessionsOf(sessions: readonly NamedTotals[]): Html {
  const rows = sessions
    .slice(0, maxSessions)
    .map(({ name, totals: { requests, folds, recalls, money, tokensBefore, tokensAfter } }) => {
      const share =
        tokensBefore === undefined || tokensAfter === undefined || tokensBefore === 0
          ? '–'
          : `${Math.round((tokensAfter / tokensBefore) * 100)} %`;
      return html`<tr><td data-label="Session">${sessionLink(name)}</td><td data-label="Requests" class="n">${number(requests)}</td><td data-label="Folds" class="n">${number(folds)}</td><td data-label="Recalls" class="n">${number(recalls)}</td><td data-label="Sent of what came" class="n">${share}</td><td data-label="Net" class="n">${money ? usdText(money.net) : '–'}</td></tr>`;
    });
  return html`<section aria-labelledby="sessions"><h2 id="sessions">${sessions.length > maxSessions ? `The ${maxSessions} newest sessions` : 'Sessions'}</h2>
${tableOf('sessions', ['Session', { numeric: 'Requests' }, { numeric: 'Folds' }, { numeric: 'Recalls' }, { numeric: 'Sent of what came' }, { numeric: 'Net' }], rows)}</section>`;
}
