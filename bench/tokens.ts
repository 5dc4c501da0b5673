/**
 * Measures token counting: speed compared with two libraries, worst cases, retained memory, and the errors of estimates against recorded
 * usage, before and after calibration. Run `node bench/tokens.ts [WORD]`; it reads ../shared/data, prints tables and writes
 * bench/results/tokens.json. It takes about a minute. With WORD, for example `usage`, it runs only the tables with that word in their title,
 * and writes nothing.
 *
 * Traps: (1) gpt-tokenizer caches merges, so it counts a known text faster than a new one. The table shows both; texts of agents are mostly
 * new. (2) All counters run in every round, in turn, and the table shows medians. Machines are noisy: trust ratios of 1.5 or more. (3) Worst
 * cases are quadratic in the libraries, so these get only 20 kB, while Leporello also gets 1 MB. (4) Every count is compared with tiktoken's, so
 * no counter is fast because it is wrong. (5) Recorded prompt growth includes thinking that the recording left out, which no estimate can
 * know; it causes most of the 95th percentiles. Fits use one half of the sessions and are judged on the other half, but Leporello's two
 * parameters were chosen on all of them. The sessions are from one repository and one client, so the gain from features such as digits and
 * line ends may not hold elsewhere. (6) Calibration is replayed one conversation after the other, by start time, because the recordings do not
 * show how they interleaved. A request mostly repeats the one before it, so small errors are easy; "30 requests back" is the hard case. Claude
 * recordings lack the system prompt and tools (24,000 tokens and more), so `before` says nothing about the counter unless they are added.
 */
import { execFileSync } from 'node:child_process';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import * as library from 'gpt-tokenizer/encoding/o200k_base';
import { get_encoding } from 'tiktoken';
import { loadExactCounter } from '../src/tokens/load-counter.ts';
import { backwards, byModel, byRequest, sessionsOf, withPrefix } from './tokens/calibrated.ts';
import { median, randomNumbers, round, sum } from './tokens/arithmetic.ts';
import { writeResult } from './results.ts';
import { type Recorded, readRecorded } from './tokens/recorded.ts';
import { growthErrors, wholePrompts } from './tokens/recorded-usage.ts';

type Row = Readonly<Record<string, string | number>>;
type Count = (text: string) => number;

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
  const leporello: Count = (text) => counter.count(text);
  const sessions = await sessionsOf(recorded);
  const tables: Readonly<Record<string, () => readonly Row[] | Promise<readonly Row[]>>> = {
    'loading in a new process, ms': loading,
    'speed, MB/s (o200k_base)': () => speed(leporello, samplesOf(recorded)),
    'one unbroken run, ms': () => worstCases(leporello),
    'memory retained after 300 texts of 100 kB, MB': () => retention(leporello, recorded),
    'whole prompts of gpt-4.1, error against recorded usage': () => wholePrompts(recorded),
    'growth of prompts of Claude 4.5 and 4.6 against recorded usage, relative error': () =>
      growthErrors(recorded, leporello),
    'calibration against recorded usage, by model': () => byModel(sessions),
    'calibration against recorded usage, by request of a conversation': () => byRequest(sessions),
    'calibration against recorded usage, with system prompt and tools counted': () => withPrefix(sessions),
    'calibration against recorded usage, the prompt 30 requests back': () => backwards(sessions),
  };
  const results: Record<string, unknown> = {};
  for (const [title, measure] of Object.entries(tables)) {
    if (!title.includes(process.argv[2] ?? '')) continue;
    const rows = await measure();
    results[title] = rows;
    console.log(`\n${title}`);
    console.table(rows);
  }
  writeResult('tokens', { tables: results });
}

// Loading

/** Returns the milliseconds of code in a new process, without the start of the process. */
function timeInNewProcess(code: string): number {
  const script = `const start = performance.now(); ${code}; console.log(performance.now() - start)`;
  const cwd = new URL('..', import.meta.url);
  const run = (): number =>
    Number(execFileSync(process.execPath, ['--input-type=module', '-e', script], { cwd, encoding: 'utf8' }));
  return round(median([run(), run(), run()]), 0);
}

