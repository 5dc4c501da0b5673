/** Writes the pages of recalls and originals: what the model asked for and got, and everything that was folded, to search, read and forget. */
import { count, number } from '../receipts/detail.ts';
import { type PageContent, actionButton, pageRoot, tableOf } from './frame.ts';
import { type Html, html, timeTag } from './html.ts';
import { sessionLink } from './overview.ts';

/** One recall of the model. */
export type RecallEntry = {
  readonly at: number;
  /** Id of the request's receipt. */
  readonly receipt: string;
  readonly session: string | undefined;
  readonly asked: string;
  readonly found: boolean;
  readonly tokens: number;
};

export type RecallLog = {
  /** The newest first. */
  readonly recalls: readonly RecallEntry[];
  readonly onlyMisses: boolean;
  /** Originals that were folded in the receipts that were read, and how many of them were recalled by their id. */
  readonly originals: number;
  readonly recalled: number;
};

export function recallsPage({ recalls, onlyMisses, originals, recalled }: RecallLog): PageContent {
  const misses = recalls.filter(({ found }) => !found);
  const rows = (onlyMisses ? misses : recalls).map(recallRow);
  const under = `${pageRoot}recalls`;
  const share = originals === 0 ? '' : ` (${Math.round((recalled / originals) * 100)} %)`;
  return {
    title: 'Recalls',
    under,
    body: html`<h1>Recalls</h1>
<p class="lead">${count(recalls.length, 'recall')} in the newest requests, ${number(misses.length)} of them found nothing. Originals that were folded: ${number(originals)}; recalled by their id: ${number(recalled)}${share}. A high share means that folds come too early.</p>
<p><a class="button" href="${onlyMisses ? under : `${under}?misses=1`}">${onlyMisses ? 'Show all recalls' : 'Show only misses'}</a></p>
${rows.length === 0 ? html`<p class="empty">${onlyMisses ? 'Every recall found something.' : 'The model has recalled nothing yet.'}</p>` : tableOf('recalls', ['Time', 'Session', 'What the model asked for', 'Result', { numeric: 'Tokens' }], rows)}`,
  };
}

function recallRow({ at, receipt, session, asked, found, tokens }: RecallEntry): Html {
  return html`<tr class="${found ? '' : 'warning'}"><td data-label="Time">${timeTag(at)}</td><td data-label="Session">${sessionLink(session)}</td><td data-label="Asked"><a href="${pageRoot}requests/${receipt}"><code>${asked}</code></a></td><td data-label="Result">${found ? 'found' : html`<strong class="alert">nothing found</strong>`}</td><td data-label="Tokens" class="n">${number(tokens)}</td></tr>`;
}

/** One original in a list. */
export type OriginalEntry = {
  readonly id: string;
  readonly title: string;
  readonly tokens: number;
  readonly at: number;
  /** Id of the receipt of the request that folded it. */
  readonly receipt: string;
  readonly recalls: number;
  /** The passage that a search found. */
  readonly passage?: string;
};

export type OriginalList = {
  readonly query: string;
  /** The newest first. */
  readonly originals: readonly OriginalEntry[];
  /** The number of originals that were searched or could be listed. */
  readonly total: number;
};

const originalsPath = `${pageRoot}originals`;

export function originalsPage({ query, originals, total }: OriginalList): PageContent {
  const rows = originals.map(
    ({ id, title, tokens, at, receipt, recalls, passage }) =>
      html`<tr><td data-label="Original"><a href="${originalsPath}/${id}">${title}</a>${passage !== undefined && html`<p class="passage">${passage}</p>`}</td><td data-label="Folded"><a href="${pageRoot}requests/${receipt}">${timeTag(at)}</a></td><td data-label="Tokens" class="n">${number(tokens)}</td><td data-label="Recalled" class="n">${number(recalls)}</td><td data-label="Id"><code>${id}</code></td></tr>`,
  );
  const found =
    query === ''
      ? `${count(total, 'original')} in the newest requests.`
      : `“${query}” is in ${number(originals.length)} of ${count(total, 'original')}.`;
  return {
    title: 'Originals',
    under: originalsPath,
    body: html`<h1>Originals</h1><p class="lead">Everything that was folded or shortened, exactly as it came.</p>
<form method="get" action="${originalsPath}" role="search" class="search"><label for="query">Search in them</label><input id="query" name="query" type="search" value="${query}" autocomplete="off"><button>Search</button></form>
<p role="status">${found}</p>
${rows.length > 0 && tableOf('originals', ['Original', 'Folded', { numeric: 'Tokens' }, { numeric: 'Recalled' }, 'Id'], rows)}`,
  };
}

export type OriginalView = { readonly id: string; readonly text: string; readonly bytes: number };

export function originalPage({ id, text, bytes }: OriginalView): PageContent {
  return {
    title: `Original ${id}`,
    under: originalsPath,
    body: html`<p class="crumb"><a href="${originalsPath}">Originals</a></p><h1>Original <code>${id}</code></h1>
<p class="lead">${count(bytes, 'byte')}, kept for 30 days after its last use unless you set another time.</p>
<div class="actions"><a class="button" href="${pageRoot}memory/${id}" download="${id}.json">Download the exact bytes</a>
<details class="confirm"><summary>Forget it …</summary><p>This deletes the original from the store. Its stub stays in the conversation, and the model can read it only while the client still sends it.</p>${actionButton('forget', { id }, 'Forget this original', 'danger')}</details></div>
<pre tabindex="0" aria-label="Text of the original">${text}</pre>`,
  };
}
