/**
 * The sections of an extractive summary, in the order in which they are written: what one writes the next one reads back. A line that
 * is not a title is an item and begins with `- `, so nothing quoted can pass for a title. Pure.
 */

export const titles = {
  goal: 'The user began with:',
  said: 'The user said (word for word):',
  pasted: 'From longer texts and reminders:',
  prose: 'Earlier summary:',
  findings: 'Decided and found:',
  plan: 'Plan as last written:',
  errors: 'Failures that tools showed:',
  values: 'What calls named, by tool and argument:',
  steps: 'Steps:',
  state: 'It stood at:',
} as const;

export type Section = keyof typeof titles;

export const sectionNames = Object.keys(titles) as readonly Section[];

/** Names stand as they are, so that they are found as they are; all else is quoted, for it is data. */
export function spellValue(value: string): string {
  return /^[\w./@:#~=-]+$/.test(value) ? value : JSON.stringify(value);
}

/** The values of a line of them, as they were before they were spelled. */
export function spelledValues(line: string): readonly string[] {
  const values: string[] = [];
  for (const [, quoted, bare] of line.matchAll(/("(?:[^"\\]|\\.)*")|([\w./@:#~-]+)/g)) {
    const value = bare ?? unquoted(quoted ?? '');
    if (value !== undefined) values.push(value);
  }
  return values;
}

export function unquoted(literal: string): string | undefined {
  try {
    const value: unknown = JSON.parse(literal);
    return typeof value === 'string' ? value : undefined;
  } catch {
    return undefined;
  }
}
