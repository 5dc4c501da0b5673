/**
 * What became of summaries that are not there: for the receipts of folds that an extract had to serve. By the prefix that each was to end
 * with, in this process alone, bounded.
 */
import { LRUCache } from 'lru-cache';

export interface SummaryNotes {
  /** Of the newest that was begun for a part of this chain; undefined where none was, or all is well. */
  find(tenant: string, links: readonly string[]): string | undefined;
  note(tenant: string, link: string, problem: string): void;
  /** All is well. */
  forget(tenant: string, link: string): void;
}

export function createSummaryNotes(): SummaryNotes {
  const problems = new LRUCache<string, string>({ max: 2_000 });
  return {
    find(tenant, links) {
      if (problems.size === 0) return undefined;
      for (let at = links.length - 1; at > 0; at--) {
        const problem = problems.get(keyOf(tenant, links[at]!));
        if (problem !== undefined) return problem;
      }
      return undefined;
    },
    note: (tenant, link, problem) => problems.set(keyOf(tenant, link), problem),
    forget: (tenant, link) => problems.delete(keyOf(tenant, link)),
  };
}

function keyOf(tenant: string, link: string): string {
  return `${tenant}/${link}`;
}
