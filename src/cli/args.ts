/**
 * Parses the command line. Throws `bad-usage` for invalid arguments, and names the valid ones. Values of the configuration stay text here;
 * config/ parses and checks them.
 */
import type { ParseArgsOptionsConfig } from 'node:util';
import { LeporelloError } from '../errors.ts';
import { parseRange } from '../recall/text-ranges.ts';
import { nearest } from '../checks.ts';
import { hookedClientIn } from './hook/contracts.ts';
import { agentCliIn } from './wrap/clients.ts';
import { type Args, type CommandName, type RecallArgs, commandNames } from './command-args.ts';
import {
  type ParsedFlags,
  formatIn,
  noOperands,
  oneOperand,
  parseCommand,
  parseWithRest,
  readFlags,
  settingsIn,
  amountOf,
  wholeNumber,
} from './flags.ts';

/** Parses the arguments of the process. */
export function parseArgs(argv: readonly string[]): Args {
  const [first, ...rest] = argv;
  if (first === undefined) return { command: 'state' };
  if (first.startsWith('-')) return parseGlobal(argv);
  if (first === 'help') return parseHelp(rest);
  const command = commandNames.find((name) => name === first);
  if (command === undefined) throw new LeporelloError('bad-usage', unknownCommand(first));
  const parse = command === 'wrap' || command === 'bench-ab' ? parseWithRest : parseCommand;
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
    'gemini-url': text,
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
  experiment: { tenant: text, ...settingFlags, ...everywhere },
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
  hook: { print: yes, ...settingFlags, ...everywhere },
  off: { 'dry-run': yes, originals: yes, port: text, ...settingFlags, ...everywhere },
  'bench-ab': {
    seed: text,
    'max-usd': text,
    'max-steps': text,
    'timeout-seconds': text,
    'no-namespace': yes,
    'openai-url': text,
    'anthropic-url': text,
    lossless: yes,
    preset: text,
    ...configFlags,
    ...everywhere,
  },
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
      client: agentCliIn(given.operands, given.has('print') ? ['--print'] : []),
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
    const [, first, last] = /(?<!\d)(\d+)\D+(\d+)$/.exec(part.lines ?? '') ?? [];
    if (Number(first) > Number(last)) {
      const says = `--lines is ${part.lines}, which ends before it begins: write ${last}-${first}.`;
      throw new LeporelloError('bad-usage', says);
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
  experiment(given) {
    noOperands(given);
    return {
      command: 'experiment',
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
  hook(given) {
    checkJson(given, 'hook', 'print', "the output of a hook is the client's");
    return {
      command: 'hook',
      client: hookedClientIn(given.operands),
      print: given.has('print'),
      settings: settingsIn(given),
      json: given.has('json'),
    };
  },
  off(given) {
    noOperands(given);
    return {
      command: 'off',
      dryRun: given.has('dry-run'),
      originals: given.has('originals'),
      settings: settingsIn(given),
      json: given.has('json'),
    };
  },
  'bench-ab'(given) {
    const tasks = oneOperand(given, 'a file of tasks: leporello bench-ab TASKS -- COMMAND');
    if (given.rest.length === 0)
      throw new LeporelloError(
        'bad-usage',
        'bench-ab needs a command after --: leporello bench-ab TASKS -- COMMAND.',
      );
    return {
      command: 'bench-ab',
      tasks,
      run: given.rest,
      seed: wholeNumber(given, 'seed'),
      maxUsd: amountOf(given, 'max-usd'),
      maxSteps: wholeNumber(given, 'max-steps'),
      timeoutSeconds: wholeNumber(given, 'timeout-seconds'),
      addsNamespace: !given.has('no-namespace'),
      settings: settingsIn(given),
      json: given.has('json'),
    };
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
