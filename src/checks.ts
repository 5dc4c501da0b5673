/**
 * Checks the settings that a program passes in, once, before they are used. Errors name the path, the value and what is allowed. Pure; throws
 * only `bad-config`.
 */
import { isRecord } from './conversation/json-scan.ts';
import { LeporelloError } from './errors.ts';

/** Returns a sentence for each problem with a value. `path` names the value, for example `triggers.tokenBudget.targetTokens`. */
export type Check = (value: unknown, path: string) => readonly string[];

/** A check for each key of an object type; for a union, a check for each key of all its members. */
export type Checks<T> = { readonly [Key in KeyOfEach<T>]: Check };
type KeyOfEach<T> = T extends unknown ? keyof T : never;

/** Throws `bad-config` with one line for each problem. `undefined` is allowed unless a key is required. `path` names the settings. */
export function checkSettings(check: Check, settings: unknown, path = ''): void {
  const problems = check(settings, path);
  if (problems.length > 0) throw new LeporelloError('bad-config', problems.join('\n'));
}

/** Checks a value with `isAllowed`. `words` completes the sentence "... but must be". */
export function allowed(words: string, isAllowed: (value: unknown) => boolean): Check {
  return (value, path) => (isAllowed(value) ? [] : [refusal(path, shown(value), words)]);
}

/** Checks a value that must not be printed, as `allowed` does. `describe` says what is wrong with it. */
export function secret(
  words: string,
  isAllowed: (value: unknown) => boolean,
  describe: (value: unknown) => string,
): Check {
  return (value, path) => (isAllowed(value) ? [] : [refusal(path, describe(value), words)]);
}

export function wholeNumber(min: number, max = Number.MAX_SAFE_INTEGER): Check {
  const range = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`;
  return allowed(
    `a whole number ${range}`,
    (value) => Number.isSafeInteger(value) && Number(value) >= min && Number(value) <= max,
  );
}

export function numberFrom(min: number): Check {
  return allowed(
    `a number of at least ${min}`,
    (value) => typeof value === 'number' && Number.isFinite(value) && value >= min,
  );
}

export const positiveNumber: Check = allowed(
  'a number above 0',
  (value) => typeof value === 'number' && Number.isFinite(value) && value > 0,
);

/** The longest time that a timer waits, about 24 days. One that is to wait longer would end at once. */
export const maxTimerMs = 2_147_483_647;

/** Checks for a number above 0 and at most 1, or below 1 with `isWhole: false`. */
export function fraction({ isWhole = true } = {}): Check {
  return allowed(
    `a number above 0 and ${isWhole ? 'at most' : 'below'} 1`,
    (value) => typeof value === 'number' && value > 0 && (value < 1 || (isWhole && value === 1)),
  );
}

export function oneOf(...words: readonly string[]): Check {
  const list = words.map((word) => JSON.stringify(word));
  return allowed(`${list.slice(0, -1).join(', ')} or ${list.at(-1)}`, (value) =>
    words.includes(value as string),
  );
}

export const trueOrFalse: Check = allowed('true or false', (value) => typeof value === 'boolean');

export const someText: Check = allowed(
  'a text of at least one character',
  (value) => typeof value === 'string' && value !== '',
);

export function listOf(words: string, isAllowed: (value: unknown) => boolean): Check {
  return allowed(`a list of ${words}`, (value) => Array.isArray(value) && value.every(isAllowed));
}

/** The source of a regular expression for ids of originals: `mem_` and 16 characters of Crockford's base32 (80 bits). */
export const memoryIdPattern = 'mem_[0-9a-hjkmnp-tv-z]{16}';

/** Says in errors and help which values are base URLs; an example follows it. */
export const baseUrlWords = 'an http or https URL without user, query and fragment, such as';

/** True for a base URL without credentials: these would not be sent, and would show up in error messages. */
export function isBaseUrl(value: unknown): boolean {
  if (typeof value !== 'string' || !URL.canParse(value)) return false;
  const { protocol, username, password, search, hash } = new URL(value);
  return /^https?:$/.test(protocol) && `${username}${password}${search}${hash}` === '';
}

export const isText = (value: unknown): boolean => typeof value === 'string' && value !== '';

/** Allows `false`, and every value that the check allows. */
export function offOr(check: Check): Check {
  return (value, path) => (value === false ? [] : check(value, path).map(withFalse));
}

/** Adds to a problem that `false` is allowed, too. */
function withFalse(problem: string): string {
  return problem.replace('but must be an object', 'but must be false or an object');
}

/** Checks for an object with these keys and no others. */
export function object<T>(checks: Checks<T>, { required = [] as readonly (keyof Checks<T>)[] } = {}): Check {
  const known: Readonly<Record<string, Check>> = checks;
  const keys = Object.keys(known);
  return (value, path) => {
    if (!isRecord(value)) return [refusal(path, shown(value), `an object with ${listed(keys)}`)];
    return [
      ...Object.keys(value)
        .filter((key) => !Object.hasOwn(known, key))
        .map((key) => unknownKey(path, key, keys)),
      ...keys.flatMap((key) => {
        const inner = value[key];
        if (inner === undefined && !(required as readonly string[]).includes(key)) return [];
        return known[key]!(inner, at(path, key));
      }),
    ];
  };
}

/** Checks for an object whose keys the user chooses. */
export function recordOf(words: string, check: Check): Check {
  return (value, path) => {
    if (!isRecord(value)) return [refusal(path, shown(value), words)];
    return Object.entries(value).flatMap(([key, inner]) => check(inner, `${path}[${JSON.stringify(key)}]`));
  };
}

/** Checks for an object with these functions. It may have others. */
export function thingWith(words: string, ...functions: readonly string[]): Check {
  return allowed(
    `${words}, with the function${functions.length > 1 ? 's' : ''} ${listed(functions)}`,
    (value) =>
      typeof value === 'object' &&
      value !== null &&
      functions.every((name) => typeof (value as Readonly<Record<string, unknown>>)[name] === 'function'),
  );
}

function refusal(path: string, value: string, words: string): string {
  return `${path === '' ? 'The settings are' : `${path} is`} ${value}, but must be ${words}.`;
}

function unknownKey(path: string, key: string, keys: readonly string[]): string {
  const suggestion = nearest(key, keys);
  const hint = suggestion === undefined ? '' : ` Did you mean ${at(path, suggestion)}?`;
  return `${at(path, key)} is not an option.${hint} Known options: ${keys.join(', ')}.`;
}

function at(path: string, key: string): string {
  return path === '' ? key : `${path}.${key}`;
}

function listed(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`;
}

