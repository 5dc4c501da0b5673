/**
 * Reads what an earlier summary said back into notes, so that the next one takes it in and nothing is summarised twice. What is not in
 * our sections was written by somebody else, a model maybe, and is kept as it is. Pure.
 */
import type { Notes } from './notes.ts';
import { clipped, isBinding, plain } from './sentences.ts';
import { type Section, sectionNames, spelledValues, titles, unquoted } from './sections.ts';

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
