/**
 * A memory service for Leporello in 40 lines: the calls of docs/http-store.md over a map. Run it from a checkout: `npm run example
 * examples/memory-server.ts [PORT]`, and start the gateway with LEPORELLO_MEMORY_HTTP_URL=http://127.0.0.1:7070. It forgets everything when it ends.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';

type Entry = { readonly key: string; readonly value: string; readonly expiresAt: number | null };
type Call = { keys: string[]; guards: string[]; entries: Entry[]; expiresAt: number | null; now: number };

/** Creates the server. A value is base64 and opaque; `expiresAt` null means never. Each call is complete before the next one begins. */
export function memoryServer() {
  const kept = new Map<string, Entry>();
  const lives = (key: string, now: number) => (kept.get(key)?.expiresAt ?? Infinity) > now && kept.has(key);
  const first = (keys: string[], now: number) => {
    const at = keys.findIndex((key) => lives(key, now));
    return at < 0 ? null : { at, value: kept.get(keys[at]!)!.value };
  };
  const put = (entries: Entry[], now: number): undefined => {
    for (const entry of entries) kept.set(entry.key, entry);
    for (const key of kept.keys()) if (!lives(key, now)) kept.delete(key);
  };
  const calls: Record<string, (call: Call) => object> = {
    'get-many': ({ keys, now }) => ({ values: keys.map((key) => first([key], now)?.value ?? null) }),
    'get-first': ({ keys, now }) => ({ found: first(keys, now) }),
    'put-many': ({ entries, now }) => ({ done: put(entries, now) }),
    'put-unless': ({ guards, entries, now }) => ({ found: first(guards, now) ?? put(entries, now) ?? null }),
    touch({ keys, expiresAt, now }) {
      const isLater = (until: number | null) => (until ?? Infinity) < (expiresAt ?? Infinity);
      for (const entry of keys.flatMap((key) => (lives(key, now) ? kept.get(key)! : [])))
        if (isLater(entry.expiresAt)) kept.set(entry.key, { ...entry, expiresAt });
      return {};
    },
    delete: ({ keys }) => ({ done: keys.map((key) => kept.delete(key)) }),
  };
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const call = calls[request.url?.split('/').at(-1) ?? ''];
    const text = call ? JSON.stringify(call((await json(request)) as Call)) : '{"error":"no such call"}';
    response.writeHead(call ? 200 : 404, { 'content-type': 'application/json' }).end(text);
  }
  return createServer((request, response) => {
    answer(request, response).catch(() => response.writeHead(400).end('{"error":"not JSON"}'));
  });
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href)
  memoryServer().listen(Number(process.argv[2] ?? 7070), '127.0.0.1');
