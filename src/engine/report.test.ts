import { describe, expect, it } from 'vitest';
import type { Edit } from '../conversation/edit.ts';
import { searchIdsOf } from './report.ts';

describe('the ids that a search reads', () => {
  it('are those of the newest folds first, those of shrinks last, and none twice', () => {
    const stub = (message: number, memory: string): Edit => ({
      kind: 'replace-text',
      at: { message, part: 0, text: 0 },
      stub: 'gone',
      memory,
    });
    const folds: readonly Edit[] = [
      stub(2, 'mem_a'),
      stub(4, 'mem_b'),
      { kind: 'insert-message', before: 1, role: 'user', text: 'Folded.' },
      { kind: 'drop-message', message: 1, memory: 'mem_c' },
      { kind: 'drop-message', message: 2, memory: 'mem_c' },
    ];
    expect(searchIdsOf(folds, [stub(6, 'mem_d'), stub(8, 'mem_e')])).toEqual([
      'mem_c',
      'mem_b',
      'mem_e',
      'mem_d',
    ]);
  });
});
