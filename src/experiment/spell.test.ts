import { expect, it } from 'vitest';
import { shadowReportsOf } from './shadow.ts';
import { spellResults } from './spell.ts';

const agreement = { folded: true, whole: true, cross: 4 };
const sums = { replies: 2, tokensOut: 90, repeats: 1 };

/** Comparisons of 25 conversations under two sets of settings: the later one has only three. */
const compared = [
  ...Array.from({ length: 60 }, () => 'first'),
  ...Array.from({ length: 3 }, () => 'second'),
].map((settings, at) => ({
  unit: `place ${at}`,
  lastAt: Date.UTC(2026, 10, settings === 'first' ? 23 : 27),
  model: 'a model',
  strategies: 'offload-results',
  settings,
  conversation: `conversation ${at % 25}`,
  isFirst: true,
  probability: 0.1,
  agreements: { tool: agreement, target: agreement, arguments: agreement },
  recalls: 1,
  replies: { folded: sums, whole: { ...sums, tokensOut: 80, repeats: 0 } },
}));

const tally = {
  unit: 'a model',
  lastAt: 0,
  model: 'a model',
  calls: 189,
  usd: 2.5,
  dropped: { 'it was sent with a login': 4 },
  heldAt: {},
};

it('results of a shadow say n of N below the floor, and count costs once for a model', () => {
  const shadows = shadowReportsOf({ compared, tallies: [tally] }, 0);
  expect(spellResults({ experiments: [], shadows }).join('\n')).toMatchInlineSnapshot(`
    "a model, since 2026-11-27, folded requests sent again

      Verdict: cannot tell yet.
      Requests with a new fold: 3 compared, at least 50 are needed; of 3 conversations, at least 20.
      offload-results: cannot tell yet (3 requests).
      Recalls in folded replies: 3.
      Cost for this model, under all settings: USD 2.50 in 189 calls.
      Not compared, because it was sent with a login: 4.

    a model, since 2026-11-23, folded requests sent again, under earlier settings

      Verdict: neither harm nor its absence is shown, about 8,400 requests with a new fold are needed.
      Requests with a new fold: 60 of 25 conversations.
        Agreement on the next target lost: 0.000 [-0.590, 0.590].
        Shift of the next target: 0.000 [-1.180, 1.180].
      Secondary, with a new fold: by the tool alone, 0.000 lost, shift 0.000; by all arguments, 0.000 lost, shift 0.000.
      Secondary, all: a reply has 45 (folded) against 40 (whole) tokens; 50 % (folded) against 0 % (whole) of the replies only repeat earlier calls.
      offload-results: neither harm nor its absence is shown (60 requests).
      Recalls in folded replies: 60.
    "
  `);
});
