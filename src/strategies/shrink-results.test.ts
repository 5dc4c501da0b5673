import { describe, expect, it } from 'vitest';
import { callLabel } from './shrink-results.ts';

const labelOf = (name: string, input: unknown) => callLabel({ name, input: JSON.stringify(input) });

describe('the label of a result', () => {
  it("is the tool's name with the end of a path or the beginning of another argument", () => {
    expect(labelOf('Read', { offset: 3, file_path: '/repo/app/src/app.ts' })).toBe('Read(src/app.ts)');
    expect(labelOf('Bash', { description: 'Run tests', command: 'npm test -- src/store' })).toBe(
      'Bash(npm test -- src/store)',
    );
    expect(labelOf('get_order', { order_id: '#W123' })).toBe('get_order(#W123)');
    expect(labelOf('think', { thought: 'Let me see.\nFirst' })).toBe('think(Let me see.)');
  });

  it('is short, and one line', () => {
    expect(labelOf('run', { cmd: `echo ${'x'.repeat(90)}` })).toBe(`run(echo ${'x'.repeat(43)}…)`);
  });

  it("is only the tool's name if the call has no text", () => {
    expect(labelOf('list', {})).toBe('list');
    expect(labelOf('list', { depth: 2 })).toBe('list');
    expect(callLabel({ name: 'list', input: 'not json' })).toBe('list');
  });
});
