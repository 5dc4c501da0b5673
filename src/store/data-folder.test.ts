import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';

const folder = mkdtempSync(join(tmpdir(), 'leporello-data-'));

afterEach(() => {
  chmodSync(folder, 0o700);
  rmSync(folder, { recursive: true, force: true });
});

it('a data folder of another user is not reported as empty', () => {
  writeFileSync(join(folder, 'memory.sqlite'), '');
  chmodSync(folder, 0o000);
  // The administrator may read every folder, so the program becomes another user.
  const program = `import { missingIn } from ${JSON.stringify(import.meta.resolve('./data-folder.ts'))};
    if (process.getuid() === 0) process.seteuid(65534);
    console.log(missingIn(process.argv[1], { store: true, secret: true }));`;
  const { stdout } = spawnSync(process.execPath, ['--input-type=module-typescript', '-e', program, folder], {
    encoding: 'utf8',
  });
  expect(stdout).toBe(
    `This user may not read the data folder ${folder}. Run as its owner, or set another one with --data.\n`,
  );
});
