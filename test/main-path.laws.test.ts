import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

/** Files that a reader may have to open to follow one request. A new module belongs into one of them, or is loaded only when its feature is on. */
const maxFiles = 60;

it('one folded, streamed request with a recall runs few files', { timeout: 240_000 }, async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ['bench/main-path.ts', '--files']);
  const files = Number(/^(\d+) files, /m.exec(stdout)?.[1]);
  expect(files, stdout).toBeGreaterThan(0);
  expect(files, stdout).toBeLessThanOrEqual(maxFiles);
});
