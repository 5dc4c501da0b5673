import { expect, it } from 'vitest';
import { warmUp } from './warm-up.ts';

it('the warm-up sends one request unchanged, folds one, and replays that fold, in each of four wire formats', async () => {
  const each = ['untouched', 'compacted', 'compacted', 'compacted'];
  expect(await warmUp('gpt-4o')).toEqual([...each, ...each, ...each, ...each]);
});

it('the warm-up ends after as many made-up requests as it may send', async () => {
  expect(await warmUp('gpt-4o', undefined, 2)).toEqual(['untouched', 'compacted']);
});
