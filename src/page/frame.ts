/** Writes the frame of every page: head, navigation and main part. No script is inline, and one style sheet is, so a strict policy can name its digest. */
import { type Html, html } from './html.ts';

/** One page. */
export type PageContent = {
  readonly title: string;
  /** The path of the navigation entry that the page belongs to. */
  readonly under: string;
  readonly body: Html;
  /** The end of the body, which takes time. The browser shows the rest meanwhile. */
  readonly later?: Promise<Html>;
};

/** The path under which the pages are. */
export const pageRoot = '/_leporello/';

const entries: readonly (readonly [path: string, title: string])[] = [
  [pageRoot, 'Requests'],
  [`${pageRoot}recalls`, 'Recalls'],
  [`${pageRoot}originals`, 'Originals'],
  [`${pageRoot}setup`, 'Set-up'],
];

/** Returns the document up to the end of its body, and the rest. `style`: the style sheet. */
export function documentOf({ title, under, body }: PageContent, style: string): readonly [string, string] {
  const links = entries.map(
    ([path, name]) => html`<a href="${path}" ${path === under ? html`aria-current="page"` : ''}>${name}</a>`,
  );
  const { markup } = html`<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} · Leporello</title>
<link rel="icon" href="${pageRoot}icon.svg" type="image/svg+xml">
<style>${{ markup: style }}</style>
<script src="${pageRoot}page.js" defer></script>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header>
<a class="brand" href="${pageRoot}">${logo}<span>Leporello</span></a>
<nav aria-label="Pages">${links}</nav>
</header>
<main id="main" tabindex="-1">
${body}`;
  return [`<!doctype html>\n${markup}`, ending];
}

const ending = `
</main>
<footer>Only this machine or the holder of the admin token sees these pages. Content stays in the gateway's encrypted store.</footer>
</body>
</html>
`;

/** A sheet that is folded like a concertina. */
const logo = html`<svg class="logo" viewBox="0 0 32 24" aria-hidden="true"><path d="M2 4l7 3v14l-7-3z"/><path class="back" d="M9 7l7-3v14l-7 3z"/><path d="M16 4l7 3v14l-7-3z"/><path class="back" d="M23 7l7-3v14l-7 3z"/></svg>`;

/** The icon of the pages. */
export const icon =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 24"><g fill="#0a7d6c"><path d="M2 4l7 3v14l-7-3z"/><path d="M16 4l7 3v14l-7-3z"/></g><g fill="#59b8a9"><path d="M9 7l7-3v14l-7 3z"/><path d="M23 7l7-3v14l-7 3z"/></g></svg>';

/** Returns a form with one button that changes something. It works without the script. */
export function actionButton(
  action: string,
  fields: Readonly<Record<string, string>>,
  label: string,
  kind?: 'danger',
): Html {
  const inputs = Object.entries(fields).map(
    ([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`,
  );
  return html`<form method="post" action="${pageRoot}${action}">${inputs}<button${kind && html` class="${kind}"`}>${label}</button></form>`;
}

/** A column of a table, with its title. The numbers of a numeric one are aligned on the right. */
export type TableColumn = string | { readonly numeric: string };

/** Writes a table, which scrolls sideways and becomes a list of cards on a phone. `bodyId`: the id of its body, for the script. */
export function tableOf(
  name: string,
  columns: readonly TableColumn[],
  rows: readonly Html[],
  bodyId?: string,
): Html {
  const heads = columns.map((column) =>
    typeof column === 'string'
      ? html`<th scope="col">${column}</th>`
      : html`<th scope="col" class="n">${column.numeric}</th>`,
  );
  return html`<div class="scroll" role="region" aria-label="Table: ${name}" tabindex="0"><table class="cards"><thead><tr>${heads}</tr></thead><tbody${bodyId !== undefined && html` id="${bodyId}"`}>${rows}</tbody></table></div>`;
}

/** Returns a page that says why something cannot be shown. */
export function messagePageOf(title: string, sentence: string): PageContent {
  return { title, under: '', body: html`<h1>${title}</h1><p>${sentence}</p>` };
}
