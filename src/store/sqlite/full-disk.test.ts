import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';

let folder = '';

afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

describe('the file of the sqlite store', () => {
  it('causes an error with the free space if the disk takes no more', async () => {
    folder = mkdtempSync(join(tmpdir(), 'leporello-full-'));
    const file = join(folder, 'memory.sqlite');
    // The shell limits the size of each file that the process writes, in blocks of 1,024 bytes.
    const program = `import { sqliteStore } from ${JSON.stringify(import.meta.resolve('./sqlite.ts'))};
      const store = await sqliteStore({ file: process.argv[1] });
      const value = new Uint8Array(3_000);
      for (let at = 0; ; at++) await store.putMany([{ key: 'k' + at, value, expiresAt: undefined }]);`;
    const { stderr } = spawnSync(
      'sh',
      [
        '-c',
        'ulimit -f 200; exec "$0" --input-type=module-typescript -e "$1" "$2"',
        process.execPath,
        program,
        file,
      ],
      { encoding: 'utf8' },
    );
    expect(stderr).toMatch(
      /The store \S+ failed: (?:disk I\/O error|database or disk is full)\. The disk of \S+ has [\d.]+ MB free\. Free some space if that is too little; else check the disk\./,
    );
  });
});
