import { describe, expect, it } from 'vitest';
import { openWaitingNotes } from './waiting-notes.ts';

describe('notes that wait', () => {
  it('are no more than their bound, until some have left', () => {
    const waiting = openWaitingNotes('receipt');
    const leaves = Array.from({ length: 200 }, () => waiting.enter(1_000));
    expect(leaves).not.toContain(undefined);
    expect(waiting.enter(0)).toBeUndefined();
    leaves[0]!();
    leaves[0]!();
    expect(waiting.enter(0)).toBeDefined();
    expect(waiting.enter(0)).toBeUndefined();
  });

  it('hold no more bytes than their bound, unless there is only one', () => {
    const waiting = openWaitingNotes('holdout');
    const leave = waiting.enter(100_000_000);
    expect(waiting.enter(1)).toBeUndefined();
    leave!();
    expect(waiting.enter(40_000_000)).toBeDefined();
    expect(waiting.enter(40_000_000)).toBeUndefined();
    expect(waiting.enter(24_000_000)).toBeDefined();
  });
});
