import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import os from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it, vi } from 'vitest';
import { gatewayCommand, homeOf, ownCommand, quoted } from './home.ts';
import { cacheFolder } from './start-cache.ts';

/** Replaces the home that the system knows. */
function mockHome(home: () => string): void {
  vi.spyOn(os, 'homedir').mockImplementation(home);
  syncBuiltinESMExports();
}

afterEach(() => {
  vi.restoreAllMocks();
  syncBuiltinESMExports();
});

it.each([
  [{ HOME: '/home/ada', USERPROFILE: '/users/ada' }, '/home/ada'],
  [{ USERPROFILE: '/users/ada' }, '/users/ada'],
  [{ HOME: '' }, '/home/of-system'],
])('the home of %j is %s', (env, home) => {
  mockHome(() => '/home/of-system');
  expect(homeOf(env)).toBe(home);
});

it('a user without a home has no cache folder, unless it is named', () => {
  const fail = () => {
    throw new Error('ENOENT');
  };
  for (const noHome of [fail, () => '']) {
    mockHome(noHome);
    expect(homeOf({})).toBeUndefined();
    expect(cacheFolder({}, 'linux')).toBeUndefined();
    expect(cacheFolder({ XDG_CACHE_HOME: '/caches' }, 'linux')).toBe('/caches/leporello');
  }
});

it('a command for another terminal names the port and the data folder that are not the default', () => {
  const home = '/home/ada';
  const wrap = (port: number, dataDir: string | undefined) =>
    gatewayCommand('wrap claude', { port, dataDir, home }).replace(ownCommand, 'leporello');
  expect(wrap(8787, undefined)).toBe('leporello wrap claude');
  expect(wrap(8787, '/home/ada/.leporello')).toBe('leporello wrap claude');
  expect(wrap(8797, '/data of ada')).toBe("leporello wrap claude --port 8797 --data '/data of ada'");
});

it('a word for a shell is quoted where that is needed', () => {
  expect(quoted('/usr/bin/leporello')).toBe('/usr/bin/leporello');
  for (const word of ['/with a space', "it's", '$HOME', 'a;b'])
    expect(execFileSync('sh', ['-c', `printf %s ${quoted(word)}`], { encoding: 'utf8' })).toBe(word);
});

it('a checkout has a command for every folder, which works through a link and prints nothing else', () => {
  const folder = mkdtempSync(join(os.tmpdir(), 'leporello command '));
  try {
    symlinkSync(ownCommand, join(folder, 'leporello'));
    const body = { model: 'gpt-4o', messages: [{ role: 'user', content: 'Hello' }] };
    writeFileSync(join(folder, 'body.json'), JSON.stringify(body));
    const options = { cwd: folder, encoding: 'utf8', env: { ...process.env, HOME: folder } } as const;
    const printed = execFileSync(join(folder, 'leporello'), ['compact', 'body.json'], options);
    expect(JSON.parse(printed)).toEqual(body);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
