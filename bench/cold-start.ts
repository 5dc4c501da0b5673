/**
 * Starts the gateway again and again on a busy machine, and sends each new process one request that overflows the model's context window:
 * 2.3 MB of tool results. Counts the client's errors and the requests that were too long when they reached the provider. Run
 * `node bench/cold-start.ts [--starts N] [--load N] [--deadline MS]`; it prints a table and writes bench/results/cold-start.json.
 *
 * The traps are in `traps` below and are printed with the table.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { loadTokenCounter } from '../src/tokens/load-counter.ts';
import { startGateway, urlOf } from './first-token/processes.ts';
import { writeResult } from './results.ts';

const traps = [
  'The provider is scripted. It counts the strings of a request with the o200k_base tokenizer and refuses more than its limit.',
  'The load is busy loops on the same cores, started before the first gateway. Times show how busy the machine was, not how fast Leporello is.',
  'Each process gets one request. The first request of a process is the slowest, and nothing is known yet of its conversation.',
];

const { values } = parseArgs({
  options: {
    starts: { type: 'string', default: '100' },
    load: { type: 'string', default: '8' },
    deadline: { type: 'string', default: '2000' },
  },
});

/** The context window of the model below in tokens, as in the model catalog. */
const limit = 128_000;
const bodyBytes = 2_300_000;

type Format = { readonly path: string; readonly body: (results: readonly string[]) => object };

const tool = { name: 'run', description: 'Runs a command.' };
const question = { role: 'user', content: 'Fix the build.' };

const formats: Readonly<Record<string, Format>> = {
  chat: {
    path: '/v1/chat/completions',
    body: (results) => ({
      model: 'gpt-4o',
      tools: [{ type: 'function', function: tool }],
      messages: [
        question,
        ...results.flatMap((content, at) => [
          {
            role: 'assistant',
            content: null,
            tool_calls: [{ id: `call_${at}`, type: 'function', function: { name: 'run', arguments: '{}' } }],
          },
          { role: 'tool', tool_call_id: `call_${at}`, content },
        ]),
      ],
    }),
  },
  messages: {
    path: '/v1/messages',
    body: (results) => ({
      model: 'gpt-4o',
      max_tokens: 100,
      tools: [{ ...tool, input_schema: { type: 'object' } }],
      messages: [
        question,
        ...results.flatMap((content, at) => [
          { role: 'assistant', content: [{ type: 'tool_use', id: `call_${at}`, name: 'run', input: {} }] },
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: `call_${at}`, content }] },
        ]),
      ],
    }),
  },
  responses: {
    path: '/v1/responses',
    body: (results) => ({
      model: 'gpt-4o',
      store: false,
      tools: [{ type: 'function', ...tool, parameters: { type: 'object' } }],
      input: [
        question,
        ...results.flatMap((output, at) => [
          { type: 'function_call', call_id: `call_${at}`, name: 'run', arguments: '{}' },
          { type: 'function_call_output', call_id: `call_${at}`, output },
        ]),
      ],
    }),
  },
  gemini: {
    path: '/v1beta/models/gpt-4o:generateContent',
    body: (results) => ({
      tools: [{ functionDeclarations: [tool] }],
      contents: [
        { role: 'user', parts: [{ text: question.content }] },
        ...results.flatMap((output, at) => [
          { role: 'model', parts: [{ functionCall: { id: `call_${at}`, name: 'run', args: {} } }] },
          {
            role: 'user',
            parts: [{ functionResponse: { id: `call_${at}`, name: 'run', response: { output } } }],
          },
        ]),
      ],
    }),
  },
};

/** Returns results of source code, each different. Shrinks leave source code unchanged, so only folds make the request fit. */
function resultsFor(seed: number): readonly string[] {
  const one = (at: number) =>
    Array.from(
      { length: 150 },
      (_, line) =>
        `${line + 1}: export const value_${seed}_${at}_${line} = compute(${at * line + seed}, "${line}");`,
    ).join('\n');
  const results: string[] = [];
  for (let bytes = 0; bytes < bodyBytes; bytes += results.at(-1)!.length + 150)
    results.push(one(results.length));
  return results;
}

