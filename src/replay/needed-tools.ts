/**
 * Whose conversations needed the recall tool so far. All conversations of a source are taken for those of one agent: recordings lack the
 * tools that were not called, by which a real one is known.
 */
import type { Played } from './replay.ts';

export interface NeededTools {
  /** Names of the policies under which an earlier conversation of this source had something to recall. */
  of(source: string): ReadonlySet<string>;
  /** Takes in what came of a conversation. */
  add(played: Played): void;
}

export function createNeededTools(): NeededTools {
  const bySource = new Map<string, Set<string>>();
  const of = (source: string): Set<string> => {
    const needed = bySource.get(source) ?? new Set();
    bySource.set(source, needed);
    return needed;
  };
  return {
    of,
    add({ source, plays }) {
      for (const { policy, needsTool } of plays) if (needsTool) of(source).add(policy);
    },
  };
}
