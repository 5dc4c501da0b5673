/**
 * Reads what an earlier summary said back into notes, so that the next one takes it in and nothing is summarised twice. What is not in
 * our sections was written by somebody else, a model maybe, and is kept as it is. Pure.
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

/** Each line has the best first. */
function readValues(notes: Notes, item: string): void {
  const at = item.indexOf(': ');
  if (at < 0) return;
  const values = spelledValues(item.slice(at + 2));
  for (const [rank, text] of values.entries()) notes.values.remember(item.slice(0, at), text, rank);
}

/** A text by somebody else as the body of a summary: whatever titles stand in it, its lines are prose and no more. */
export function asProse(text: string): string {
  const lines = text
    .split('\n')
    .map((line) => clipped(plain(line).replace(/^[-*•]\s+/, ''), 600))
    .filter((line) => line !== '');
  return [titles.prose, ...lines.map((line) => `- ${line}`)].join('\n');
}

/** The values that a summary names. */
export function valuesOf(body: string): readonly string[] {
  return itemsOf(body, 'values').flatMap((item) => spelledValues(item.slice(item.indexOf(': ') + 2)));
}

/** Lines of a summary that somebody else wrote, a model maybe. */
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

/** Names stand as they are, so that they are found as they are; all else is quoted, for it is data. */
export function spellValue(value: string): string {
  return /^[\w./@:#~=-]+$/.test(value) ? value : JSON.stringify(value);
}

/** The values of a line of them, as they were before they were spelled. */
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
