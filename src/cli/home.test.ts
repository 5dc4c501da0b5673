import { syncBuiltinESMExports } from 'node:module';
import os from 'node:os';
import { afterEach, expect, it, vi } from 'vitest';
import { homeOf } from './home.ts';
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
