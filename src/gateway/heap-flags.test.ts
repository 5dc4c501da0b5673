import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { heapFlagFor } from './heap-flags.ts';

describe('heapFlagFor', () => {
  it('names a flag for the versions that were measured', () => {
    expect(['22.18.0', '24.21.0', '25.1.0', '26.10.0'].map(heapFlagFor)).toEqual([
      undefined,
      '--scavenger-max-new-space-capacity-mb=8',
      undefined,
      '--external-memory-accounted-in-global-limit',
    ]);
  });

  it('names a flag that this Node knows', () => {
    const flag = heapFlagFor(process.versions.node);
    const known = execFileSync(process.execPath, ['--v8-options'], { encoding: 'utf8' });
    expect(known).toContain(flag?.split('=')[0] ?? '');
  });
});
