import { describe, expect, it } from 'vitest';
import { runSteps } from '../conversation/steps.ts';
import { readLines } from './shown-texts.ts';

describe('the lines of a text', () => {
  it('are equal if they are equal after their numbers', () => {
    const { hashes, numbers } = runSteps(readLines('   12→let a;\n13→let a;\n13\tlet a;\nlet a;\n'));
    expect([...numbers]).toEqual([12, 13, 13, -1, -1]);
    expect(hashes[0]).toBe(hashes[1]);
    expect(new Set(hashes).size).toBe(4);
  });

  it('never match if they are our markers, or if a client added them', () => {
    const { hashes } = runSteps(
      readLines(
        '[lines 1-20 as in Read(a.ts) above]\n[next 3 lines begin: x]\n<system-reminder>\n</system-reminder>\n[1]',
      ),
    );
    expect([...hashes].map((hash) => hash === 0)).toEqual([true, true, true, true, false]);
  });
});
