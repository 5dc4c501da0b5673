import { expect, it } from 'vitest';
import { createNeededTools } from './needed-tools.ts';
import type { Played } from './replay.ts';
import { noTally } from './tally.ts';

const played = (source: string, ...needed: readonly string[]): Played => ({
  id: source,
  source,
  plays: ['one', 'other'].map((policy) => ({
    policy,
    needsTool: needed.includes(policy),
    tally: noTally,
    contexts: [],
    careless: undefined,
  })),
});

it('a source needs the recall tool from the first conversation on that needed it, for each policy by itself', () => {
  const needed = createNeededTools();
  const known = () => [[...needed.of('a')], [...needed.of('b')]];
  needed.add(played('a'));
  expect(known()).toEqual([[], []]);
  needed.add(played('a', 'other'));
  expect(known()).toEqual([['other'], []]);
  needed.add(played('a'));
  needed.add(played('b', 'one', 'other'));
  expect(known()).toEqual([['other'], ['one', 'other']]);
});
