/** Merges flags, variables and the configuration file, remembers where each value comes from, and explains what is wrong with them. */
import { isRecord } from '../../conversation/json-scan.ts';
import { LeporelloError } from '../../errors.ts';
import type { FlagValue } from '../flags.ts';
import { nearest } from '../../checks.ts';
import type { Environment } from '../terminal.ts';
import { describeAt, type Option, options, valueOf } from './options.ts';
import { presetTriggers } from '../../triggers/default-triggers.ts';
import type { z } from 'zod';

/** The source of a value. */
export type Origin =
  | { readonly type: 'flag'; readonly name: string }
  | { readonly type: 'variable'; readonly name: string }
  | { readonly type: 'file'; readonly path: string }
  | { readonly type: 'default' };

export type ConfigSources = {
  readonly flags: readonly FlagValue[];
  readonly env: Environment;
  /** The parsed file and its name. */
  readonly file: { readonly path: string; readonly value: unknown } | undefined;
};

/** The merged value, not yet checked. */
export type MergedConfig = {
  readonly value: Readonly<Record<string, unknown>>;
  originOf(path: readonly PropertyKey[]): Origin;
  /** Unknown variables with the prefix `LEPORELLO_`. */
  readonly unknownVariables: readonly string[];
};

const prefix = 'LEPORELLO_';
/** Variables with the prefix that are not options. */
const otherVariables = ['LEPORELLO_CONFIG', 'LEPORELLO_SECRET'];

/** Merges the sources: flags override variables, and variables override the file. Throws `bad-config`. */
export function mergeSources({ flags, env, file }: ConfigSources): MergedConfig {
  const value = structuredClone((file?.value ?? {}) as Record<string, unknown>);
  const set: SetOption[] = [];
  const lay = (option: Option, text: string, origin: SetOption['origin']): void => {
    const given = valueOf(option, text);
    put(value, option.key.split('.'), given);
    set.unshift({ key: option.key, origin, isOff: given === false });
  };
  for (const option of options) {
    const text = env[option.variable];
    if (text) lay(option, text, { type: 'variable', name: option.variable });
  }
  for (const { flag, key, text } of flags) {
    const option = options.find((known) => known.key === key);
    if (option === undefined) throw new LeporelloError('bad-config', unknownKey(flag, key));
    lay(option, text, { type: 'flag', name: flag });
  }
  checkContradictions(set);
  layPreset(value);
  return {
    value,
    originOf(path) {
      const key = path.map(String).join('.');
      const found = set.find((one) => key === one.key || key.startsWith(`${one.key}.`));
      if (found) return found.origin;
      return file && has(file.value, path) ? { type: 'file', path: file.path } : { type: 'default' };
    },
    unknownVariables: unknownVariables(env),
  };
}

/** Adds the triggers of the preset that no source sets. Its other settings are added where strategies are created. */
function layPreset(value: Record<string, unknown>): void {
  const { preset, triggers = {} } = value;
  if (typeof preset !== 'string' || !Object.hasOwn(presetTriggers, preset) || !isRecord(triggers)) return;
  value['triggers'] = { ...presetTriggers[preset as keyof typeof presetTriggers], ...triggers };
}

/** An option that a flag or a variable sets. */
type SetOption = {
  readonly key: string;
  readonly origin: Extract<Origin, { readonly type: 'flag' | 'variable' }>;
  /** True if it is set to `false`. */
  readonly isOff: boolean;
};

/** Throws if flags turn a feature off and set an option of it, or if variables do: only one of the two can be meant. */
function checkContradictions(set: readonly SetOption[]): void {
  for (const off of set.filter(({ isOff }) => isOff)) {
    const inner = set.find(
      ({ key, origin }) => key.startsWith(`${off.key}.`) && origin.type === off.origin.type,
    );
    if (inner === undefined) continue;
    throw new LeporelloError(
      'bad-config',
      `${off.key} is false (from ${off.origin.name}), but ${inner.key} is set, too (from ${inner.origin.name}). Leave out one of them.`,
    );
  }
}

/** Names an origin in a sentence. */
function spellOrigin(origin: Origin): string {
  switch (origin.type) {
    case 'flag':
    case 'variable':
      return `from ${origin.name}`;
    case 'file':
      return `in ${origin.path}`;
    case 'default':
      return 'the default';
  }
}

function put(target: Record<string, unknown>, path: readonly string[], value: unknown): void {
  const [key = '', ...rest] = path;
  if (rest.length === 0) {
    target[key] = value;
    return;
  }
  const inside = isRecord(target[key]) ? target[key] : {};
  target[key] = inside;
  put(inside, rest, value);
}

