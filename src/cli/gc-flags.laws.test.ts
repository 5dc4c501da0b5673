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

describe('setGcFlag', () => {
  // Bodies are allocated and freed next to a heap of 300,000 objects. Measured full collections, without and with the flag:
  // Node 22.18 1 and 1, Node 24.21 30 and 1, Node 26.10 17 and 1.
  const load = `
    const held = Array.from({ length: 300_000 }, (_, i) => ({ i, text: 'text ' + i }));
    for (let i = 0; i < 12_000; i++) {
      Buffer.alloc(200_000, i & 255);
      if (i % 50 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    console.log(held.length);`;

  const withFlag = `
    const { setGcFlag } = await import('./src/cli/gc-flags.ts');
    setGcFlag();
    ${load}`;

  function fullCollections(script: string): number {
    // With one thread for collections, their number does not depend on how busy the machine is.
    const argv = ['--trace-gc', '--single-threaded-gc', '--input-type=module', '--eval', script];
    const { status, stdout, stderr } = spawnSync(process.execPath, argv, { encoding: 'utf8' });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    return stdout.match(/mark-compact/gi)?.length ?? 0;
  }

  it('saves this Node most of the full collections that bodies would cause', () => {
    expect(fullCollections(withFlag)).toBeLessThanOrEqual(Math.max(4, fullCollections(load) / 2));
  });

  it('is called by the command, without any output', () => {
    const { status, stderr } = spawnSync(process.execPath, ['src/cli/main.ts', '--version'], {
      encoding: 'utf8',
    });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  });
});
