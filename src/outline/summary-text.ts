/**
 * Writes the text of an extractive summary, section by section, and reads a summary back into notes, so that the next one includes it and
 * nothing is summarized twice. A line that is not a title is an item and begins with `- `, so quoted text cannot be mistaken for a title.
 * Lines outside of sections were written by another summarizer and are kept as prose. Pure.
 */
import type { Notes } from './notes.ts';
import { clipped, isBinding, plain } from './sentences.ts';

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

const sectionOf = new Map<string, Section>(sectionNames.map((name) => [titles[name], name]));

/** Reads a summary back into notes. */
export function readBody(notes: Notes, body: string): void {
  let section: Section | undefined;
  for (const line of body.split('\n')) {
    const title = sectionOf.get(line);
    if (title !== undefined) section = title;
    else if (section !== undefined && line.startsWith('- ')) readItem(notes, section, line.slice(2));
    else if (plain(line) !== '') {
      section = undefined;
      notes.prose.push(clipped(plain(line), 600));
    }
  }
}

function readItem(notes: Notes, section: Section, item: string): void {
  switch (section) {
    case 'goal':
      notes.goal ??= item;
      return;
    case 'said':
      notes.said.set(item, isBinding(item) ? 'rule' : 'wish');
      return;
    case 'pasted':
      notes.pasted.add(item);
      return;
    case 'findings':
      notes.findings.add(item);
      return;
    case 'prose':
      notes.prose.push(item);
      return;
    case 'state':
      notes.lastSaid = item;
      return;
    case 'plan':
      readPlan(notes, item);
      return;
    case 'errors':
      readError(notes, item);
      return;
    case 'steps':
      readStep(notes, item);
      return;
    case 'values':
      return readValues(notes, item);
  }
}

function readPlan(notes: Notes, item: string): void {
  const at = item.indexOf(': ');
  if (at > 0) notes.plan = new Map([...notes.plan, [item.slice(0, at), spelledValues(item.slice(at + 2))]]);
}

function readError(notes: Notes, item: string): void {
  const at = item.indexOf(': "');
  const line = at < 0 ? undefined : unquoted(item.slice(at + 2));
  if (line !== undefined) notes.errors.set(line, item.slice(0, at));
}

function readStep(notes: Notes, item: string): void {
  if (item.startsWith('first: ')) notes.first ??= item.slice('first: '.length);
  if (item.startsWith('last: ')) notes.last = item.slice('last: '.length);
}

/** Reads a line of values, best first. */
function readValues(notes: Notes, item: string): void {
  const at = item.indexOf(': ');
  if (at < 0) return;
  const values = spelledValues(item.slice(at + 2));
  for (const [rank, text] of values.entries()) notes.values.remember(item.slice(0, at), text, rank);
}

/** Turns the text of another summarizer into a summary body: all of its lines are prose, whatever titles it contains. */
export function asProse(text: string): string {
  const lines = text
    .split('\n')
    .map((line) => clipped(plain(line).replace(/^[-*•]\s+/, ''), 600))
    .filter((line) => line !== '');
  return [titles.prose, ...lines.map((line) => `- ${line}`)].join('\n');
}

/** Returns the values that a summary names. */
export function valuesOf(body: string): readonly string[] {
  return itemsOf(body, 'values').flatMap((item) => spelledValues(item.slice(item.indexOf(': ') + 2)));
}

/** Returns the lines of a summary that another summarizer wrote, for example a model. */
export function proseOf(body: string): readonly string[] {
  return itemsOf(body, 'prose');
}

function itemsOf(body: string, section: Section): readonly string[] {
  const lines = body.split('\n');
  const start = lines.indexOf(titles[section]) + 1;
  if (start === 0) return [];
  const end = lines.findIndex((line, at) => at >= start && !line.startsWith('- '));
  return lines.slice(start, end < 0 ? undefined : end).map((line) => line.slice(2));
}

/** Reads the values of a line that `spellValue` wrote. */
function spelledValues(line: string): readonly string[] {
  const values: string[] = [];
  for (const [, quoted, bare] of line.matchAll(/("(?:[^"\\]|\\.)*")|([\w./@:#~-]+)/g)) {
    const value = bare ?? unquoted(quoted ?? '');
    if (value !== undefined) values.push(value);
  }
  return values;
}

function unquoted(literal: string): string | undefined {
  try {
    const value: unknown = JSON.parse(literal);
    return typeof value === 'string' ? value : undefined;
  } catch {
    return undefined;
  }
}
