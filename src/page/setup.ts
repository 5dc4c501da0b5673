/** Writes the page that says how to connect clients to this gateway, and lists what was decided on these pages. */
import { count, number } from '../receipts/detail.ts';
import { type PageContent, actionButton, pageRoot } from './frame.ts';
import { type Html, html, timeTag } from './html.ts';

export type Setup = {
  /** The gateway's URL as this reader reaches it, without a path. */
  readonly url: string;
  readonly snippets: readonly ClientSnippet[];
  readonly pinnedTools: readonly string[];
  readonly undone: readonly UndoneEntry[];
  /** The results of the checks, which are shown as soon as they are there; undefined if nothing is checked. */
  readonly findings: Promise<readonly SetupFinding[]> | undefined;
};

/** The text that connects one client: what to run or to set. */
export type ClientSnippet = { readonly name: string; readonly text: string; readonly note?: string };

/** Describes the set-up of this gateway for its pages. */
export type PageClients = {
  /** Returns how clients connect to a URL of the gateway. */
  readonly snippets: (url: string) => readonly ClientSnippet[];
  /** Checks the set-up. It may take seconds, and rejects when the checks themselves fail. */
  readonly findings?: () => Promise<readonly SetupFinding[]>;
};

/** A result of one check of the set-up, with an instruction that mends it. */
export type SetupFinding = {
  readonly level: 'ok' | 'warning' | 'failure';
  readonly says: string;
  readonly fix?: string;
};

/** A conversation whose folds were undone; `receipt` is that of one of its requests, if one is kept. */
export type UndoneEntry = { readonly at: number; readonly receipt: string | undefined };

export function setupPage({ url, snippets, pinnedTools, undone, findings }: Setup): PageContent {
  return {
    title: 'Set-up',
    under: `${pageRoot}setup`,
    body: html`<h1>Set-up</h1><p class="lead">Point a client at <code>${url}</code>. It keeps its key.</p>
<section aria-labelledby="clients"><h2 id="clients">Clients</h2>${snippets.map(snippet)}</section>
<section aria-labelledby="decided"><h2 id="decided">What was decided here</h2>
<p>Decisions apply from the next request on, and are kept in the store. Other gateways on the same store follow within seconds.</p>
<h3>Pinned tools</h3>${pinnedTools.length === 0 ? html`<p class="note">None. Open a folded request to pin the tool of a result.</p>` : html`<ul class="decisions">${pinnedTools.map((tool) => html`<li><code>${tool}</code>${actionButton('unpin', { tool }, `Unpin ${tool}`)}</li>`)}</ul>`}
<h3>Conversations without folds</h3>${undone.length === 0 ? html`<p class="note">None.</p>` : html`<ul class="decisions">${undone.map(undoneItem)}</ul>`}</section>
${findings && html`<section aria-labelledby="checks"><h2 id="checks">Checks</h2><p>As <code>leporello doctor</code> checks the set-up, seen from the gateway's process.</p>`}`,
    ...(findings && { later: findings.then(findingsList, () => noFindings) }),
  };
}

function undoneItem({ at, receipt }: UndoneEntry): Html {
  return html`<li><span>undone at ${timeTag(at)}</span>${receipt === undefined ? html`<span class="dim">no request of it is kept</span>` : html`<a href="${pageRoot}requests/${receipt}">its newest request</a>${actionButton('redo', { receipt }, 'Fold it again')}`}</li>`;
}

function snippet({ name, text, note }: ClientSnippet, at: number): Html {
  const id = `client-${at}`;
  return html`<div class="snippet"><h3>${name}</h3><div class="line"><pre id="${id}" tabindex="0" aria-label="${name}">${text}</pre><button type="button" data-copy="${id}">Copy<span class="hidden"> for ${name}</span></button><span role="status" class="dim" data-copied></span></div>${note !== undefined && html`<p class="note">${note}</p>`}</div>`;
}

/** Lists faults first, each with its fix; the checks that found none are folded away. */
function findingsList(findings: readonly SetupFinding[]): Html {
  const faults = findings.filter(({ level }) => level !== 'ok');
  const sound = findings.filter(({ level }) => level === 'ok');
  return html`${faults.length > 0 && html`<ul class="decisions">${faults.map(findingItem)}</ul>`}
<details><summary>${number(sound.length)} of ${count(findings.length, 'check')} found nothing wrong</summary><ul class="decisions">${sound.map(findingItem)}</ul></details></section>`;
}

const noFindings = html`<p class="note">The checks could not be made. Run leporello doctor in a terminal.</p></section>`;

function findingItem({ level, says, fix }: SetupFinding): Html {
  return html`<li class="finding"><span>${level !== 'ok' && html`<strong class="alert">${level}</strong> `}${says}</span>${fix !== undefined && html`<span class="dim">Fix: ${fix}</span>`}</li>`;
}
