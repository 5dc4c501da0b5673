/**
 * Reading a request, measured: the scan alone, a warm read (every message but the last seen before), a cold one, beside `JSON.parse`
 * and `JSON.parse` with `JSON.stringify` of the same bytes. Run `node bench/reading.ts`; it prints a table and writes
 * bench/results/reading.json. About a minute.
 *
 * Traps: (1) All run in every round, in turn, and medians are taken: machines are noisy, trust ratios of 1.5 and more. (2) The cost of
 * `JSON.parse` hangs on the text: one character beyond Latin-1 doubles the width of the whole string, and most real sessions have
 * one, so a body of plain ASCII is shown beside them. (3) All start from bytes, so parsing includes decoding. Node's Buffer finds a byte
 * quicker than a plain Uint8Array, so both are shown. (4) A warm read
 * still digests every byte (SHA-256, about half of its time where the processor has instructions for it); the scan alone does
 * not. (5) A warm read changes the last message in each round, as the next turn of a conversation would, so that it is not one
 * body read over and over; `JSON.parse` gets the same bodies. (6) A body of very short messages is all overhead: it is there to show the
 * worst. (7) What a client does not repeat must be parsed by anyone: cold reads pay for parse, scan and two digests.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import type { ReadBlock } from '../src/codecs/codec.ts';
import { scanObject, skipSpace } from '../src/conversation/json-scan.ts';
import { sha256 } from '../src/store/encrypted-store.ts';
import { type Body, bodies } from './reading/bodies.ts';
import { median, round } from './tokens/arithmetic.ts';

const resultFile = new URL('./results/reading.json', import.meta.url);
const rounds = 60;
const warmUp = 20;

/** What came out of the contenders, so that no work can be left out. */
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
      ? 'A warm read costs less than JSON.parse of every body.'
      : `Slower than JSON.parse: ${slow.join('; ')}.`,
  );
  mkdirSync(new URL('.', resultFile), { recursive: true });
  writeFileSync(
    resultFile,
    `${JSON.stringify({ node: process.version, rounds, consumed, rows }, null, 2)}\n`,
  );
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
      const took = performance.now() - start;
      if (at >= warmUp) times.get(key)!.push(took);
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

/** The body with one more message that was never seen. */
function nextTurn(bytes: Uint8Array, turn: number): Uint8Array {
  const end = bytes.lastIndexOf(']'.charCodeAt(0));
  const message = new TextEncoder().encode(`,{"role":"user","content":"And now for the ${turn}th time?"}`);
  const body = new Uint8Array(bytes.length + message.length);
  body.set(bytes.subarray(0, end));
  body.set(message, end);
  body.set(bytes.subarray(end), end + message.length);
  return body;
}

/** The same bytes as Node's own kind of array. */
function buffer(body: Uint8Array): Buffer {
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength);
}

function parse(body: Uint8Array): object {
  return JSON.parse(new TextDecoder().decode(body)) as object;
}