type Provider = { readonly url: string; readonly server: Server; readonly seen: number[] };

/** Answers every request that fits, and refuses the others as real providers do. `seen`: tokens of each request. */
async function startProvider(): Promise<Provider> {
  const counter = await loadTokenCounter('gpt-4o');
  const seen: number[] = [];
  const tokensIn = (value: unknown): number => {
    if (typeof value === 'string') return counter.count(value);
    if (typeof value !== 'object' || value === null) return 1;
    return Object.values(value).reduce((sum: number, inner) => sum + tokensIn(inner), 0);
  };
  const server = createServer((incoming, outgoing) => {
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('end', () => {
      const tokens = tokensIn(JSON.parse(Buffer.concat(chunks).toString()));
      seen.push(tokens);
      const isTooLong = tokens > limit;
      const message = `prompt is too long: ${tokens} tokens > ${limit} maximum`;
      outgoing.writeHead(isTooLong ? 400 : 200, { 'content-type': 'application/json' });
      outgoing.end(isTooLong ? JSON.stringify({ type: 'error', error: { message } }) : '{}');
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server, seen };
}

type Start = {
  readonly format: string;
  readonly listenMs: number;
  readonly requestMs: number;
  readonly status: number;
  readonly outcome: string | null;
  /** Requests that reached the provider. */
  readonly requests: number;
  /** Requests among them that were too long. */
  readonly tooLong: number;
};

async function startOnce(provider: Provider, format: string, seed: number): Promise<Start> {
  const data = await mkdtemp(join(tmpdir(), 'leporello-bench-'));
  const { path, body } = formats[format]!;
  const bytes = JSON.stringify(body(resultsFor(seed)));
  provider.seen.length = 0;
  const startedAt = performance.now();
  const config = join(data, 'config.json');
  await writeFile(config, JSON.stringify({ limits: { prepareDeadlineMs: Number(values.deadline) } }));
  const gateway = startGateway(provider.url, data, ['--config', config]);
  try {
    const url = await urlOf(gateway);
    const listeningAt = performance.now();
    const response = await fetch(url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer dummy' },
      body: bytes,
    });
    await response.text();
    return {
      format,
      listenMs: listeningAt - startedAt,
      requestMs: performance.now() - listeningAt,
      status: response.status,
      outcome: response.headers.get('x-leporello-outcome'),
      requests: provider.seen.length,
      tooLong: provider.seen.filter((tokens) => tokens > limit).length,
    };
  } finally {
    await stop(gateway);
    await rm(data, { recursive: true });
  }
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  child.kill();
  await once(child, 'exit');
}

function quantile(numbers: readonly number[], share: number): number {
  const sorted = numbers.toSorted((one, other) => one - other);
  return Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0);
}

const load = Array.from({ length: Number(values.load) }, () =>
  spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }),
);
const provider = await startProvider();
const starts: Start[] = [];
try {
  for (let at = 0; at < Number(values.starts); at++) {
    const name = Object.keys(formats)[at % 4]!;
    starts.push(await startOnce(provider, name, at));
  }
} finally {
  await Promise.all(load.map(stop));
  provider.server.close();
}

const rows = [...Object.keys(formats), 'all'].map((format) => {
  const these = starts.filter((start) => format === 'all' || start.format === format);
  return {
    format,
    starts: these.length,
    'client errors': these.filter(({ status }) => status !== 200).length,
    'sent too long': these.reduce((sum, { tooLong }) => sum + tooLong, 0),
    'not folded': these.filter(({ outcome }) => outcome !== 'compacted').length,
    'listens after ms (median)': quantile(
      these.map(({ listenMs }) => listenMs),
      0.5,
    ),
    'request ms (median)': quantile(
      these.map(({ requestMs }) => requestMs),
      0.5,
    ),
    'request ms (max)': quantile(
      these.map(({ requestMs }) => requestMs),
      1,
    ),
  };
});
console.table(rows);
console.log(
  `Load average after the run: ${loadavg()
    .map((one) => one.toFixed(1))
    .join(' ')}. Deadline: ${values.deadline} ms.`,
);
for (const trap of traps) console.log(`- ${trap}`);
writeResult('cold-start', { options: values, rows });
