/** Declares one case for each answer of a fixture. A case that its format cannot have is reported as skipped, with the reason. */
import { it } from 'vitest';
import type { Absent } from './fixture.ts';

/** Declares one case for each answer; `title` makes its name. */
export function eachAnswer<Answer>(
  answers: Readonly<Record<string, Answer | Absent>>,
  title: (name: string) => string,
  check: (answer: Answer) => void | Promise<void>,
): void {
  for (const [name, answer] of Object.entries(answers)) {
    if (isAbsent(answer)) skipped(title(name), answer);
    else it(title(name), () => check(answer));
  }
}

/** Declares the case as skipped. */
export function skipped(name: string, { absent }: Absent): void {
  it(name, ({ skip }) => {
    skip(absent);
  });
}

export function isAbsent(answer: unknown): answer is Absent {
  return typeof answer === 'object' && answer !== null && 'absent' in answer;
}
