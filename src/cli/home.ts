/** Finds the user's home folder, for configuration, data and caches, and the version and the command of this package. */
import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';

/** Returns the home folder; undefined for a user without one. An empty variable counts as missing. */
export function homeOf(env: Readonly<Record<string, string | undefined>>): string | undefined {
  const named = env['HOME'] || env['USERPROFILE'];
  if (named) return named;
  try {
    return homedir() || undefined;
  } catch {
    // A user without an entry in the password file has no home, as in many containers.
    return undefined;
  }
}

/** The command as the user types it. Only a checkout runs TypeScript, and there the command is a script of npm. */
export const ownCommand = import.meta.url.endsWith('.ts') ? 'npm run leporello --' : 'leporello';

/** Adds to a help text how to write its commands in a checkout. */
export function withCheckoutNote(help: string): string {
  const isOwn = ownCommand === 'leporello';
  return isOwn ? help : `${help}\nIn this checkout, write ${ownCommand} in place of leporello.\n`;
}

/** Returns the version in package.json. It lies two folders above the sources, and three above the compiled code. */
export function packageVersion(): string {
  const root = import.meta.url.endsWith('.ts') ? '../..' : '../../..';
  const manifest = new URL(`${root}/package.json`, import.meta.url);
  return (JSON.parse(readFileSync(manifest, 'utf8')) as { readonly version: string }).version;
}
