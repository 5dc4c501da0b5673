import { execFileSync, spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { gcFlagFor } from './gc-flags.ts';

describe('gcFlagFor', () => {
  it.each([
    ['12.4.254.21-node.27', undefined],
    ['13.6.233.17-node.53', '--scavenger-max-new-space-capacity-mb=8'],
    ['14.6.202.34-node.34', '--external-memory-accounted-in-global-limit'],
    ['15.0.1', undefined],
    ['', undefined],
  ])('of V8 %s is %s', (version, flag) => {
    expect(gcFlagFor(version)).toBe(flag);
  });

  it('is a flag that this V8 has', () => {
    const flag = gcFlagFor(process.versions.v8);
    if (flag === undefined) return;
    const known = execFileSync(process.execPath, ['--v8-options'], { encoding: 'utf8' });
    expect(known).toContain(`  ${flag.split('=')[0]} (`);
  });
});

describe('the command', () => {
  it('sets it without a word', () => {
    const { status, stderr } = spawnSync(process.execPath, ['src/cli/main.ts', '--version'], {
      encoding: 'utf8',
    });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  });
});
