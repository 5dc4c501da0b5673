/**
 * Token counting, measured: speed beside two libraries, worst cases, what stays in memory, and how far the estimates are
 * from recorded usage, before and after calibration. Run `node bench/tokens.ts`; it reads recorded conversations from
 * ../shared/data and prints tables, and writes bench/results/tokens.json. About a minute. `node bench/tokens.ts usage` runs only
 * the tables with that word in their title, and keeps what the file says of the others.
 *
 * Traps: (1) gpt-tokenizer remembers merges, so the same text again is quicker than text it never saw: both are shown, and
 * agents' texts are mostly new. (2) All three run in every round, in turn, and medians are taken, since machines are noisy:
 * trust ratios of 1.5 and more. (3) Worst cases are quadratic in the libraries, so they get 20 kB where ours gets 1 MB.
 * (4) Every count is compared with tiktoken's, so that nothing is fast by being wrong. (5) Recorded prompt growth holds
 * thinking that the recording left out, which no estimate can see: the 95th percentiles are mostly that. Fits are made
 * on one half of the sessions and judged on the other; our own two figures were chosen on all of them. It is one
 * repository's work in one client, so what a fit gains by knowing its digits and line ends may not hold elsewhere.
 * (6) Calibration is replayed one conversation after the other, as they began; recordings do not say how they interleaved. A
 * request is mostly the one before it, so small errors there are easy: "30 requests back" is the hard question. Those recordings
 * lack system prompt and tools (24,000 tokens and more), so `before` says nothing of our counter where they are not added.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import * as library from 'gpt-tokenizer/encoding/o200k_base';
import { get_encoding } from 'tiktoken';
import { loadExactCounter } from '../src/tokens/load-counter.ts';
import { backwards, byModel, byRequest, sessionsOf, withPrefix } from './tokens/calibrated.ts';
import { median, randomNumbers, round, sum } from './tokens/arithmetic.ts';
import { type Recorded, readRecorded } from './tokens/recorded.ts';
import { growthErrors, wholePrompts } from './tokens/recorded-usage.ts';

type Row = Readonly<Record<string, string | number>>;
type Count = (text: string) => number;

const resultFile = new URL('./results/tokens.json', import.meta.url);

const tiktoken = get_encoding('o200k_base');
const peers: Readonly<Record<string, Count>> = {
  'gpt-tokenizer': (text) => library.countTokens(text, { disallowedSpecial: new Set() }),
  tiktoken: (text) => tiktoken.encode_ordinary(text).length,
};

await main();

async function main(): Promise<void> {
  const recorded = readRecorded();
  if (recorded === undefined) {
    console.log('bench/tokens.ts skipped: there are no recorded conversations in ../shared/data.');
    return;
  }
  const counter = await loadExactCounter('o200k_base');
  const ours: Count = (text) => counter.count(text);
  const sessions = await sessionsOf(recorded);
  const tables: Readonly<Record<string, () => readonly Row[] | Promise<readonly Row[]>>> = {
    'loading, ms in a process of its own': loading,
    'speed, MB/s (o200k_base)': () => speed(ours, samplesOf(recorded)),
    'one unbroken run, ms': () => worstCases(ours),
    'kept in memory after 300 texts of 100 kB, MB': () => retention(ours, recorded),
    'whole prompts of gpt-4.1 against recorded usage': () => wholePrompts(recorded),
    'growth of prompts of Claude 4.5 and 4.6 against recorded usage, relative error': () =>
      growthErrors(recorded, ours),
    'calibration against recorded usage, by model': () => byModel(sessions),
    'calibration against recorded usage, by request of a conversation': () => byRequest(sessions),
    'calibration against recorded usage, with system prompt and tools counted': () => withPrefix(sessions),
    'calibration against recorded usage, the prompt 30 requests back': () => backwards(sessions),
  };
  const results: Record<string, unknown> = { ...earlierResults(), node: process.version };
  for (const [title, measure] of Object.entries(tables)) {
    if (!title.includes(process.argv[2] ?? '')) continue;
    const rows = await measure();
    results[title] = rows;
    console.log(`\n${title}`);
    console.table(rows);
  }
  mkdirSync(new URL('.', resultFile), { recursive: true });
  writeFileSync(resultFile, `${JSON.stringify(results, null, 2)}\n`);
}

function earlierResults(): object {
  return existsSync(resultFile) ? (JSON.parse(readFileSync(resultFile, 'utf8')) as object) : {};
}

// Loading

/** Milliseconds of a piece of code in a new process, without the start of the process. */
function timedAlone(code: string): number {
  const script = `const start = performance.now(); ${code}; console.log(performance.now() - start)`;
  const cwd = new URL('..', import.meta.url);
  const run = (): number =>
    Number(execFileSync(process.execPath, ['--input-type=module', '-e', script], { cwd, encoding: 'utf8' }));
  return round(median([run(), run(), run()]), 0);
}

