/** A smaller text in place of that of a result, from its birth on. */
import type { Edit } from '../conversation/edit.ts';

export type Shrink = Edit & {
  readonly kind: 'replace-text';
  /** Tokens. */
  readonly saved: number;
  /** Messages in which lines stand that this one only refers to, and tokens of them. */
  readonly refers?: readonly { readonly message: number; readonly tokens: number }[];
};

/** Tokens that messages take less than they came with, by index. */
export function savedByMessage(shrinks: readonly Shrink[]): ReadonlyMap<number, number> {
  const tokens = new Map<number, number>();
  for (const { at, saved } of shrinks) tokens.set(at.message, (tokens.get(at.message) ?? 0) + saved);
  return tokens;
}
