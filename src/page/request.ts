/** Writes the page of one request: what happened and why, each replacement beside its original, all messages, and the costs. */
import {
  type EditDetail,
  type KeptReceipt,
  type MessageDetail,
  count,
  duration,
  number,
  otherWords,
  outcomeWords,
  requestReceipt,
  wordsOfKept,
  wordsOfTrigger,
} from '../receipts/detail.ts';
import { breakEvenText } from '../receipts/cost.ts';
import type { Receipt } from '../receipts/receipt.ts';
import { type PageContent, actionButton, messagePageOf, pageRoot, tableOf } from './frame.ts';
import { type Html, html, timeTag, usdText } from './html.ts';
import { sessionLink, warningOf } from './overview.ts';

export type RequestView = {
  readonly kept: KeptReceipt;
  /** The receipt of the fold that the request repeats. */
  readonly fold: KeptReceipt | undefined;
  /** The edit that is shown with its original, counted in the edits of `kept`, or of `fold` if `kept` has none. */
  readonly shown: number;
  /** The original of that edit. */
  readonly original: OriginalText;
  /** How often each original was recalled, by id. */
  readonly recalls: ReadonlyMap<string, number>;
  readonly pinnedTools: readonly string[];
  readonly isUndone: boolean;
};

/** The text of an original; `total` counts its characters. Undefined text: it is no longer stored. */
export type OriginalText = { readonly text: string | undefined; readonly total: number };

/** The most rows of messages that are shown. */
const maxShownRows = 400;