function has(value: unknown, path: readonly PropertyKey[]): boolean {
  const [key, ...rest] = path;
  if (key === undefined) return true;
  return isRecord(value) && Object.hasOwn(value, key) && has(value[String(key)], rest);
}

function unknownKey(flag: string, key: string): string {
  const meant = nearest(
    key,
    options.map((option) => option.key),
  );
  const hint = meant === undefined ? '' : ` Did you mean ${meant}?`;
  return `${flag} names ${key}, which is not an option.${hint} All options: docs/configuration.md.`;
}

/**
 * Returns unknown variables with the prefix, except empty ones. Throws for one that resembles an option, which is a typing mistake; others may
 * be set by an orchestrator.
 */
function unknownVariables(env: Environment): readonly string[] {
  const known = [...options.map((option) => option.variable), ...otherVariables];
  const unknown = Object.keys(env).filter(
    (name) => name.startsWith(prefix) && !!env[name] && !known.includes(name),
  );
  const words = known.map(withoutPrefix);
  for (const name of unknown) {
    const meant = nearest(withoutPrefix(name), words);
    if (meant === undefined) continue;
    throw new LeporelloError(
      'bad-config',
      `${name} is set, but is not a variable of Leporello. Did you mean ${prefix}${meant}? If not, unset it.`,
    );
  }
  return unknown.toSorted();
}

function withoutPrefix(name: string): string {
  return name.slice(prefix.length);
}

type Issue = z.core.$ZodIssue;

/** Explains each problem in one or two sentences, in the order of the schema: key, value, origin and allowed values. */
export function spellProblems(issues: readonly Issue[], merged: MergedConfig): readonly string[] {
  return issues
    .flatMap(flattened)
    .flatMap((issue) =>
      issue.code === 'unrecognized_keys'
        ? issue.keys.map((key) => spellUnknown([...issue.path, key], merged))
        : [spellBad(issue, merged)],
    );
}

/** Replaces the problem of a "false or an object" by the object's own problems, which say more, if the value is an object. */
function flattened(issue: Issue): readonly Issue[] {
  if (issue.code !== 'invalid_union') return [issue];
  const inner = issue.errors.find((branch) => branch.some((one) => one.path.length > 0));
  if (inner === undefined) return [issue];
  return inner.map((one) => ({ ...one, path: [...issue.path, ...one.path] })).flatMap(flattened);
}

function spellBad(issue: Issue, merged: MergedConfig): string {
  const { description, fallback } = describeAt(issue.path);
  const allowed = issue.code === 'custom' ? issue.message : description?.allowed;
  const origin = merged.originOf(issue.path);
  if (description?.secret && issue.code === 'too_small')
    return `${issue.path.join('.')} is too short (${spellOrigin(origin)}): it must be ${allowed}.`;
  const value = description?.secret ? 'not allowed' : shown(valueAt(merged.value, issue.path) ?? fallback);
  const sentence = `${issue.path.join('.')} is ${value} (${spellOrigin(origin)}), but must be ${allowed ?? 'an object'}${allowed?.endsWith('?') ? '' : '.'}`;
  return origin.type === 'variable' && value.startsWith('"tcp://') ? `${sentence} ${serviceLinks}` : sentence;
}

/** https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables */
const serviceLinks =
  'Kubernetes sets this variable for a Service of that name: set enableServiceLinks: false in the pod, or use a flag.';

function spellUnknown(path: readonly PropertyKey[], merged: MergedConfig): string {
  const parent = path.slice(0, -1);
  const { keys } = describeAt(parent);
  const meant = nearest(String(path.at(-1)), keys);
  const hint = meant === undefined ? '' : ` Did you mean ${[...parent, meant].join('.')}?`;
  const origin = spellOrigin(merged.originOf(path));
  return `${path.join('.')} (${origin}) is not an option.${hint} Known options: ${keys.join(', ')}.`;
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (inside, key) => (inside as Record<PropertyKey, unknown> | undefined)?.[key],
    value,
  );
}

/** Prints a value on one short line, without the text before an @ in it, which may be a password. */
function shown(value: unknown): string {
  const text = (JSON.stringify(value) ?? 'missing').replaceAll(/"(\w+:\/\/)?[^"]*@/g, '"$1...@');
  return text.length > 80 ? `${text.slice(0, 79).toWellFormed()}…` : text;
}
