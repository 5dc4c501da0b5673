/**
 * Writes the sections of an extractive summary, and reads a summary back, so that the next one includes it and nothing is summarized twice. One list in order
 * of time has all that was said and done. A line that is not a title is an item and begins with `- `, so quoted text cannot be mistaken
 * for a title. Lines outside of sections were written by another summarizer and are kept as prose. Pure.
 */
import { oneLine, wholeWords } from './outcome.ts';
import { plain } from './sentences.ts';

export const titles = {
  prose: 'Earlier summary:',
  log: 'In order (what USER demanded holds unless taken back later; YOU is the model):',
  /** The log of a part that goes on behind messages that stay. */
  more: 'In order:',
  files: 'Files touched until then:',
  open: 'Open then:',
} as const;

/** Sections of the log: what the user asked, calls, what the model said, and what results and longer texts said. */
const loggedSections = ['asked', 'done', 'found', 'shown'] as const;
type LoggedSection = (typeof loggedSections)[number];

export type Section = LoggedSection | Exclude<keyof typeof titles, 'log' | 'more'> | 'named';

/** Items of a summary by section. */
export type SummaryItems = Readonly<Record<Section, readonly string[]>>;

/** An item of the log. */
export type LogItem = {
  readonly section: LoggedSection;
  readonly text: string;
  /** The number of the original that has it, if another one has the item before, and of the one that has its end, if that is another one. */
  readonly original?: number | undefined;
  readonly lastOriginal?: number | undefined;
};

type TitledSection = keyof typeof titles;

const sectionOf = new Map<string, Section | 'log'>([
  ...(Object.keys(titles) as readonly TitledSection[]).map(
    (name) => [titles[name], name === 'more' ? 'log' : name] as const,
  ),
  // Versions before this one wrote a section for each.
  ['The user asked, in order (all of it holds unless taken back later):', 'asked'],
  ['Done, in order:', 'done'],
  ['Done, in order (not all of it):', 'done'],
  ['Found:', 'found'],
  ['Tools and longer texts said:', 'shown'],
  ['Files touched:', 'files'],
  // They also listed values of calls, which nobody can read.
  ['Calls named:', 'named'],
]);

/** Writes sections that have items. */
export function spellSections(
  items: { readonly [name in TitledSection]?: readonly string[] | undefined },
): string {
  return (Object.keys(titles) as readonly TitledSection[])
    .flatMap((section) => {
      const lines = items[section] ?? [];
      return lines.length === 0 ? [] : [titles[section], ...lines.map((line) => `- ${line}`)];
    })
    .join('\n');
}

/** Writes an item of the log: it begins with who said it, or with a tool, behind the number of its original. */
export function spellLogItem({ section, text, original, lastOriginal }: LogItem): string {
  const numbers = lastOriginal === undefined ? `${original}` : `${original}-${lastOriginal}`;
  return `${original === undefined ? '' : `[${numbers}] `}${saidItem({ section, text })}`;
}

function saidItem({ section, text }: LogItem): string {
  switch (section) {
    case 'asked':
      return `USER${/^(?:REFUSED|INTERRUPTED) /.test(text) ? ' ' : ': '}${text}`;
    case 'found':
      return `YOU: ${text}`;
    case 'shown':
      return `RESULT of ${text}`;
    case 'done':
      return text;
  }
}

function readLogItem(item: string): LogItem {
  // Versions before this one quoted messages that stay.
  const [begin = '', original, lastOriginal, who, of] =
    /^(?:\[(\d{1,9})(?:-(\d{1,9}))?\] )?(?:(USER)(?: \((?:still in the context|message above)\))?(?:: | (?=REFUSED |INTERRUPTED ))|(YOU: |RESULT of ))?/.exec(
      item,
    ) ?? [];
  const section = who ? 'asked' : of === undefined ? 'done' : of === 'YOU: ' ? 'found' : 'shown';
  return {
    section,
    text: item.slice(begin.length),
    ...(original !== undefined && { original: Number(original) }),
    ...(lastOriginal !== undefined && { lastOriginal: Number(lastOriginal) }),
  };
}

