/**
 * Collects the values in the arguments of calls, each with the tool and argument that last used it, how often it was used, and how long
 * ago. Values used often or recently are likely to be used next. Bounded: it keeps some thousands of the best, so it stays linear. Reads
 * plans, too. Pure.
 */
import { parseRecord } from '../conversation/json-scan.ts';
import { oneLine, wholeWords } from './outcome.ts';
import { nameOf, plain } from './sentences.ts';
import { planIn } from './step-line.ts';

/** A collection of values. */
export interface Values {
  /** Adds the arguments of the next call. */
  add(tool: string, argumentsJson: string): void;
  /** Adds a value of an earlier summary; `rank` 0 for the best one. */
  remember(group: string, text: string, rank: number): void;
  /** Returns the best values, best first, at most `max`. */
  best(max: number): readonly KnownValue[];
}

/** A value that calls used. */
export type KnownValue = {
  readonly text: string;
  /** Tool and argument: `Read file_path`. */
  readonly group: string;
  /** Number of calls since its last use. */
  readonly age: number;
};

type RememberedValue = {
  readonly text: string;
  group: string;
  /** True for a line of a longer text, which says less than a name. */
  isLine: boolean;
  times: number;
  /** Number of the call that used it last. */
  last: number;
};

const maxLength = 200;
const minLine = 20;
/** Maximum lines of one text: the first lines of a whole file say enough. */
const maxLines = 200;
const maxRead = 100_000;
/** Number of entries above which the worse half is dropped. */
const maxEntries = 8_000;
/** Number of calls after which a value's weight is halved. */
const halfLife = 6;
/** The weight of a line relative to a name. */
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
    if (entries.size > maxEntries) entries = new Map(ranked(maxEntries / 2).map((one) => [one.text, one]));
  }

  function ranked(max: number): readonly RememberedValue[] {
    const scored = [...entries.values()].map((entry) => ({ entry, score: scoreOf(entry, calls) }));
    return scored
      .toSorted((a, b) => b.score - a.score || b.entry.last - a.entry.last)
      .slice(0, max)
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
    best: (max) => ranked(max).map(({ text, group, last }) => ({ text, group, age: calls - last })),
  };
}

/** Scores a value: its weight relative to its length. */
function scoreOf({ text, isLine, times, last }: RememberedValue, calls: number): number {
  const worth = (isLine ? lineWorth : 1) * Math.log2(1 + times);
  return worth / (1 + (calls - last) / halfLife) / (6 + text.length / 4);
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
    // A tool cannot use arguments that are not JSON.
  }
  return found;
}

function textsIn(text: string, key: string): readonly ArgumentValue[] {
  const lines = text.trim().slice(0, maxRead).split('\n');
  const [only = ''] = lines;
  if (lines.length === 1) {
    const value = plain(only);
    if (value.length > maxLength) return wordsIn(value).map((word) => ({ key, text: word, isLine: false }));
    return value.length < 3 ? [] : [{ key, text: value, isLine: false }];
  }
  return lines
    .slice(0, maxLines)
    .map(plain)
    .filter((line) => line.length >= minLine && line.length <= maxLength)
    .map((line) => ({ key, text: line, isLine: true }));
}

/** Returns words with an inner sign, for a line too long to be kept as a whole. */
function wordsIn(line: string): readonly string[] {
  const words = line.slice(0, 4_000).split(/[\s"'`,;()[\]{}<>|&=]+/);
  return [
    ...new Set(words.filter((word) => word.length >= 6 && word.length <= 120 && /\w[./_-]\w/.test(word))),
  ];
}

// Plans

const maxItems = 40;

/** Returns the items of a plan in the arguments of a call by status, in the words of the call; undefined if there is no plan. */
export function planByStatus(argumentsJson: string): ReadonlyMap<string, readonly string[]> | undefined {
  if (!argumentsJson.includes('"status"')) return undefined;
  const items = planIn(parseRecord(argumentsJson) ?? {})?.slice(-maxItems);
  if (items === undefined || items.some(({ words }) => words === '')) return undefined;
  const plan = new Map<string, string[]>();
  for (const { status, words } of items) {
    const key = nameOf(plain(status));
    plan.set(key, [...(plan.get(key) ?? []), wholeWords(oneLine(words), 160)]);
  }
  return plan;
}
