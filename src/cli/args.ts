/**
 * Parses the command line. Throws `bad-usage` for invalid arguments, and names the valid ones. Values of the configuration stay text here;
 * config/ parses and checks them.
 */
import type { ParseArgsOptionsConfig } from 'node:util';
import { LeporelloError } from '../errors.ts';
import { parseRange } from '../recall/text-ranges.ts';
import { nearest } from '../checks.ts';
import { type AgentCliName, agentCliIn } from './wrap/clients.ts';
import {
  type Format,
  type ParsedFlags,
  type SettingArgs,
  formatIn,
  noOperands,
  oneOperand,
  parseCommand,
  parseWithRest,
  readFlags,
  settingsIn,
  wholeNumber,
} from './flags.ts';

/** A parsed command line. */
export type Args =
  | { readonly command: 'help'; readonly topic: CommandName | undefined }
  | { readonly command: 'version'; readonly json: boolean }
  | { readonly command: 'state' }
  | ServeArgs
  | WrapArgs
  | CompactArgs
  | RecallArgs
  | InspectArgs
  | McpArgs
  | ReplayArgs
  | SavingsArgs
  | DoctorArgs
  | DemoArgs;

export type ServeArgs = {
  readonly command: 'serve';
  readonly settings: SettingArgs;
  /** Whether the gateway ends with the last `leporello wrap` that uses it. */
  readonly forWraps: boolean;
  readonly json: boolean;
};

export type WrapArgs = {
  readonly command: 'wrap';
  readonly client: AgentCliName;
  /** Arguments for the client. */
  readonly rest: readonly string[];
  /** Whether only the environment and the arguments are printed. */
  readonly print: boolean;
  readonly settings: SettingArgs;
  readonly json: boolean;
};

export type CompactArgs = {
  readonly command: 'compact';
  /** A path, or `-` for standard input. */
  readonly file: string;
  readonly format: Format;
  readonly model: string | undefined;
  /** The window in tokens. */
  readonly window: number | undefined;
  readonly out: string | undefined;
  readonly settings: SettingArgs;
  readonly json: boolean;
};

export type RecallArgs = {
  readonly command: 'recall';
  readonly id: string;
  readonly part: { readonly query?: string; readonly lines?: string; readonly path?: string };
  readonly maxTokens: number | undefined;
  readonly raw: boolean;
  readonly settings: SettingArgs;
  readonly json: boolean;
};

export type InspectArgs = {
  readonly command: 'inspect';
  /** The id of a receipt; undefined for the newest ones. */
  readonly receipt: string | undefined;
  /** The number of newest receipts. */
  readonly last: number;
  /** The label of the tenant; undefined for the one that all requests belong to. */
  readonly tenant: string | undefined;
  readonly settings: SettingArgs;
  readonly json: boolean;
};

export type McpArgs = {
  readonly command: 'mcp';
  /** The port of an HTTP server; undefined for standard input and output. */
  readonly port: number | undefined;
  /** The label of the tenant; undefined for `local`. */
  readonly tenant: string | undefined;
  readonly settings: SettingArgs;
  readonly json: boolean;
};

export type ReplayArgs = {
  readonly command: 'replay';
  readonly files: readonly string[];
  readonly format: Format;
  /** The window in tokens. */
  readonly window: number | undefined;
  /** Tokens of the prefix of a recorded conversation. */
  readonly prefix: number | undefined;
  /** Maximum number of conversations of each source. */
  readonly limit: number | undefined;
  readonly source: string | undefined;
  /** Further engines, as `NAME=JSON`. */
  readonly engines: readonly string[];
  readonly html: string | undefined;
  readonly settings: SettingArgs;
  readonly json: boolean;
};

export type SavingsArgs = {
  readonly command: 'savings';
  /** How many days back; undefined means a week. */
  readonly days: number | undefined;
  /** Whether all conversations are replayed, however long it takes. */
  readonly all: boolean;
  readonly settings: SettingArgs;
  readonly json: boolean;
};

export type DoctorArgs = {
  readonly command: 'doctor';
  readonly settings: SettingArgs;
  readonly json: boolean;
};

export type DemoArgs = { readonly command: 'demo'; readonly json: boolean };