export function requestPage(view: RequestView): PageContent {
  const { kept, fold } = view;
  const receipt = requestReceipt(kept);
  if (!receipt)
    return messagePageOf(
      'No request of a client',
      `Leporello sent this request itself: ${otherWords(kept)}.`,
    );
  const folded = kept.detail && kept.detail.edits.length > 0 ? kept : fold;
  const warning = warningOf(receipt);
  return {
    title: `Request ${kept.id.slice(0, 8)}`,
    under: pageRoot,
    body: html`<p class="crumb"><a href="${pageRoot}">Requests</a> / session ${sessionLink(receipt.session)}</p>
<h1>Request at ${timeTag(receipt.at)}</h1>
<p class="lead">${outcomeWords(receipt, receipt.outcome).replace(/\.$/, '')}.${warning !== undefined && html` <strong class="alert">${warning}${receipt.problem !== undefined && `: ${receipt.problem}`}</strong>`}</p>
${kept.detail?.trigger && html`<p class="why"><strong>Why it was folded.</strong> ${wordsOfTrigger(kept.detail.trigger, receipt)}</p>`}
${fold && folded === fold && html`<p class="why"><strong>Repeated.</strong> This request repeats the fold of <a href="${pageRoot}requests/${fold.id}">an earlier request</a>, ${duration(receipt.at - fold.receipt.at)} before, byte for byte: that keeps the provider's cache valid. The replacements below are those of that fold.</p>`}
${factsOf(receipt)}
${folded?.detail && folded.detail.edits.length > 0 ? foldView(view, folded, folded.detail.edits) : html`<p class="note">No text was replaced for the first time in this request.</p>`}
${conversationActions(view)}
${folded?.detail && messagesOf(folded.detail.messages, folded.detail.messageCount, folded === fold)}
${reportOf(folded ?? kept, receipt)}`,
  };
}

function factsOf(receipt: Receipt): Html {
  const { tokensBefore, tokensAfter, window, usage, money, ms, model, path, steps, recalls } = receipt;
  const facts: readonly (readonly [string, string])[] = [
    ['Model', model ?? 'unknown'],
    ['Path', path],
    [
      'Tokens',
      tokensBefore === undefined || tokensAfter === undefined
        ? 'not counted'
        : `${number(tokensBefore)} came, ${number(tokensAfter)} were sent${window === undefined ? '' : ` (window ${number(window)})`}`,
    ],
    ...(usage
      ? [
          [
            'Billed',
            `${count(usage.input, 'input token')}, ${number(usage.cacheRead)} of them from the cache; ${number(usage.output)} output`,
          ] as const,
        ]
      : []),
    ...(money
      ? [
          [
            'Cost',
            `paid ${usdText(money.paid.total)}; estimate without Leporello ${usdText(money.untouched.total)}; net ${usdText(money.net)}${breakEvenText(money)}; the fold ${usdText(money.fold)}, recalls ${usdText(money.recalls)}`,
          ] as const,
        ]
      : []),
    ['Time added', `${ms.prepare.toFixed(1)} ms of ${duration(ms.total)}`],
    ...(steps.length > 0
      ? [
          [
            'Strategies',
            steps
              .map(
                ({ strategy, edits, tokensSaved, refused }) =>
                  `${strategy}: ${count(edits, 'edit')}, ${count(tokensSaved, 'token')}${refused === undefined ? '' : ` (refused: ${refused})`}`,
              )
              .join('; '),
          ] as const,
        ]
      : []),
    ...(recalls.length > 0
      ? [
          [
            'Recalls',
            `${recalls.length}, ${recalls.filter(({ found }) => found).length} of them found something`,
          ] as const,
        ]
      : []),
  ];
  return html`<dl class="facts">${facts.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

function foldView(
  { kept, shown, original, recalls, pinnedTools }: RequestView,
  folded: KeptReceipt,
  edits: readonly EditDetail[],
): Html {
  const edit = edits[Math.min(shown, edits.length - 1)]!;
  const base = `${pageRoot}requests/${kept.id}`;
  const links = edits.map(
    (one, at) =>
      html`<li><a href="${base}?edit=${at}#fold" ${one === edit ? html`aria-current="true"` : ''}><span>${one.title}</span><span class="dim">message ${one.message} · ${number(one.before)} → ${number(one.after)}</span></a></li>`,
  );
  const times = edit.memory === undefined ? 0 : (recalls.get(edit.memory) ?? 0);
  const recalled =
    times === 0
      ? 'The model has not recalled it.'
      : `The model recalled it ${times === 1 ? 'once' : count(times, 'time')}.`;
  const { tool } = edit;
  const place = { receipt: kept.id, edit: String(edits.indexOf(edit)) };
  const pin =
    tool === undefined
      ? undefined
      : pinnedTools.includes(tool)
        ? actionButton('unpin', { tool, ...place }, `Unpin the tool ${tool}`)
        : actionButton('pin', { tool, ...place }, `Pin this tool (${tool})`);
  return html`<section id="fold" aria-labelledby="foldhead"><h2 id="foldhead">What was replaced</h2>
<div class="split"><nav aria-label="Replacements"><ol>${links}</ol></nav>
<div class="pair"><p class="why">${reasonOf(edit, folded)} ${recalled}</p>
<div class="sides"><div><h3>Original${edit.memory !== undefined && html` <a class="dim" href="${pageRoot}originals/${edit.memory}">${edit.memory}</a>`}</h3>${originalBox(edit, original)}</div>
<div><h3>In its place</h3><pre tabindex="0" aria-label="In its place">${edit.stub === '' ? 'nothing: it was removed' : edit.stub}</pre></div></div>
<div class="actions">${pin}</div></div></div></section>`;
}

function reasonOf(edit: EditDetail, { detail }: KeptReceipt): string {
  const { title, message, messages, before, after, requests, by } = edit;
  const where =
    messages > 1 ? `${count(messages, 'message')} from message ${message} on` : `message ${message}`;
  const size = `${count(before, 'token')} became ${number(after)}`;
  if (by === 'shrink')
    return `Shortened when it arrived: ${title} (${where}). It was never sent in full, so the cache stayed valid: ${size}.`;
  const age = requests === 0 ? 'this was new' : `this had been sent with ${count(requests, 'request')}`;
  const trigger =
    detail?.trigger === undefined
      ? ''
      : ' The strategies take the least harmful content first, and the oldest of it.';
  return `Folded: ${title} (${where}). ${size}, and ${age}.${trigger}`;
}

function originalBox(edit: EditDetail, { text, total }: OriginalText): Html {
  if (edit.memory === undefined)
    return html`<p class="note">Nothing was left out: the text on the right says all of it.</p>`;
  if (text === undefined)
    return html`<p class="note">The original is no longer stored: it has expired, or it was forgotten.</p>`;
  const more = total > text.length;
  return html`<pre tabindex="0" aria-label="Original">${text}</pre>${more && html`<p class="note">The first ${number(text.length)} of ${count(total, 'character')}. <a href="${pageRoot}originals/${edit.memory}">All of it</a></p>`}`;
}

function conversationActions({ kept, isUndone }: RequestView): Html {
  if (kept.conversation === undefined) return html``;
  return html`<section aria-labelledby="decide"><h2 id="decide">This conversation</h2>
<p>${isUndone ? 'Its folds are undone: it is sent as its client sends it, and folded only if it would not fit the window otherwise.' : 'Undo sends this conversation without its folds from the next request on. The provider then reads the whole prompt anew once. It is folded again only if it would not fit the window. The same holds for all your conversations that begin with the same message.'}</p>
<div class="actions">${isUndone ? actionButton('redo', { receipt: kept.id }, 'Fold this conversation again') : actionButton('undo', { receipt: kept.id }, 'Undo for this conversation')}</div></section>`;
}

function messagesOf(messages: readonly MessageDetail[], total: number, isRepeated: boolean): Html {
  if (messages.length === 0) return html``;
  const shown = messages.slice(-maxShownRows);
  const maxBefore = Math.max(...shown.map(({ before }) => before), 1);
  const rows = shown.map(({ index, role, what, before, after, state, kept }) => {
    const note = kept === undefined ? stateWords[state] : `kept: ${wordsOfKept(kept)}`;
    return html`<tr class="${state}"><td data-label="Message" class="n">${index}</td><td data-label="What">${role}: ${what}</td><td data-label="Before → after" class="n">${number(before)} → ${number(after)}</td><td data-label="Share" class="bar"><meter min="0" max="${maxBefore}" value="${after}" aria-label="${count(after, 'token')} after"></meter></td><td data-label="Why">${note}</td></tr>`;
  });
  return html`<details><summary>${isRepeated ? 'All messages when the fold was made' : 'All messages'}, before and after (${number(shown.length)} of ${number(total)})</summary>
${tableOf('messages', [{ numeric: 'Message' }, 'What', { numeric: 'Before → after' }, 'Share', 'Why'], rows)}</details>`;
}

const stateWords: Readonly<Record<MessageDetail['state'], string>> = {
  sent: 'sent in full',
  folded: 'folded with this fold',
  replayed: 'folded earlier, repeated',
  shrunk: 'shortened on arrival',
};

/** Writes a report of the request that quotes nothing: counts, names of tools and strategies, and reasons. */
function reportOf({ detail }: KeptReceipt, receipt: Receipt): Html {
  const {
    outcome,
    trigger,
    tokensBefore,
    tokensAfter,
    window,
    steps,
    recalls,
    counter,
    model,
    unstableFrom,
    unfit,
  } = receipt;
  const report = {
    model,
    counter,
    window,
    outcome,
    trigger: detail?.trigger ?? trigger,
    tokensBefore,
    tokensAfter,
    unstableFrom,
    unfit,
    steps,
    recalls,
    messages: detail?.messageCount,
    edits: detail?.edits.map(({ by, message, messages, tool, before, after, requests }) => ({
      by,
      message,
      messages,
      tool,
      before,
      after,
      requests,
    })),
    kept: detail?.messages.flatMap(({ index, role, before, kept }) =>
      kept ? [{ index, role, before, kept }] : [],
    ),
  };
  return html`<details><summary>A report without content</summary>
<p>Counts, names of tools and reasons; nothing that was said. Paste it into an issue.</p>
<div class="actions"><button type="button" data-copy="report">Copy as a report without content</button><span role="status" class="dim" data-copied></span></div>
<pre id="report" tabindex="0" aria-label="Report without content">${JSON.stringify(report, undefined, 1)}</pre></details>`;
}
