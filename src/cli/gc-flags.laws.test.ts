import { execFileSync, spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { gcFlagsFor, smallHeapFlagsFor } from './gc-flags.ts';

describe('gcFlagsFor', () => {
  it.each([
    [
      '13.6.233.17-node.53',
      [
        '--scavenger-max-new-space-capacity-mb=8',
        '--external-memory-accounted-in-global-limit',
        '--heap-growing-percent=75',
      ],
    ],
    ['12.4.254.21-node.27', []],
    ['14.6.202.34-node.34', ['--external-memory-accounted-in-global-limit', '--heap-growing-percent=75']],
    ['15.0.1', []],
    ['', []],
  ])('of V8 %s are %j', (version, flags) => {
    expect(gcFlagsFor(version)).toEqual(flags);
  });

  it('are flags that this V8 has', () => {
    const known = execFileSync(process.execPath, ['--v8-options'], { encoding: 'utf8' });
    const { v8 } = process.versions;
    for (const flag of [...gcFlagsFor(v8), ...smallHeapFlagsFor(v8)])
      expect(known).toContain(`  ${flag.split('=')[0]} (`);
  });
});

describe('setGcFlags', () => {
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
    const { setGcFlags } = await import('./src/cli/gc-flags.ts');
    setGcFlags();
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
