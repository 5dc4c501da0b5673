/** Tests the set-up of a checkout that belongs to another user, as one in /opt does. */
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'leporello-'));
});
afterEach(() => {
  chmodSync(folder, 0o700);
  rmSync(folder, { recursive: true });
});

it('a checkout that this user may not write is not set up, and the reason is printed', () => {
  writeFileSync(join(folder, 'package-lock.json'), '{}');
  chmodSync(folder, 0o555);
  // The administrator may write every folder, so the program becomes another user.
  const program = `import { setUp } from ${JSON.stringify(import.meta.resolve('../scripts/bootstrap/set-up.mjs'))};
    if (process.getuid() === 0) process.setuid(65534);
    console.log(await setUp(process.argv[1]));`;
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program, folder], {
    encoding: 'utf8',
  });
  expect({ stdout, stderr }).toEqual({
    stdout: 'undefined\n',
    stderr: `This checkout must be set up, but this user may not write ${folder}. Run npm start there once as its owner, then run this again.\n`,
  });
});
