/**
 * Lists the files of `src/` whose functions run for one request on the main path: streamed, folded, with a recall that is answered inside the
 * stream. Run `node bench/main-path.ts [--files]`; it prints the number of files and functions by folder, and with `--files` each file. It
 * takes a few seconds.
 *
 * Traps: (1) V8's precise coverage counts the functions in the process of the gateway, after one such request of another conversation, so
 * functions that run only at the start do not count. (2) The upstream is a scripted provider in the same process; its files are not in
 * `src/`. (3) The request uses one format, Chat Completions, and the default strategies. (4) A file counts if any of its functions ran.
 */
import type { Profiler } from 'node:inspector';
import { Session } from 'node:inspector/promises';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { assembleGateway } from '../src/gateway/app.ts';
import { serveNode } from '../src/gateway/http/node-server.ts';
import { undiciUpstream } from '../src/gateway/http/undici-upstream.ts';
import { prometheusMetrics } from '../src/gateway/receipts/prometheus.ts';
import { sqliteStore } from '../src/store/sqlite/sqlite.ts';
import { startFakeProvider } from '../test/support/fake-provider/fake-provider.ts';
import type { Script } from '../test/support/fake-provider/script.ts';
import { chatBody, toolLoop } from './scaling/bodies.ts';

/** Files that such a request ran before the engine was restructured. */
const filesBefore = 135;

/** Recalls the first original that the request names, then ends. */
const recallOnce: Script = ({ index, body }) => {
  const id = /mem_[a-z0-9]{16}/.exec(JSON.stringify(body))?.[0];
  const text = { type: 'text', text: index % 2 === 0 ? 'One moment. ' : 'Here it is.' } as const;
  if (index % 2 === 1 || !id) return { type: 'turn', parts: [text] };
  const recall = {
    type: 'tool-call',
    id: `recall-${index}`,
    name: 'read_memory',
    arguments: { id },
  } as const;
  return { type: 'turn', parts: [text, recall] };
};

const folder = mkdtempSync(join(tmpdir(), 'leporello-main-path-'));
const provider = await startFakeProvider({ script: recallOnce });
const store = await sqliteStore({ file: join(folder, 'memory.db') });
const upstream = undiciUpstream();
const handler = assembleGateway(
  {
    urls: { openai: provider.url, anthropic: provider.url, gemini: provider.url },
    triggers: { tokenBudget: { triggerTokens: 8_000, targetTokens: 4_000 } },
    prepareDeadlineMs: 60_000,
    storeDeadlineMs: 60_000,
  },
  {
    store,
    secret: new Uint8Array(32).fill(1),
    upstream,
    log: { info: () => undefined, warn: (fields, message) => console.error(message, fields) },
    metrics: prometheusMetrics(),
  },
);
const server = await serveNode(handler, { host: '127.0.0.1', port: 0 });

try {
  await ask('warm up');
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  await ask('measure');
  const { result } = await session.post('Profiler.takePreciseCoverage');
  session.disconnect();
  report(result);
} finally {
  await server.close(1_000);
  await upstream.close();
  await store.close();
  await provider.close();
  rmSync(folder, { recursive: true });
}

/** Sends one streamed request that is folded, and checks that a recall was answered in its stream. */
async function ask(name: string): Promise<void> {
  const before = provider.requests.length;
  const chat = JSON.parse(new TextDecoder().decode(chatBody(toolLoop(60, 1_500)))) as {
    messages: { content: unknown }[];
  };
  chat.messages[0]!.content = name;
  const response = await fetch(`http://127.0.0.1:${server.port}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer dummy' },
    body: JSON.stringify({ ...chat, stream: true }),
  });
  const text = await response.text();
  const outcome = response.headers.get('x-leporello-outcome');
  const asked = provider.requests.length - before;
  if (outcome !== 'compacted' || asked !== 2 || !text.includes('Here it'))
    throw new Error(
      `Expected a folded request, two provider requests and the final text; got outcome ${outcome}, ${asked} provider requests: ${text.slice(0, 300)}`,
    );
}

type Coverage = Profiler.ScriptCoverage;

function report(coverage: readonly Coverage[]): void {
  const source = fileURLToPath(new URL('../src/', import.meta.url));
  const files = coverage.flatMap(({ url, functions }) => {
    if (!url.startsWith('file:')) return [];
    const path = relative(source, fileURLToPath(url));
    const ran = functions.filter(({ ranges }) => (ranges[0]?.count ?? 0) > 0);
    return path.startsWith('..') || ran.length === 0 ? [] : [{ path, functions: ran.length }];
  });
  const folders = new Map<string, { files: number; functions: number }>();
  for (const { path, functions } of files) {
    const name = path.includes('/') ? path.slice(0, path.indexOf('/')) : '(root)';
    const sum = folders.get(name) ?? { files: 0, functions: 0 };
    folders.set(name, { files: sum.files + 1, functions: sum.functions + functions });
  }
  if (process.argv.includes('--files')) console.table(files.toSorted((a, b) => (a.path < b.path ? -1 : 1)));
  console.table(Object.fromEntries([...folders].toSorted(([one], [other]) => (one < other ? -1 : 1))));
  const all = files.reduce((sum, { functions }) => sum + functions, 0);
  console.log(`${files.length} files, ${all} functions (before the restructuring: ${filesBefore} files).`);
}
