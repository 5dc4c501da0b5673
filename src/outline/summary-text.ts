/**
 * Writes the sections of an extractive summary, and reads a summary back, so that the next one includes it and nothing is summarized twice. A line
 * that is not a title is an item and begins with `- `, so quoted text cannot be mistaken for a title. Lines outside of sections were
 * written by another summarizer and are kept as prose. Pure.
 */
import { spellValue } from '../conversation/messages.ts';
import { oneLine, wholeWords } from './outcome.ts';
import { plain } from './sentences.ts';
import { addTo, type CallCounts, countIn } from './step-line.ts';

export const titles = {
  asked: 'The user asked, in order (all of it holds unless taken back later):',
  prose: 'Earlier summary:',
  done: 'Done, in order:',
  found: 'Found:',
  shown: 'Tools and longer texts said:',
  files: 'Files touched:',
  named: 'Calls named:',
  open: 'Open then:',
} as const;

export type Section = keyof typeof titles;

const sectionNames = Object.keys(titles) as readonly Section[];

/** Items of a summary by section. */
export type SummaryItems = Readonly<Record<Section, readonly string[]>>;

const sectionOf = new Map<string, Section>(sectionNames.map((name) => [titles[name], name]));

/** Writes sections that have items. */
export function spellSections(items: Partial<SummaryItems>): string {
  return sectionNames
    .flatMap((section) => {
      const lines = items[section] ?? [];
      const title = section === 'done' ? titleOfLog(lines) : titles[section];
      return lines.length === 0 ? [] : [title, ...lines.map((line) => `- ${line}`)];
    })
    .join('\n');
}

// The log of calls, with the calls that are left out

const leftOut = /^\((\d+) calls? left out: ([^()]*)\)$/;

/** Reads the item for calls that a log leaves out; undefined for another item. */
export function readLeftOut(item: string): CallCounts | undefined {
  const [, all, tools = ''] = leftOut.exec(item) ?? [];
  if (all === undefined) return undefined;
  const counts = new Map<string, number>();
  for (const [, tool = '', count = '1'] of tools.matchAll(/([^\s,]+)(?: ×(\d{1,9}))?(?:, |$)/g))
    if (tool !== '…') addTo(counts, tool, Number(count));
  const unnamed = Number(all) - countIn(counts);
  return unnamed > 0 ? addTo(counts, '…', unnamed) : counts;
}

/** The item of a log for an interruption by the user, which is no call. */
export const interruption = 'The user interrupted.';

/** Returns the calls in an item of a log, by tool. Text in quotes is no call, nor is what does not begin with the name of a tool. */
export function callsIn(item: string): CallCounts {
  const counts = new Map<string, number>();
  if (item === interruption) return counts;
  const bare = item.slice(0, 10_000).replaceAll(/"[^"]*"|`[^`]*`/g, '');
  for (const part of bare.split(' · ')) {
    const [, tool, count, ofFile = '1'] =
      /^([\w.$-]+)(?= |$)(?: ×(\d{1,9}):| [^,:]* ×(\d{1,9}): )?/.exec(part) ?? [];
    if (tool !== undefined) addTo(counts, tool, Number(count ?? ofFile));
  }
  return counts;
}

/** Returns the title of a log, which says if it leaves something out. */
function titleOfLog(items: readonly string[]): string {
  return items.some((item) => readLeftOut(item)) ? titles.done.replace(':', notAll) : titles.done;
}

const notAll = ' (not all of it):';

/** Reads a summary. */
export function readSections(body: string): SummaryItems {
  const items: Record<Section, string[]> = {
    asked: [],
    prose: [],
    done: [],
    found: [],
    shown: [],
    files: [],
    named: [],
    open: [],
  };
  let section: Section | undefined;
  for (const line of body.split('\n')) {
    const title = sectionOf.get(line.replace(notAll, ':'));
    if (title !== undefined) section = title;
    else if (section !== undefined && line.startsWith('- ')) items[section].push(line.slice(2));
    else if (plain(line) !== '') {
      section = undefined;
      items.prose.push(wholeWords(plain(line), 600));
    }
  }
  return items;
}

/** Turns the text of another summarizer into a summary body: all of its lines are prose, whatever titles it contains. */
export function asProse(text: string): string {
  const lines = text
    .split('\n')
    .map((line) => wholeWords(plain(line).replace(/^[-*•]\s+/, ''), 600))
    .filter((line) => line !== '');
  return spellSections({ prose: lines });
}

/** Returns the lines of a summary that another summarizer wrote, for example a model. */
export function proseOf(body: string): readonly string[] {
  return readSections(body).prose;
}

// Items with a name before a colon

/** Writes an item that somebody else's text is quoted in. */
export function spellQuote(name: string, text: string): string {
  return `${name}: ${JSON.stringify(oneLine(text))}`;
}

/** Writes an item of values. */
export function spellValues(group: string, values: readonly string[]): string {
  return `${group}: ${values.map(spellValue).join(', ')}`;
}

/** Reads an item of files: paths with how often something was done to them. */
export function readFiles(item: string): { readonly group: string; readonly files: readonly string[] } {
  const at = item.indexOf(': ');
  return { group: item.slice(0, Math.max(0, at)), files: item.slice(at + 2).split(', ') };
}

/** Reads an item of values. */
export function readValues(item: string): { readonly group: string; readonly values: readonly string[] } {
  const at = item.indexOf(': ');
  if (at < 0) return { group: '', values: [] };
  const values: string[] = [];
  for (const [, quoted, bare] of item.slice(at + 2).matchAll(/("(?:[^"\\]|\\.)*")|([\w./@:#~-]+)/g)) {
    const value = bare ?? unquoted(quoted ?? '');
    if (value !== undefined) values.push(value);
  }
  return { group: item.slice(0, at), values };
}

function unquoted(literal: string): string | undefined {
  try {
    const value: unknown = JSON.parse(literal);
    return typeof value === 'string' ? value : undefined;
  } catch {
    return undefined;
  }
}
