import { describe, expect, it } from 'vitest';
import { LeporelloError } from '../errors.ts';
import { parseArgs } from './args.ts';

const parse = (line: string) => parseArgs(line === '' ? [] : line.split(' '));

const nothing = { file: undefined, values: [] };

function problem(argv: readonly string[]): string {
  try {
    parseArgs(argv);
  } catch (error) {
    if (LeporelloError.isInstance(error)) return `${error.code}: ${error.message}`;
    throw error;
  }
  return 'no problem';
}

describe('parseArgs', () => {
  it('reads inspect: the newest receipt, the newest ones, or one by its id', () => {
    const inspect = {
      command: 'inspect',
      receipt: undefined,
      last: 1,
      tenant: undefined,
      settings: nothing,
      json: false,
    };
    expect(parse('inspect')).toEqual(inspect);
    expect(parse('inspect --last 5 --tenant acme')).toEqual({ ...inspect, last: 5, tenant: 'acme' });
    expect(parse('inspect some-id --json')).toEqual({ ...inspect, receipt: 'some-id', json: true });
    expect(problem(['inspect', 'some-id', '--last', '2'])).toBe(
      'bad-usage: inspect shows the receipt some-id or the newest ones (--last), not both. Leave out one of them.',
    );
  });

  it('recognizes help and version in every spelling', () => {
    expect(parse('')).toEqual({ command: 'state' });
    expect(['--help', '-h', 'help', '--json'].map(parse)).toEqual(
      Array.from({ length: 4 }, () => ({ command: 'help', topic: undefined })),
    );
    expect(['help serve', 'serve --help', 'serve -h --port 1'].map(parse)).toEqual(
      Array.from({ length: 3 }, () => ({ command: 'help', topic: 'serve' })),
    );
    expect(parse('-v')).toEqual({ command: 'version', json: false });
    expect(parse('--version --json')).toEqual({ command: 'version', json: true });
  });

  it('reads serve, its flags as options of the configuration', () => {
    expect(parse('serve')).toEqual({ command: 'serve', settings: nothing, forWraps: false, json: false });
    expect(
      parse(
        'serve --port 1 --host=::1 --data d --config c.json --openai-url u --anthropic-url v --gemini-url x --log-level w --set a.b=c=d --set e= --json',
      ),
    ).toEqual({
      command: 'serve',
      forWraps: false,
      json: true,
      settings: {
        file: 'c.json',
        values: [
          { flag: '--port', key: 'port', text: '1' },
          { flag: '--host', key: 'host', text: '::1' },
          { flag: '--data', key: 'data', text: 'd' },
          { flag: '--openai-url', key: 'openaiUrl', text: 'u' },
          { flag: '--anthropic-url', key: 'anthropicUrl', text: 'v' },
          { flag: '--gemini-url', key: 'geminiUrl', text: 'x' },
          { flag: '--log-level', key: 'logLevel', text: 'w' },
          { flag: '--set', key: 'a.b', text: 'c=d' },
          { flag: '--set', key: 'e', text: '' },
        ],
      },
    });
  });

  it('reads wrap, and passes everything after -- on', () => {
    expect(parse('wrap claude')).toEqual({
      command: 'wrap',
      client: 'claude',
      rest: [],
      print: false,
      settings: nothing,
      json: false,
    });
    expect(parse('wrap codex --port 1 --print --json -- exec --json -- x')).toEqual({
      command: 'wrap',
      client: 'codex',
      rest: ['exec', '--json', '--', 'x'],
      print: true,
      settings: { file: undefined, values: [{ flag: '--port', key: 'port', text: '1' }] },
      json: true,
    });
    expect(parse('wrap --help')).toEqual({ command: 'help', topic: 'wrap' });
  });

  it('reads compact', () => {
    expect(parse('compact -')).toEqual({
      command: 'compact',
      file: '-',
      format: 'auto',
      model: undefined,
      window: undefined,
      out: undefined,
      settings: nothing,
      json: false,
    });
    expect(
      parse(
        'compact --format anthropic --model m --window-tokens 8000 a.jsonl --out b --min-result-bytes 5 --json',
      ),
    ).toEqual({
      command: 'compact',
      file: 'a.jsonl',
      format: 'anthropic',
      model: 'm',
      window: 8000,
      out: 'b',
      settings: {
        file: undefined,
        values: [{ flag: '--min-result-bytes', key: 'minResultBytes', text: '5' }],
      },
      json: true,
    });
  });

  it('reads replay', () => {
    expect(parse('replay a.jsonl')).toEqual({
      command: 'replay',
      files: ['a.jsonl'],
      format: 'auto',
      window: undefined,
      prefix: undefined,
      limit: undefined,
      source: undefined,
      engines: [],
      html: undefined,
      settings: nothing,
      json: false,
    });
    expect(
      parse(
        'replay a - --format gemini --window-tokens 9 --prefix-tokens 8 --limit 7 --source s --engine x={} --engine y={} --html h --config c --set port=1 --json',
      ),
    ).toEqual({
      command: 'replay',
      files: ['a', '-'],
      format: 'gemini',
      window: 9,
      prefix: 8,
      limit: 7,
      source: 's',
      engines: ['x={}', 'y={}'],
      html: 'h',
      settings: { file: 'c', values: [{ flag: '--set', key: 'port', text: '1' }] },
      json: true,
    });
  });

  it('reads recall and demo', () => {
    expect(parse('recall mem_1')).toEqual({
      command: 'recall',
      id: 'mem_1',
      part: {},
      maxTokens: undefined,
      raw: false,
      settings: nothing,
      json: false,
    });
    expect(parse('recall mem_1 --query q --lines=-20 --path $.a --max-tokens 100 --data d --json')).toEqual({
      command: 'recall',
      id: 'mem_1',
      part: { query: 'q', lines: '-20', path: '$.a' },
      maxTokens: 100,
      raw: false,
      settings: { file: undefined, values: [{ flag: '--data', key: 'data', text: 'd' }] },
      json: true,
    });
    expect(parse('recall --raw mem_1')).toMatchObject({ id: 'mem_1', raw: true });
    expect(parse('demo --json')).toEqual({ command: 'demo', json: true });
    expect(parse('bench-ab tasks.txt --max-usd 2.5 --no-namespace -- ./solve.sh {task}')).toEqual({
      command: 'bench-ab',
      tasks: 'tasks.txt',
      run: ['./solve.sh', '{task}'],
      seed: undefined,
      maxUsd: 2.5,
      maxSteps: undefined,
      timeoutSeconds: undefined,
      addsNamespace: false,
      settings: { file: undefined, values: [] },
      json: false,
    });
    expect(parse('savings --days 30 --all')).toEqual({
      command: 'savings',
      days: 30,
      all: true,
      settings: nothing,
      json: false,
    });
    expect(parse('hook codex --print --json')).toEqual({
      command: 'hook',
      client: 'codex',
      print: true,
      settings: nothing,
      json: true,
    });
    expect(parse('off --dry-run --originals')).toEqual({
      command: 'off',
      dryRun: true,
      originals: true,
      settings: nothing,
      json: false,
    });
    expect(parse('doctor --port 1 --json')).toEqual({
      command: 'doctor',
      settings: { file: undefined, values: [{ flag: '--port', key: 'port', text: '1' }] },
      json: true,
    });
  });

  it.each([
    [
      'srve',
      'There is no command srve. Did you mean serve? The commands are serve, wrap, compact, recall, inspect, experiment, mcp, replay, savings, doctor, hook, off, bench-ab, demo and help.',
    ],
    [
      'start',
      'There is no command start. The commands are serve, wrap, compact, recall, inspect, experiment, mcp, replay, savings, doctor, hook, off, bench-ab, demo and help.',
    ],
    [
      'help me',
      'There is no command me. The commands are serve, wrap, compact, recall, inspect, experiment, mcp, replay, savings, doctor, hook, off, bench-ab, demo and help.',
    ],
    ['--prot', 'leporello without a command has no flag --prot. Its flags are --help, --json, --version.'],
    ['-x', 'leporello without a command has no flag -x. Its flags are --help, --json, --version.'],
    ['--json serve', 'The command must come before the flags: leporello serve ...'],
    [
      'serve --prot 1',
      'serve has no flag --prot. Did you mean --port? Its flags are --anthropic-url, --config, --data, --for-wraps, --gemini-url, --help, --host, --json, --log-level, --lossless, --openai-url, --port, --preset, --set.',
    ],
    ['demo --port=1', 'demo has no flag --port. Its flags are --help, --json.'],
    [
      'serve --port',
      '--port needs a value: --port=VALUE, or --port VALUE if the value does not begin with a dash.',
    ],
    [
      'serve --port -1',
      '--port needs a value: --port=VALUE, or --port VALUE if the value does not begin with a dash.',
    ],
    ['serve --json=1', '--json takes no value.'],
    ['serve here', 'serve accepts only flags, not here.'],
    ['serve --set port', '--set is port, but must be KEY=VALUE, as in --set port=8788.'],
    ['wrap', 'wrap needs a client: leporello wrap claude|codex|gemini|opencode|pi|qwen [-- ARGUMENTS].'],
    [
      'wrap cluade',
      'Leporello knows no client cluade. Did you mean claude? It can wrap claude, codex, gemini, opencode, pi, qwen; set the base URL of any other client yourself (leporello serve).',
    ],
    [
      'wrap cursor',
      'Leporello knows no client cursor. It can wrap claude, codex, gemini, opencode, pi, qwen; set the base URL of any other client yourself (leporello serve).',
    ],
    [
      'wrap claude --print hi',
      'Arguments of claude come after --, as in leporello wrap claude -- --print hi ...',
    ],
    ['wrap codex exec', 'Arguments of codex come after --, as in leporello wrap codex -- exec ...'],
    [
      'wrap claude -p hi',
      'wrap has no flag -p. Its flags are --config, --data, --help, --json, --lossless, --port, --preset, --print, --set. Flags of the client come after --.',
    ],
    [
      'wrap claude --json',
      "wrap prints JSON only with --print: the output of a client that it starts is the client's own. Add --print, or leave out --json.",
    ],
    [
      'mcp --json',
      'mcp prints JSON only with --port: without it, standard output belongs to the MCP client. Add --port, or leave out --json.',
    ],
    ['compact', 'compact needs a file: leporello compact FILE, or - for standard input.'],
    ['compact a b', 'compact accepts only one argument, not a b.'],
    [
      'compact a --format xml',
      '--format is xml, but must be one of auto, chat, responses, anthropic, gemini.',
    ],
    [
      'compact a --window 8000',
      'compact has no flag --window. Did you mean --window-tokens? Its flags are --config, --data, --format, --help, --json, --lossless, --min-result-bytes, --model, --out, --preset, --set, --window-tokens.',
    ],
    [
      'replay a --threshold 5',
      'replay has no flag --threshold. Did you mean --min-result-bytes? Its flags are --config, --engine, --format, --help, --html, --json, --limit, --lossless, --min-result-bytes, --prefix-tokens, --preset, --set, --source, --window-tokens.',
    ],
    ['compact a --window-tokens 0', '--window-tokens is 0, but must be a whole number of at least 1.'],
    ['compact a --window-tokens 8k', '--window-tokens is 8k, but must be a whole number of at least 1.'],
    ['replay', 'replay needs a file: leporello replay FILE...'],
    ['recall', 'recall needs the id of an original, as in leporello recall mem_5h8v0c2k9qtz31ax.'],
    ['recall m --lines 5-2', '--lines is 5-2, which ends before it begins: write 2-5.'],
    ['recall m --lines 3..x', '--lines is 3..x, but must be a range: 10-40, 10, 100- or -20 (the last 20).'],
    [
      'recall m --raw --query q --max-tokens 5',
      '--raw prints the whole original and cannot be combined with --query or --max-tokens. Leave out one of them.',
    ],
    ['hook aider', 'hook does not take aider: leporello hook claude|codex|cursor|gemini.'],
    ['hook', 'hook needs a client: leporello hook claude|codex|cursor|gemini.'],
    ['recall m --max-tokens=1e3', '--max-tokens is 1e3, but must be a whole number of at least 1.'],
  ])('refuses: %s', (line, sentence) => {
    expect(problem(line.split(' '))).toBe(`bad-usage: ${sentence}`);
  });
});
