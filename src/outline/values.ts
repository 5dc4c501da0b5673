/**
 * What calls were about: the values of their arguments, each with the tool and the argument it was last given to, how often and how long ago.
 * What was used often or lately is what is used next. Bounded: it remembers some thousands of the best, so it stays linear. Pure.
 */
import { nameOf, plain } from './sentences.ts';

export interface Values {
  /** Takes in the arguments of the next call. */
  add(tool: string, argumentsJson: string): void;
  /** Takes in a value of an earlier summary: `rank` 0 for the best of them. */
  remember(group: string, text: string, rank: number): void;
  /** Best first, at most `most`. */
  best(most: number): readonly KnownValue[];
}

export type KnownValue = {
  readonly text: string;
  /** Tool and argument: `Read file_path`. */
  readonly group: string;
  /** Calls behind it. */
  readonly age: number;
};

type RememberedValue = {
  readonly text: string;
  group: string;
  /** A line of a longer text, which says less than a name does. */
  isLine: boolean;
  times: number;
  /** The call that used it last. */
  last: number;
};

const longest = 200;
const shortestLine = 20;
/** Lines of one text: of a whole file the first ones say enough. */
const mostLines = 200;
const mostRead = 100_000;
/** Entries above which the worse half is forgotten. */
const mostEntries = 8_000;
/** Calls after which a value is worth half as much. */
const halfLife = 20;
/** What a line is worth beside a name. */
const lineWorth = 0.5;

export function createValues(): Values {
  let entries = new Map<string, RememberedValue>();
  let calls = 0;

  function put(group: string, text: string, isLine: boolean, last: number): void {
    const known = entries.get(text);
    if (known) {
      known.times++;
      known.isLine &&= isLine;
      if (last >= known.last) Object.assign(known, { group, last });
    } else entries.set(text, { text, group, isLine, times: 1, last });
    if (entries.size > mostEntries) entries = new Map(ranked(mostEntries / 2).map((one) => [one.text, one]));
  }

  function ranked(most: number): readonly RememberedValue[] {
    const scored = [...entries.values()].map((entry) => ({ entry, score: scoreOf(entry, calls) }));
    return scored
      .toSorted((a, b) => b.score - a.score || b.entry.last - a.entry.last)
      .slice(0, most)
      .map(({ entry }) => entry);
  }

  return {
    add(tool, argumentsJson) {
      calls++;
      for (const { key, text, isLine } of valuesIn(argumentsJson))
        put(key === '' ? nameOf(tool) : `${nameOf(tool)} ${nameOf(key)}`, text, isLine, calls);
    },
    remember(group, text, rank) {
      put(group, text, false, -rank);
    },
    best: (most) => ranked(most).map(({ text, group, last }) => ({ text, group, age: calls - last })),
  };
}

/** By what it takes to say it. */
function scoreOf({ text, isLine, times, last }: RememberedValue, calls: number): number {
  const worth = (isLine ? lineWorth : 1) * Math.log2(1 + times);
  return worth / (1 + (calls - last) / halfLife) / (2 + text.length / 4);
}

type ArgumentValue = { readonly key: string; readonly text: string; readonly isLine: boolean };

function valuesIn(argumentsJson: string): readonly ArgumentValue[] {
  const found: ArgumentValue[] = [];
  const visit = (value: unknown, key: string): void => {
    if (typeof value === 'string') for (const one of textsIn(value, key)) found.push(one);
    else if (typeof value === 'number' && Math.abs(value) >= 100)
      found.push({ key, text: String(value), isLine: false });
    else if (Array.isArray(value)) for (const item of value) visit(item, key);
    else if (typeof value === 'object' && value !== null)
      for (const [name, inner] of Object.entries(value)) visit(inner, name);
  };
  try {
    visit(JSON.parse(argumentsJson), '');
  } catch {
    // Arguments that are not JSON were not used by anything, either.
  }
  return found;
}

function textsIn(text: string, key: string): readonly ArgumentValue[] {
  const lines = text.trim().slice(0, mostRead).split('\n');
  const [only = ''] = lines;
  if (lines.length === 1) {
    const value = plain(only);
    if (value.length > longest) return wordsIn(value).map((word) => ({ key, text: word, isLine: false }));
    return value.length < 3 ? [] : [{ key, text: value, isLine: false }];
  }
  return lines
    .slice(0, mostLines)
    .map(plain)
    .filter((line) => line.length >= shortestLine && line.length <= longest)
    .map((line) => ({ key, text: line, isLine: true }));
}

/** Words with a mark of their own, of a line too long to be kept. */
function wordsIn(line: string): readonly string[] {
  const words = line.slice(0, 4_000).split(/[\s"'`,;()[\]{}<>|&=]+/);
  return [
    ...new Set(words.filter((word) => word.length >= 6 && word.length <= 120 && /\w[./_-]\w/.test(word))),
  ];
}
