/** The laws a fold must keep before it is sent: valid as the original was, and never larger. */
import type { FormatRules, Problem } from '../codecs/codec.ts';
import type { Conversation } from '../conversation/conversation.ts';

/**
 * Rules that the second conversation breaks more often than the first. A client may send what its provider would refuse; that is
 * between the two of them, and no reason to leave its conversation alone.
 */
export function newProblems(
  rules: FormatRules,
  before: Conversation,
  after: Conversation,
): readonly Problem[] {
  const problems = rules.problems(after);
  if (problems.length === 0) return [];
  const allowed = new Map<string, number>();
  for (const { rule } of rules.problems(before)) allowed.set(rule, (allowed.get(rule) ?? 0) + 1);
  return problems.filter(({ rule }) => {
    const left = allowed.get(rule) ?? 0;
    allowed.set(rule, left - 1);
    return left <= 0;
  });
}