function loading(): readonly Row[] {
  return [
    {
      'Leporello, exact counter': timeInNewProcess(
        "await (await import('./src/tokens/load-counter.ts')).loadExactCounter('o200k_base')",
      ),
      'gpt-tokenizer': timeInNewProcess(
        "(await import('gpt-tokenizer/encoding/o200k_base')).countTokens('a')",
      ),
      tiktoken: timeInNewProcess("(await import('tiktoken')).get_encoding('o200k_base').encode('a')"),
      'Leporello, model catalog': timeInNewProcess(
        "await (await import('./src/tokens/catalog.ts')).loadCatalog()",
      ),
    },
  ];
}

// Speed

function speed(leporello: Count, samples: Readonly<Record<string, readonly string[]>>): readonly Row[] {
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
      run('Leporello', leporello);
      library.clearMergeCache();
      run('gpt-tokenizer, new text', peers['gpt-tokenizer']!);
      run('gpt-tokenizer, known text', peers['gpt-tokenizer']!);
      run('tiktoken', peers.tiktoken!);
    }
    const speeds = Object.entries(times).map(
      ([name, ms]) => [name, round(megabytes / (median(ms) / 1000), 1)] as const,
    );
    return {
      content,
      MB: round(megabytes, 2),
      ...Object.fromEntries(speeds),
      'same count': totals.size === 1 ? 'yes' : 'NO',
    };
  });
}

function samplesOf(recorded: readonly Recorded[]): Readonly<Record<string, readonly string[]>> {
  const textsOf = (source: string, role: string | undefined, bytes: number): readonly string[] => {
    const texts: string[] = [];
    let left = bytes;
    for (const { messages } of recorded.filter((conversation) => conversation.source === source)) {
      for (const { role: messageRole, content } of messages) {
        if (left <= 0) return texts;
        if (typeof content !== 'string' || (role !== undefined && messageRole !== role)) continue;
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
  const randomTexts = (units: readonly string[], length: number) =>
    Array.from({ length: 100 }, () => Array.from({ length }, () => units[random(units.length)]).join(''));
  return {
    'code and tool output': textsOf('entire-cli-sessions', 'tool', 1_500_000),
    JSON: textsOf('tau-bench', 'tool', 500_000),
    prose: textsOf('reflexion-hotpotqa', undefined, 500_000),
    'Chinese words': randomTexts(words, 1_500),
    base64: randomTexts(digits.split(''), 5_000),
  };
}

// Worst cases

function worstCases(leporello: Count): readonly Row[] {
  const random = randomNumbers(11);
  const runs: Readonly<Record<string, (length: number) => string>> = {
    'one letter': (length) => 'a'.repeat(length),
    'random letters': (length) => Array.from({ length }, () => String.fromCharCode(97 + random(26))).join(''),
    'spaces, then a word': (length) => `${' '.repeat(length)}x`,
    'mixed white space': (length) => ' \t\u00a0'.repeat(length / 3),
    dashes: (length) => '-'.repeat(length),
    ideographs: (length) => '中'.repeat(length / 3),
    'capitals after ideographs': (length) => '中AAAA'.repeat(length / 7),
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
      'Leporello, 20 kB': timed(leporello, short),
      'gpt-tokenizer, 20 kB': timed(peers['gpt-tokenizer']!, short),
      'tiktoken, 20 kB': timed(peers.tiktoken!, short),
      'same count': leporello(short) === peers.tiktoken!(short) ? 'yes' : 'NO',
      'Leporello, 1 MB': timed(leporello, make(1_000_000)),
    };
  });
}

// Memory

async function retention(leporello: Count, recorded: readonly Recorded[]): Promise<readonly Row[]> {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const all = recorded.flatMap(({ messages }) => messages.map(({ content }) => String(content))).join('\n');
  const heapAfter = (count: Count): number => {
    collect();
    const before = process.memoryUsage().heapUsed;
    // Each text is a flat string, like the text of a request. A slice would keep `all` in memory.
    for (let k = 0; k < 300; k++)
      count(Buffer.from(`${k}${all.slice(k * 90_000, k * 90_000 + 100_000)}`).toString());
    collect();
    return round((process.memoryUsage().heapUsed - before) / 1e6, 1);
  };
  library.clearMergeCache();
  heapAfter((text) => text.length);
  const row = { Leporello: heapAfter(leporello), 'gpt-tokenizer': heapAfter(peers['gpt-tokenizer']!) };
  library.clearMergeCache();
  return [row];
}