/** Prints a value on one short line, including values that JSON cannot hold. */
export function shown(value: unknown): string {
  if (typeof value === 'function') return 'a function';
  if (value instanceof Promise) return 'a promise (write await before it)';
  if (value instanceof Uint8Array) return `${value.length} bytes`;
  if (value === undefined) return 'missing';
  if (typeof value === 'number' || typeof value === 'bigint') return String(value);
  let text: string;
  try {
    text = JSON.stringify(value) ?? typeof value;
  } catch {
    text = 'an object';
  }
  return text.length > 80 ? `${text.slice(0, 79).toWellFormed()}…` : text;
}

/**
 * Returns the secret for a store. Without a store, the originals end with the process, and a random secret will do. Throws `bad-config`
 * for a store without a secret: the next process could not read anything.
 */
export function secretFor(
  store: { readonly name: string } | undefined,
  given: Uint8Array | undefined,
): Uint8Array {
  if (given === undefined && store !== undefined) {
    throw new LeporelloError(
      'bad-config',
      `secret is missing: without it, nothing in the ${store.name} store could be read after a restart. Create a secret once (openssl rand -base64 32), keep it where you keep passwords, and pass it with every start: secret: new TextEncoder().encode(text).`,
    );
  }
  return given ?? crypto.getRandomValues(new Uint8Array(32));
}

// Suggestions for misspelled words

/**
 * Returns the known word that is most like this one, or the new name of a renamed setting. Undefined when none is close: more than a
 * third of its letters differ, and more than one.
 */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const newName = newNameOf(word, known);
  if (newName !== undefined) return newName;
  let best: { readonly word: string; readonly distance: number } | undefined;
  for (const candidate of known) {
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase());
    const max = Math.max(1, Math.floor(candidate.length / 3));
    if (distance <= max && distance < (best?.distance ?? Number.POSITIVE_INFINITY)) {
      best = { word: candidate, distance };
    }
  }
  return best?.word;
}

/**
 * The renamed settings: the old key, and its new names in the objects that had it. Names of variables and flags follow from them. An old name
 * may also end a longer one, such as `triggers.tokenBudget.target` or `TRIGGERS_TOKEN_BUDGET_TARGET`.
 */
const renamedSettings: readonly (readonly [old: string, now: readonly string[]])[] = [
  ['stepsUsedFor', ['keepStepsForRequests']],
  ['usedFor', ['keepForRequests']],
  ['patience', ['minPayback']],
  ['least', ['minTokens']],
  ['trigger', ['triggerTokens', 'triggerShare']],
  ['target', ['targetTokens', 'targetShare', 'targetMessages']],
  ['buffer', ['bufferTokens', 'bufferMessages']],
  ['mark', ['markShare']],
  ['compressionBytesThreshold', ['minResultBytes']],
  ['threshold', ['minResultBytes']],
  ['window', ['windowTokens']],
  ['prefix', ['prefixTokens']],
  ['maxInput', ['maxInputTokens']],
  ['maxOutput', ['maxOutputTokens']],
  ['prices', ['usdPerMillionTokens']],
  ['budget', ['budgetTokens']],
  ['newest', ['newestShare']],
];

function newNameOf(word: string, known: readonly string[]): string | undefined {
  return renamedSettings
    .flatMap(([old, names]) =>
      names.flatMap((now) => spellings.map((spell) => [spell(old), spell(now)] as const)),
    )
    .filter(([old]) => word.endsWith(old))
    .map(([old, now]) => word.slice(0, -old.length) + now)
    .find((name) => known.includes(name));
}

/** Spells a key as it is, as a part of a variable's name, and as a part of a flag. */
const spellings: readonly ((key: string) => string)[] = [
  (key) => key,
  (key) => key.replaceAll(/[A-Z]/g, '_$&').toUpperCase(),
  (key) => key.replaceAll(/[A-Z]/g, '-$&').toLowerCase(),
];

/** Counts the insertions, deletions, replacements and swaps of neighbors between two words (optimal string alignment). */
function editDistance(one: string, other: string): number {
  let before: readonly number[] = [];
  let previous: readonly number[] = Array.from({ length: other.length + 1 }, (_, j) => j);
  for (let i = 1; i <= one.length; i++) {
    const row = [i];
    for (let j = 1; j <= other.length; j++) {
      const same = one[i - 1] === other[j - 1];
      const swapped = i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1];
      row.push(
        Math.min(
          previous[j]! + 1,
          row[j - 1]! + 1,
          previous[j - 1]! + (same ? 0 : 1),
          swapped ? before[j - 2]! + 1 : Number.POSITIVE_INFINITY,
        ),
      );
    }
    before = previous;
    previous = row;
  }
  return previous[other.length]!;
}
