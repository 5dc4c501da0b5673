/**
 * Names that clients send, as labels of metrics: each is a series that is kept for ever, so only names that proved real count, and of
 * them a bounded number.
 */

export interface BoundedNames {
  /** The name itself, or `other`. `isReal`: somebody answered to it. */
  labelOf(name: string | undefined, isReal: boolean): string;
}

export function createBoundedNames(most: number): BoundedNames {
  const known = new Set<string>();
  return {
    labelOf(name, isReal) {
      if (name === undefined) return 'unknown';
      if (isReal && known.size < most) known.add(name);
      return known.has(name) ? name : 'other';
    },
  };
}
