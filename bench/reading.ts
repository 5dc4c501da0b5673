/**
 * Measures reading a request: only the scan, a warm read (all messages except the last were seen before), a cold read, and for comparison
 * `JSON.parse`, with and without `JSON.stringify`, of the same bytes. Run `node bench/reading.ts`; it prints a table and writes
 * bench/results/reading.json. It takes about a minute.
 *
 * Traps: (1) All contenders run in every round, in turn, and the table shows medians. Machines are noisy: trust ratios of 1.5 or more. (2) The
 * cost of `JSON.parse` depends on the text: one character outside Latin-1 doubles the width of the whole string, and most real sessions
 * contain one. A body of plain ASCII shows the other case. (3) All contenders start from bytes, so parsing includes decoding. Node's Buffer
 * finds a byte faster than a plain Uint8Array, so the table shows both. (4) A warm read hashes every byte with SHA-256, which takes about half
 * of its time on processors with instructions for it; the scan does not hash. (5) Each round has a new last message, like the next turn of a
 * conversation, so no body is read twice; `JSON.parse` gets the same bodies. (6) The body of very short messages is mostly overhead and shows
 * the worst case. (7) A cold read parses and
 * scans the body and hashes it twice.
 */
import type { ReadBlock } from '../src/codecs/codec.ts';
import { scanObject, skipSpace } from '../src/conversation/json-scan.ts';
import { sha256 } from '../src/store/encrypted-store.ts';
import { type Body, bodies } from './reading/bodies.ts';
import { writeResult } from './results.ts';
import { median, round } from './tokens/arithmetic.ts';

const rounds = 60;
const warmUp = 20;

/** A sum over all results, so that the compiler cannot skip any work. */
let consumed = 0;

main();

function main(): void {
  const all = bodies();
  if (!all.some(({ name }) => name.startsWith('recorded')))
    console.log('There are no recorded conversations in ../shared/data: their rows are left out.');
  const rows = all.map(measure);
  console.table(rows);
  const slow = rows.filter((row) => row['warm / parse'] >= 1).map((row) => row.body);
  console.log(
    slow.length === 0
      ? 'A warm read costs less than JSON.parse for every body.'
      : `A warm read costs more than JSON.parse of: ${slow.join('; ')}.`,
  );
  writeResult('reading', { rounds, consumed, rows });
}

function measure({ name, codec, bytes }: Body) {
  const blocks = new Map<string, ReadBlock>();
  const reading = { digest: sha256, blocks };
  const messages = codec.read(bytes, reading).messages.length;
  const contenders: Readonly<Record<string, (body: Uint8Array) => number>> = {
    parse: (body) => Object.keys(parse(body)).length,
    'parse + stringify': (body) => new TextEncoder().encode(JSON.stringify(parse(body))).length,
    scan: (body) => scanObject(body, skipSpace(body, 0), new Set(['messages'])).members.length,
    'scan (Buffer)': (body) =>
      scanObject(buffer(body), skipSpace(body, 0), new Set(['messages'])).members.length,
    warm: (body) => codec.read(body, reading).messages.length,
    'warm (Buffer)': (body) => codec.read(buffer(body), reading).messages.length,
    cold: (body) => codec.read(body, { digest: sha256, blocks: new Map() }).messages.length,
  };
  const times = new Map(Object.keys(contenders).map((key) => [key, [] as number[]]));
  for (let at = 0; at < warmUp + rounds; at++) {
    const body = nextTurn(bytes, at);
    for (const [key, run] of Object.entries(contenders)) {
      const start = performance.now();
      consumed += run(body);
      const ms = performance.now() - start;
      if (at >= warmUp) times.get(key)!.push(ms);
    }
  }
  const ms = (key: string) => round(median(times.get(key)!), 2);
  return {
    body: name,
    MB: round(bytes.length / 1e6, 2),
    messages,
    'parse ms': ms('parse'),
    'parse + stringify ms': ms('parse + stringify'),
    'scan ms': ms('scan'),
    'scan (Buffer) ms': ms('scan (Buffer)'),
    'warm ms': ms('warm'),
    'warm (Buffer) ms': ms('warm (Buffer)'),
    'cold ms': ms('cold'),
    'warm / parse': round(ms('warm') / ms('parse'), 2),
    'warm (Buffer) / parse': round(ms('warm (Buffer)') / ms('parse'), 2),
    'scan (Buffer) / parse': round(ms('scan (Buffer)') / ms('parse'), 2),
    'warm / (parse + stringify)': round(ms('warm') / ms('parse + stringify'), 2),
  };
}

/** Returns the body with one new message at the end. */
function nextTurn(bytes: Uint8Array, turn: number): Uint8Array {
  const end = bytes.lastIndexOf(']'.charCodeAt(0));
  const message = new TextEncoder().encode(`,{"role":"user","content":"And now for the ${turn}th time?"}`);
  const body = new Uint8Array(bytes.length + message.length);
  body.set(bytes.subarray(0, end));
  body.set(message, end);
  body.set(bytes.subarray(end), end + message.length);
  return body;
}

/** Returns a Buffer of the same memory. */
function buffer(body: Uint8Array): Buffer {
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength);
}

function parse(body: Uint8Array): object {
  return JSON.parse(new TextDecoder().decode(body)) as object;
}
