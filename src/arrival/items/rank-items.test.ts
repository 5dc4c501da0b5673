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
  it('goes by the scores the source gives, whatever was asked', () => {
    const scored = [item('a', 0.5), item('b', 0.9), item('c', 0.1)];
    expect(leastFirst(scored, 'c', true)).toEqual(['c', 'a', 'b']);
  });

  it('goes by the order of what was searched for', () => {
    expect(leastFirst(items, 'coal', true)).toEqual([
      'coal',
      'keepers of lamps',
      'lamps, and oil for lamps',
      'sails and ropes',
    ]);
  });

  it('goes by the question otherwise, the rarer word first', () => {
    expect(leastFirst(items, 'Who keeps the oil of the lamps?')).toEqual([
      'coal',
      'sails and ropes',
      'keepers of lamps',
      'lamps, and oil for lamps',
    ]);
  });

  it('goes by the order where the question says nothing of any', () => {
    expect(leastFirst(items, 'weather')).toEqual([
      'coal',
      'keepers of lamps',
      'lamps, and oil for lamps',
      'sails and ropes',
    ]);
  });

  it('says what the words of the question are worth: rare ones more', () => {
    const { terms } = rankItems(items, 'lamps or coal', false);
    expect([...terms.keys()]).toEqual(['lamps', 'coal']);
    expect(terms.get('coal')!).toBeGreaterThan(terms.get('lamps')!);
  });
});
