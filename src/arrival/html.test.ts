import { describe, expect, it } from 'vitest';
import { html } from './html.ts';

function made(page: string): string | undefined {
  return html(page)?.drafts({ lossless: false })[0]?.text;
}

const head = `<!DOCTYPE html><html lang="en"><head><title>Folding</title><link rel="canonical" href="https://example.org/folding">
<meta property="og:url" content="https://example.org/folding"><style>p { margin: 0 }</style></head>`;
const filler = `<script nonce="x">${'let a = "<p>no</p>";'.repeat(200)}</script>`;

describe('a fetched web page', () => {
  it('becomes its main text, with headings, lists, links, tables and code', () => {
    const page = `${head}<body><nav><a href="/">Home</a></nav>${filler}<main>
<h1>How to   fold</h1>
<p>A <b>leporello</b> is folded like a <a href="/concertina?a=1&amp;b=2">concertina</a>&nbsp;&mdash; see <a href="#top">above</a>.</p>
<ul><li>one<ul><li>inner</li></ul></li><li>two &lt;3</li></ul>
<pre><code>fold  --every
  page</code></pre>
<table><tr><th>page</th><th>side</th></tr><tr><td>1</td><td>left &#x1F600;</td></tr></table>
<form><button>Buy</button></form><!-- <p>not shown</p> -->
<img src="a.png" alt="A folded book"><svg><text>no</text></svg>
</main><footer>About us &bogus;</footer></body></html>`;
    expect(made(page)).toBe(
      `[main text of the page]
# How to fold

A leporello is folded like a [concertina](/concertina?a=1&b=2) — see above.

- one
  - inner
- two <3

\`\`\`
fold  --every
  page
\`\`\`

 | page | side
 | 1 | left 😀
A folded book`,
    );
  });

  it('is not changed if it is short or may be source code', () => {
    expect(made(`${head}<p>short</p>`)).toBeUndefined();
    expect(
      html(`<!doctype html><html><body>${'<p>A page written by hand.</p>\n'.repeat(400)}</body></html>`),
    ).toBeUndefined();
  });

  it('ends at an unclosed last tag', () => {
    const text = 'Words of the page. '.repeat(20);
    expect(made(`${head}${filler}<p>${text}<a href="x`)).toBe(
      `[main text of the page]\nFolding\n${text.trim()}`,
    );
    expect(made(`${head}${filler}<p>${text}<script>never ends ${text}`)).toBe(
      `[main text of the page]\nFolding\n${text.trim()}`,
    );
  });
});
