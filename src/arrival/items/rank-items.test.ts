import { describe, expect, it } from 'vitest';
import type { ListItem } from './shorten.ts';
import { rankItems } from './items.ts';

const item = (text: string, score?: number): ListItem => ({
  text,
  score,
  texts: [],
  shorter: () => undefined,
});
const items = [
  item('sails and ropes'),
  item('lamps, and oil for lamps'),
  item('keepers of lamps'),
  item('coal'),
];

const leastFirst = (list: readonly ListItem[], question: string, isRanked = false) =>
  rankItems(list, question, isRanked).leastFirst.map((at) => list[at]!.text);

describe('rankItems', () => {
  it('uses the scores of the source, whatever the question', () => {
    const scored = [item('a', 0.5), item('b', 0.9), item('c', 0.1)];
    expect(leastFirst(scored, 'c', true)).toEqual(['c', 'a', 'b']);
  });

  it('uses the order of search results', () => {
    expect(leastFirst(items, 'coal', true)).toEqual([
      'coal',
      'keepers of lamps',
      'lamps, and oil for lamps',
      'sails and ropes',
    ]);
  });

  it('uses the question otherwise, rarer words first', () => {
    expect(leastFirst(items, 'Who keeps the oil of the lamps?')).toEqual([
      'coal',
      'sails and ropes',
      'keepers of lamps',
      'lamps, and oil for lamps',
    ]);
  });

  it('uses the order if no word of the question occurs', () => {
    expect(leastFirst(items, 'weather')).toEqual([
      'coal',
      'keepers of lamps',
      'lamps, and oil for lamps',
      'sails and ropes',
    ]);
  });

  it("returns the weights of the question's words, rare ones higher", () => {
    const { terms } = rankItems(items, 'lamps or coal', false);
    expect([...terms.keys()]).toEqual(['lamps', 'coal']);
    expect(terms.get('coal')!).toBeGreaterThan(terms.get('lamps')!);
  });
});
