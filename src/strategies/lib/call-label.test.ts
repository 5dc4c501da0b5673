import { describe, expect, it } from 'vitest';
import { callLabel } from './tool-calls.ts';

const labelOf = (name: string, input: unknown) => callLabel({ name, input: JSON.stringify(input) });

describe('the name of a result', () => {
  it('is that of the tool, with the end of a path or the beginning of what else it was about', () => {
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

  it('is that of the tool alone where the call says nothing in words', () => {
    expect(labelOf('list', {})).toBe('list');
    expect(labelOf('list', { depth: 2 })).toBe('list');
    expect(callLabel({ name: 'list', input: 'not json' })).toBe('list');
  });
});
