/** Finds the user's home folder, for configuration, data and caches. */
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