export const commandNames = [
  'serve',
  'wrap',
  'compact',
  'recall',
  'inspect',
  'mcp',
  'replay',
  'savings',
  'doctor',
  'demo',
] as const;
export type CommandName = (typeof commandNames)[number];

/** Parses the arguments of the process. */
export function parseArgs(argv: readonly string[]): Args {
  const [first, ...rest] = argv;
  if (first === undefined) return { command: 'state' };
  if (first.startsWith('-')) return parseGlobal(argv);
  if (first === 'help') return parseHelp(rest);
  const command = commandNames.find((name) => name === first);
  if (command === undefined) throw new LeporelloError('bad-usage', unknownCommand(first));
  const parse = command === 'wrap' ? parseWithRest : parseCommand;
  const given = parse(command, rest, flagsOf[command]);
  if (given.has('help')) return { command: 'help', topic: command };
  return parsers[command](given);
}

const text = { type: 'string' } as const;
const texts = { type: 'string', multiple: true } as const;
const yes = { type: 'boolean' } as const;
const everywhere = { json: yes, help: { type: 'boolean', short: 'h' } } as const;
const configFlags = { config: text, set: texts } as const;
const settingFlags = { config: text, data: text } as const;

/** The flags of each command, for parsing and for the lists in errors. */
const flagsOf: Readonly<Record<CommandName, ParseArgsOptionsConfig>> = {
  serve: {
    port: text,
    host: text,
    ...settingFlags,
    'openai-url': text,
    'anthropic-url': text,
    'log-level': text,
    'for-wraps': yes,
    lossless: yes,
    preset: text,
    set: texts,
    ...everywhere,
  },
  wrap: {
    print: yes,
    port: text,
    data: text,
    config: text,
    lossless: yes,
    preset: text,
    set: texts,
    ...everywhere,
  },
  compact: {
    format: text,
    model: text,
    'window-tokens': text,
    out: text,
    'min-result-bytes': text,
    lossless: yes,
    preset: text,
    ...settingFlags,
    set: texts,
    ...everywhere,
  },
  recall: {
    query: text,
    lines: text,
    path: text,
    'max-tokens': text,
    raw: yes,
    ...settingFlags,
    ...everywhere,
  },
  inspect: { last: text, tenant: text, ...settingFlags, ...everywhere },
  mcp: { port: text, tenant: text, ...settingFlags, ...everywhere },
  replay: {
    format: text,
    'window-tokens': text,
    'prefix-tokens': text,
    limit: text,
    source: text,
    engine: texts,
    html: text,
    'min-result-bytes': text,
    lossless: yes,
    preset: text,
    ...configFlags,
    ...everywhere,
  },
  savings: { days: text, all: yes, ...configFlags, ...everywhere },
  doctor: { port: text, ...settingFlags, set: texts, ...everywhere },
  demo: everywhere,
};