/** Begins a line of an earlier summary that tells how things stood when the client wrote it. */
export const stateMark = '(state at that time) ';

/** The item of a log for an interruption by the user, which is no call. */
export const interruption = 'The user interrupted.';

/** Reads a summary: its items by section, and those of the log in order. */
export function readSections(body: string): SummaryItems & { readonly log: readonly LogItem[] } {
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
  const log: LogItem[] = [];
  let section: Section | 'log' | undefined;
  for (const line of body.split('\n')) {
    const title = sectionOf.get(line);
    if (title !== undefined) section = title;
    else if (section !== undefined && line.startsWith('- ')) {
      const item = section === 'log' ? readLogItem(line.slice(2)) : { section, text: line.slice(2) };
      items[item.section].push(item.text);
      if (isLogged(item)) log.push(item);
    } else if (plain(line) !== '') {
      section = undefined;
      items.prose.push(wholeWords(plain(line), 600));
    }
  }
  return { ...items, log };
}

function isLogged(item: { readonly section: Section; readonly text: string }): item is LogItem {
  return (loggedSections as readonly string[]).includes(item.section);
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

/** Joins items in which texts of the same name are quoted; others stand side by side. */
export function joinedQuotes(before: string, item: string, isGap: boolean): string {
  const at = item.indexOf(': "') + 3;
  const isSame = at > 2 && before.startsWith(item.slice(0, at)) && before.endsWith('"');
  return isSame ? `${before.slice(0, -1)} ${isGap ? '… ' : ''}${item.slice(at)}` : `${before}; ${item}`;
}

/** UTF-16 units of the shortest folder that is named once for its files. */
const minFolder = 12;

/** Writes an item of files, with the folder of all of them once: `edited in /app/src/: a.ts ×2, lib/b.ts`. */
export function spellFiles(group: string, files: readonly string[]): string {
  const [first = '', ...others] = files;
  let folder = first.slice(0, first.lastIndexOf('/') + 1);
  while (folder !== '' && !others.every((file) => file.startsWith(folder)))
    folder = folder.slice(0, folder.slice(0, -1).lastIndexOf('/') + 1);
  if (others.length === 0 || folder.length < minFolder || folder.includes(': '))
    return `${group}: ${files.join(', ')}`;
  return `${group} in ${folder}: ${files.map((file) => file.slice(folder.length)).join(', ')}`;
}

/** Reads an item of files: paths with how often something was done to them. */
export function readFiles(item: string): { readonly group: string; readonly files: readonly string[] } {
  const at = Math.max(0, item.indexOf(': '));
  const [, group = item.slice(0, at), folder = ''] =
    /^(?=.*\/$)(.*?) in (\S.*\/)$/s.exec(item.slice(0, at)) ?? [];
  return {
    group,
    files: item
      .slice(at + 2)
      .split(', ')
      .map((file) => folder + file),
  };
}

/** Identifies a folder among the sections that were begun. */
export function groupKey(group: string): string {
  return `= ${group}`;
}

/** Returns the tokens that a line adds to a summary. `begun`: the sections and folders that have lines already. */
export function costOf(
  { section, text, group }: { readonly section: Section; readonly text: string; readonly group?: string },
  begun: ReadonlySet<string>,
  count: (text: string) => number,
): number {
  const item = { section, text };
  const titled = isLogged(item) ? 'log' : (section as keyof typeof titles);
  const title = begun.has(titled) ? 0 : count(`${titles[titled]}\n`);
  if (group === undefined) return title + count(`- ${isLogged(item) ? spellLogItem(item) : text}\n`);
  // Files are told by their paths in a folder.
  return (
    title +
    count(`${text.split('/').slice(-2).join('/')}, `) +
    (begun.has(groupKey(group)) ? 0 : count(`- ${group}: \n`))
  );
}
