import { describe, expect, it } from 'vitest';
import { noTotals } from '../receipts/totals.ts';
import { html, shortName, timeTag, usdText } from './html.ts';
import { totalsOf } from './overview.ts';

describe('a template', () => {
  it('escapes every value, in text and in attributes', () => {
    const evil = `"><script>alert(1)</script>'&`;
    expect(html`<a title="${evil}">${evil}</a>`.markup).toBe(
      '<a title="&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;&#39;&amp;">&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;&#39;&amp;</a>',
    );
  });

  it('keeps HTML, joins lists, and leaves out what is not there', () => {
    const items = ['a', '<'].map((text) => html`<li>${text}</li>`);
    expect(html`<ul>${items}</ul>${undefined}${false}${0}`.markup).toBe('<ul><li>a</li><li>&lt;</li></ul>0');
  });

  it('shows characters that hide or reorder text', () => {
    expect(html`${'a\u202Eb\u0000c\n\td'}`.markup).toBe('a\uFFFDb\uFFFDc\n\td');
  });
});

it('amounts, times and names are spelled for people', () => {
  expect([0, 0.0123, 1.2345, 120, -0.5, undefined].map(usdText)).toEqual([
    '$0.00',
    '$0.0123',
    '$1.234',
    '$120.00',
    '−$0.500',
    'unknown',
  ]);
  expect(timeTag(0).markup).toBe('<time datetime="1970-01-01T00:00:00.000Z">1970-01-01 00:00:00</time>');
  expect([shortName('a'.repeat(30)), shortName(undefined)]).toEqual([`${'a'.repeat(27)}…`, 'unknown']);
});

it('sums say how many tokens fewer were sent, or how many more', () => {
  const noteOf = (tokensAfter: number) =>
    /\d+ % (?:more|fewer) than the 1,000 that came/.exec(
      totalsOf({ ...noTotals, tokensBefore: 1_000, tokensAfter }).markup,
    )?.[0];
  expect(noteOf(800)).toBe('20 % fewer than the 1,000 that came');
  expect(noteOf(1_010)).toBe('1 % more than the 1,000 that came');
});