const parsers: Readonly<Record<CommandName, (given: ParsedFlags) => Args>> = {
  serve(given) {
    noOperands(given);
    const forWraps = given.has('for-wraps');
    return { command: 'serve', settings: settingsIn(given), forWraps, json: given.has('json') };
  },
  wrap(given) {
    checkJson(given, 'wrap', 'print', "the output of a client that it starts is the client's own");
    return {
      command: 'wrap',
      client: agentCliIn(given.operands),
      rest: given.rest,
      print: given.has('print'),
      settings: settingsIn(given),
      json: given.has('json'),
    };
  },
  compact(given) {
    return {
      command: 'compact',
      file: oneOperand(given, 'a file: leporello compact FILE, or - for standard input'),
      format: formatIn(given),
      model: given.text('model'),
      window: wholeNumber(given, 'window-tokens'),
      out: given.text('out'),
      settings: settingsIn(given),
      json: given.has('json'),
    };
  },
  recall(given) {
    const id = oneOperand(given, 'the id of an original, as in leporello recall mem_5h8v0c2k9qtz31ax');
    const part: RecallArgs['part'] = Object.fromEntries(
      (['query', 'lines', 'path'] as const).flatMap((flag) => {
        const value = given.text(flag);
        return value === undefined ? [] : [[flag, value]];
      }),
    );
    if (part.lines !== undefined && parseRange(part.lines) === undefined) {
      const forms = '10-40, 10, 100- or -20 (the last 20)';
      throw new LeporelloError('bad-usage', `--lines is ${part.lines}, but must be a range: ${forms}.`);
    }
    const partial = [...Object.keys(part), ...(given.has('max-tokens') ? ['max-tokens'] : [])];
    if (given.has('raw') && partial.length > 0) {
      const flags = partial.map((flag) => `--${flag}`).join(' or ');
      throw new LeporelloError(
        'bad-usage',
        `--raw prints the whole original and cannot be combined with ${flags}. Leave out one of them.`,
      );
    }
    return {
      command: 'recall',
      id,
      part,
      maxTokens: wholeNumber(given, 'max-tokens'),
      raw: given.has('raw'),
      settings: settingsIn(given),
      json: given.has('json'),
    };
  },
  inspect(given) {
    const [receipt] = given.operands;
    if (receipt !== undefined) oneOperand(given, '');
    if (receipt !== undefined && given.has('last'))
      throw new LeporelloError(
        'bad-usage',
        `inspect shows the receipt ${receipt} or the newest ones (--last), not both. Leave out one of them.`,
      );
    return {
      command: 'inspect',
      receipt,
      last: wholeNumber(given, 'last') ?? 1,
      tenant: given.text('tenant'),
      settings: settingsIn(given),
      json: given.has('json'),
    };
  },
  mcp(given) {
    noOperands(given);
    const port = given.text('port');
    if (port !== undefined && !/^\d{1,5}$/.test(port))
      throw new LeporelloError('bad-usage', `--port is ${port}, but must be a number from 0 to 65535.`);
    checkJson(given, 'mcp', 'port', 'without it, standard output belongs to the MCP client');
    return {
      command: 'mcp',
      port: port === undefined ? undefined : Number(port),
      tenant: given.text('tenant'),
      settings: settingsIn(given),
      json: given.has('json'),
    };
  },
  replay(given) {
    if (given.operands.length === 0)
      throw new LeporelloError('bad-usage', 'replay needs a file: leporello replay FILE...');
    return {
      command: 'replay',
      files: given.operands,
      format: formatIn(given),
      window: wholeNumber(given, 'window-tokens'),
      prefix: wholeNumber(given, 'prefix-tokens'),
      limit: wholeNumber(given, 'limit'),
      source: given.text('source'),
      engines: given.texts('engine'),
      html: given.text('html'),
      settings: settingsIn(given),
      json: given.has('json'),
    };
  },
  savings(given) {
    noOperands(given);
    return {
      command: 'savings',
      days: wholeNumber(given, 'days'),
      all: given.has('all'),
      settings: settingsIn(given),
      json: given.has('json'),
    };
  },
  doctor(given) {
    noOperands(given);
    return { command: 'doctor', settings: settingsIn(given), json: given.has('json') };
  },
  demo(given) {
    noOperands(given);
    return { command: 'demo', json: given.has('json') };
  },
};

function parseGlobal(argv: readonly string[]): Args {
  const options = { ...everywhere, version: { type: 'boolean', short: 'v' } } as const;
  const given = readFlags(argv, options, 'leporello without a command');
  if (given.positionals[0] !== undefined) {
    const hint = `The command must come before the flags: leporello ${given.positionals[0]} ...`;
    throw new LeporelloError('bad-usage', hint);
  }
  if (given.values['version'] === true) {
    return { command: 'version', json: given.values['json'] === true };
  }
  return { command: 'help', topic: undefined };
}

function parseHelp(rest: readonly string[]): Args {
  const [word] = rest.filter((argument) => !argument.startsWith('-'));
  if (word === undefined) return { command: 'help', topic: undefined };
  const topic = commandNames.find((name) => name === word);
  if (topic === undefined) throw new LeporelloError('bad-usage', unknownCommand(word));
  return { command: 'help', topic };
}

function unknownCommand(word: string): string {
  const meant = nearest(word, commandNames);
  const hint = meant === undefined ? '' : ` Did you mean ${meant}?`;
  return `There is no command ${word}.${hint} The commands are ${commandNames.join(', ')} and help.`;
}

function checkJson(given: ParsedFlags, command: CommandName, flag: string, why: string): void {
  if (!given.has('json') || given.has(flag)) return;
  const says = `${command} prints JSON only with --${flag}: ${why}. Add --${flag}, or leave out --json.`;
  throw new LeporelloError('bad-usage', says);
}
