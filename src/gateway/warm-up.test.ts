import { expect, it } from 'vitest';
import { warmUp } from './warm-up.ts';

it('the warm-up sends one request unchanged, folds one, and replays that fold, in each of four wire formats', async () => {
  const each = ['untouched', 'compacted', 'compacted', 'compacted'];
  expect(await warmUp('gpt-4o')).toEqual([...each, ...each, ...each, ...each]);
});
