/** Parses the flags of one command, and reads their values. Throws `bad-usage` for flags and values that are not allowed. */
import { type ParseArgsOptionsConfig, parseArgs as parseFlags } from 'node:util';
import { nearest } from '../checks.ts';
import { type FormatName, wireFormats } from '../library/formats.ts';
import { LeporelloError } from '../errors.ts';

/** The part of a command line that sets the configuration. */
export type SettingArgs = {
  readonly file: string | undefined;
  readonly values: readonly FlagValue[];
};

/** A flag that sets an option. `key` is the option, such as `port` or, from `--set`, `limits.maxBodyBytes`. */
export type FlagValue = { readonly flag: string; readonly key: string; readonly text: string };

/** The options of the configuration that have their own flag. */
export const keyOfFlag: Readonly<Record<string, string>> = {
  port: 'port',
  host: 'host',
  data: 'data',
  'openai-url': 'openaiUrl',
  'anthropic-url': 'anthropicUrl',
  'gemini-url': 'geminiUrl',
  'log-level': 'logLevel',
  'min-result-bytes': 'minResultBytes',
  lossless: 'shrinks.lossless',
  preset: 'preset',
};

/** The flags and operands of one command. */
export type ParsedFlags = {
  readonly command: string;
  readonly operands: readonly string[];
  /** Everything after `--`, for commands that pass it on. */
  readonly rest: readonly string[];
  has(flag: string): boolean;
  text(flag: string): string | undefined;
  texts(flag: string): readonly string[];
};

/** Parses the arguments of a command that has these flags. */
export function parseCommand(
  command: string,
  argv: readonly string[],
  options: ParseArgsOptionsConfig,
): ParsedFlags {
  const { values, positionals } = readFlags(argv, options, command);
  return {
    command,
    operands: positionals,
    rest: [],
    has: (flag) => values[flag] !== undefined,
    // The value of a boolean flag is true.
    text: (flag) => (values[flag] === undefined ? undefined : String(values[flag])),
    texts: (flag) => (values[flag] as readonly string[] | undefined) ?? [],
  };
}

/** Parses the arguments of a command that passes everything after `--` on. */
export function parseWithRest(
  command: string,
  argv: readonly string[],
  options: ParseArgsOptionsConfig,
): ParsedFlags {
  const end = argv.includes('--') ? argv.indexOf('--') : argv.length;
  try {
    return { ...parseCommand(command, argv.slice(0, end), options), rest: argv.slice(end + 1) };
  } catch (error) {
    if (!LeporelloError.isInstance(error)) throw error;
    throw new LeporelloError('bad-usage', `${error.message} Flags of the client come after --.`);
  }
}

/** Parses flags. `what` names the command in errors. */
export function readFlags(argv: readonly string[], options: ParseArgsOptionsConfig, what: string) {
  try {
    return parseFlags({ args: [...argv], options, strict: true, allowPositionals: true });
  } catch (cause) {
    throw new LeporelloError('bad-usage', flagProblem(cause, options, what), { cause });
  }
}

/** Explains an error of Node's parser, whose own messages give advice that does not fit every shell. */
function flagProblem(cause: unknown, options: ParseArgsOptionsConfig, what: string): string {
  const said = cause instanceof Error ? cause.message : String(cause);
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
  const flag = /'(?:-\w, )?(--?[^' =<]+)/.exec(said)?.[1] ?? '';
  const known = Object.keys(options).map((name) => `--${name}`);
  switch (code) {
    case 'ERR_PARSE_ARGS_UNKNOWN_OPTION': {
      const meant = nearest(flag, known);
      const hint = meant === undefined ? '' : ` Did you mean ${meant}?`;
      return `${what} has no flag ${flag}.${hint} Its flags are ${known.toSorted().join(', ')}.`;
    }
    case 'ERR_PARSE_ARGS_INVALID_OPTION_VALUE':
      return options[flag.replace(/^-+/, '')]?.type === 'boolean'
        ? `${flag} takes no value.`
        : `${flag} needs a value: ${flag}=VALUE, or ${flag} VALUE if the value does not begin with a dash.`;
    default:
      return said;
  }
}

/** Throws if there are operands. */
export function noOperands({ command, operands }: ParsedFlags): void {
  if (operands[0] === undefined) return;
  throw new LeporelloError('bad-usage', `${command} accepts only flags, not ${operands[0]}.`);
}

/** Returns the only operand. `what` says in the error what is missing. */
export function oneOperand({ command, operands }: ParsedFlags, what: string): string {
  const [only, extra] = operands;
  if (only === undefined) throw new LeporelloError('bad-usage', `${command} needs ${what}.`);
  if (extra !== undefined) {
    throw new LeporelloError('bad-usage', `${command} accepts only one argument, not ${operands.join(' ')}.`);
  }
  return only;
}

/** Returns the value of a flag as a number of at least 1; undefined without the flag. */
export function wholeNumber(given: ParsedFlags, flag: string): number | undefined {
  const value = given.text(flag);
  if (value === undefined) return undefined;
  if (/^[1-9]\d{0,14}$/.test(value)) return Number(value);
  throw new LeporelloError('bad-usage', `--${flag} is ${value}, but must be a whole number of at least 1.`);
}

/** Returns the value of a flag as an amount above 0; undefined without the flag. */
export function amountOf(given: ParsedFlags, flag: string): number | undefined {
  const value = given.text(flag);
  if (value === undefined) return undefined;
  if (/^\d{1,9}(?:\.\d+)?$/.test(value) && Number(value) > 0) return Number(value);
  throw new LeporelloError('bad-usage', `--${flag} is ${value}, but must be a number above 0, such as 2.5.`);
}

/** Returns the flags that set the configuration. */
export function settingsIn(given: ParsedFlags): SettingArgs {
  const own = Object.entries(keyOfFlag).flatMap(([flag, key]): FlagValue[] => {
    const value = given.text(flag);
    return value === undefined ? [] : [{ flag: `--${flag}`, key, text: value }];
  });
  const set = given.texts('set').map((assignment): FlagValue => {
    const [, key, value] = /^([^=]+)=(.*)$/s.exec(assignment) ?? [];
    if (key !== undefined && value !== undefined) return { flag: '--set', key, text: value };
    throw new LeporelloError(
      'bad-usage',
      `--set is ${assignment}, but must be KEY=VALUE, as in --set port=8788.`,
    );
  });
  return { file: given.text('config'), values: [...own, ...set] };
}

/** A wire format that `--format` names. */
export type Format = 'auto' | FormatName;

/** Returns the value of `--format`. */
export function formatIn(given: ParsedFlags): Format {
  const word = given.text('format') ?? 'auto';
  const formats = ['auto', ...(Object.keys(wireFormats) as FormatName[])] as const;
  const format = formats.find((name) => name === word);
  if (format !== undefined) return format;
  throw new LeporelloError('bad-usage', `--format is ${word}, but must be one of ${formats.join(', ')}.`);
}