function loading(): readonly Row[] {
  return [
    {
      'our exact counter': timedAlone(
        "await (await import('./src/tokens/load-counter.ts')).loadExactCounter('o200k_base')",
      ),
      'gpt-tokenizer': timedAlone("(await import('gpt-tokenizer/encoding/o200k_base')).countTokens('a')"),
      tiktoken: timedAlone("(await import('tiktoken')).get_encoding('o200k_base').encode('a')"),
      'model catalogue': timedAlone("await (await import('./src/tokens/catalog.ts')).loadCatalog()"),
    },
  ];
}

// Speed

function speed(ours: Count, samples: Readonly<Record<string, readonly string[]>>): readonly Row[] {
  return Object.entries(samples).map(([content, texts]) => {
    const megabytes = sum(texts.map((text) => Buffer.byteLength(text))) / 1e6;
    const times: Record<string, number[]> = {};
    const totals = new Set<number>();
    const run = (name: string, count: Count): void => {
      const start = performance.now();
      let tokens = 0;
      for (const text of texts) tokens += count(text);
      (times[name] ??= []).push(performance.now() - start);
      totals.add(tokens);
    };
    for (let turn = 0; turn < 3; turn++) {
      run('ours', ours);
      library.clearMergeCache();
      run('gpt-tokenizer, new text', peers['gpt-tokenizer']!);
      run('gpt-tokenizer, same again', peers['gpt-tokenizer']!);
      run('tiktoken', peers.tiktoken!);
    }
    const speeds = Object.entries(times).map(
      ([name, ms]) => [name, round(megabytes / (median(ms) / 1000), 1)] as const,
    );
    return {
      content,
      MB: round(megabytes, 2),
      ...Object.fromEntries(speeds),
      same: totals.size === 1 ? 'yes' : 'NO',
    };
  });
}

function samplesOf(recorded: readonly Recorded[]): Readonly<Record<string, readonly string[]>> {
  const textsOf = (source: string, role: string | undefined, bytes: number): readonly string[] => {
    const texts: string[] = [];
    let left = bytes;
    for (const { messages } of recorded.filter((conversation) => conversation.source === source)) {
      for (const { role: said, content } of messages) {
        if (left <= 0) return texts;
        if (typeof content !== 'string' || (role !== undefined && said !== role)) continue;
        texts.push(content);
        left -= content.length;
      }
    }
    return texts;
  };
  const random = randomNumbers(7);
  const words =
    '我们 可以 这个 问题 数据 系统 如果 没有 使用 已经 进行 需要 时候 文件 然后 返回 结果 错误 一个 知道 ， 。'.split(
      ' ',
    );
  const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
  const made = (units: readonly string[], length: number) =>
    Array.from({ length: 100 }, () => Array.from({ length }, () => units[random(units.length)]).join(''));
  return {
    'code and tool output': textsOf('entire-cli-sessions', 'tool', 1_500_000),
    JSON: textsOf('tau-bench', 'tool', 500_000),
    prose: textsOf('reflexion-hotpotqa', undefined, 500_000),
    'Chinese words': made(words, 1_500),
    base64: made(digits.split(''), 5_000),
  };
}

// Worst cases

function worstCases(ours: Count): readonly Row[] {
  const random = randomNumbers(11);
  const runs: Readonly<Record<string, (length: number) => string>> = {
    'one letter': (length) => 'a'.repeat(length),
    'random letters': (length) => Array.from({ length }, () => String.fromCharCode(97 + random(26))).join(''),
    'spaces, then a word': (length) => `${' '.repeat(length)}x`,
    'mixed white space': (length) => ' \t\u00a0'.repeat(length / 3),
    dashes: (length) => '-'.repeat(length),
    ideographs: (length) => '中'.repeat(length / 3),
    'capitals behind ideographs': (length) => '中AAAA'.repeat(length / 7),
  };
  const timed = (count: Count, text: string): number => {
    const start = performance.now();
    count(text);
    return round(performance.now() - start, 1);
  };
  return Object.entries(runs).map(([run, make]) => {
    const short = make(20_000);
    return {
      run,
      'ours, 20 kB': timed(ours, short),
      'gpt-tokenizer, 20 kB': timed(peers['gpt-tokenizer']!, short),
      'tiktoken, 20 kB': timed(peers.tiktoken!, short),
      same: ours(short) === peers.tiktoken!(short) ? 'yes' : 'NO',
      'ours, 1 MB': timed(ours, make(1_000_000)),
    };
  });
}

// Memory

async function retention(ours: Count, recorded: readonly Recorded[]): Promise<readonly Row[]> {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const all = recorded.flatMap(({ messages }) => messages.map(({ content }) => String(content))).join('\n');
  const heapAfter = (count: Count): number => {
    collect();
    const before = process.memoryUsage().heapUsed;
    // Each text is a flat string of its own, as one that came from a request: a slice would keep `all` alive, not itself.
    for (let k = 0; k < 300; k++)
      count(Buffer.from(`${k}${all.slice(k * 90_000, k * 90_000 + 100_000)}`).toString());
    collect();
    return round((process.memoryUsage().heapUsed - before) / 1e6, 1);
  };
  library.clearMergeCache();
  heapAfter((text) => text.length);
  const row = { ours: heapAfter(ours), 'gpt-tokenizer': heapAfter(peers['gpt-tokenizer']!) };
  library.clearMergeCache();
  return [row];
}
