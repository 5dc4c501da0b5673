/**
 * Tests that Node runs our TypeScript without a compiler: every file of src loads with Node's own type stripping. Other tests do
 * not show that, because vitest compiles the files.
 */
import { spawnSync } from 'node:child_process';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it } from 'vitest';
import { repositoryFiles, sourceFiles } from './architecture/source-file.ts';

/** Files that cannot be loaded here: the command and the fold thread start at once, and the test suites load only in vitest. */
const runsAtOnce = /^src\/(cli\/main\.ts$|gateway\/fold-thread\/thread\.ts$|testing\/)/;

it('loads every file of src without a compiler', () => {
  const files = sourceFiles(repositoryFiles()).filter(({ path }) => !runsAtOnce.test(path));
  const urls = files.map(({ path }) => pathToFileURL(resolve(path)).href);
  const load = `
    const failed = [];
    for (const url of ${JSON.stringify(urls)}) await import(url).catch((error) => failed.push(url + ': ' + error.message));
    console.log(JSON.stringify(failed));`;
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', load], {
    encoding: 'utf8',
    env: { ...process.env, NODE_OPTIONS: '' },
  });
  expect({ failed: JSON.parse(stdout || '"nothing"') as unknown, stderr }).toMatchObject({ failed: [] });
  expect(files.length).toBeGreaterThan(50);
});
