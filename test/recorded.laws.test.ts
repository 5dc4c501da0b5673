/**
 * Runs all recorded conversations in both formats through `leporello compact` with three windows: each result fits, is valid and is the same
 * on a second run, and all removed text can be restored exactly after a restart.
 */
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openStore as openStored } from '../src/cli/open-store.ts';
import { run } from '../src/cli/run.ts';
import type { Terminal } from '../src/cli/terminal.ts';
import { anthropicMessages } from '../src/codecs/anthropic-messages/index.ts';
import type { Codec } from '../src/codecs/codec.ts';
import { openaiChat } from '../src/codecs/openai-chat/index.ts';
import { textsOf } from '../src/conversation/messages.ts';
import type { Receipt } from '../src/receipts/receipt.ts';
import { shrink } from '../src/arrival/shrink.ts';
import { createEncryptedStore } from '../src/store/encrypted-store.ts';
import { loadTokenCounter } from '../src/tokens/load-counter.ts';
import type { TokenCounter } from '../src/tokens/token-counter.ts';
import { asAnthropic } from './support/as-anthropic.ts';
import { freshReading } from './support/chat-conversation.ts';
import { resolveReferences, unpadded } from './support/resolve-references.ts';
import { labeledResults } from './support/labeled-results.ts';

const source = '../shared/data/trajectories-dev.jsonl.gz';
const isThere = existsSync(source);
/** The secret that ids are derived from; two data folders with it give the same bytes. */
const secret = 'a secret of the test, and no other';

const windows = [8_000, 32_000, 128_000];

const formats: readonly {
  readonly codec: Codec;
  readonly flag: string;
  readonly inFormat: (chat: string) => string;
}[] = [
  { codec: openaiChat, flag: 'chat', inFormat: (chat) => chat },
  {
    codec: anthropicMessages,
    flag: 'anthropic',
    inFormat: (chat) => new TextDecoder().decode(asAnthropic(new TextEncoder().encode(chat))),
  },
];

describe.skipIf(!isThere)(`recorded conversations (${isThere ? source : `${source} is not here`})`, () => {
  let folder: string;
  let recorded: readonly string[];
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'leporello-recorded-'));
    recorded = gunzipSync(await readFile(source))
      .toString()
      .trim()
      .split('\n');
  });
  afterAll(() => rm(folder, { recursive: true }));

  describe.each(formats)('as bodies of $codec.name', ({ codec, flag, inFormat }) => {
    it.each(windows)(
      'fit a window of %i, stay valid, and lose nothing',
      async (window) => {
        const bodies = recorded.map(inFormat);
        expect(bodies.length).toBe(822);
        const input = join(folder, `${flag}.jsonl`);
        await writeFile(input, bodies.join('\n'));
        const first = await compact(input, flag, window, join(folder, `${flag}-${window}`));
        const again = await compact(input, flag, window, join(folder, `${flag}-${window}-again`));
        // Bodies are large, so the numbers of the differing lines are compared.
        expect(first.lines.flatMap((line, at) => (line === again.lines[at] ? [] : at))).toEqual([]);

        const open = await openStore(join(folder, `${flag}-${window}`));
        let folded = 0;
        for (const [at, line] of first.lines.entries()) {
          const { tokensAfter, unfit, outcome, memories, model } = first.receipts[at]!;
          expect(unfit).toBeUndefined();
          expect(outcome.status).not.toBe('failed');
          expect(tokensAfter).toBeLessThanOrEqual(window);
          const sent = codec.read(new TextEncoder().encode(line), freshReading());
          expect(codec.rules.problems(sent)).toEqual([]);
          if (outcome.status === 'untouched') expect(line).toBe(bodies[at]);
          else folded++;
          await checkNothingLost(
            codec,
            bodies[at]!,
            line,
            await Promise.all(memories.map((id) => open.original(id))),
            model,
          );
        }
        await open.close();
        expect(folded).toBeGreaterThan(0);
      },
      240_000,
    );
  });

  async function compact(input: string, flag: string, window: number, data: string) {
    const out = `${data}.jsonl`;
    let printed = '';
    const terminal: Terminal = {
      out: () => Promise.resolve(),
      err: (text) => {
        printed += text;
      },
      input: () => Readable.from([]),
      isTty: { input: false, out: false, err: false },
      env: { LEPORELLO_SECRET: secret },
      cwd: folder,
      onStop: () => () => undefined,
    };
    const argv = [
      'compact',
      input,
      '--format',
      flag,
      '--window-tokens',
      String(window),
      '--data',
      data,
      '--out',
      out,
      '--json',
    ];
    expect(await run(argv, terminal)).toBe(0);
    const receipts = printed
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Receipt);
    return { lines: (await readFile(out, 'utf8')).trimEnd().split('\n'), receipts };
  }
});

/** Opens the data folder as a later process does. */
async function openStore(dataDir: string) {
  const { store, secret: bytes } = await openStored(dataDir, { LEPORELLO_SECRET: secret });
  const encryptedStore = createEncryptedStore({ store, secret: bytes });
  return {
    async original(id: string): Promise<string> {
      const found = await encryptedStore.recallAny(id);
      return found.status === 'found' ? new TextDecoder().decode(found.original) : `${id} is missing`;
    },
    close: () => store.close(),
  };
}

/** Returns the forms of a result that a lossless shrink may send (the shrinks' own tests prove that they lose nothing). */
function smallerForms(literal: string, counter: TokenCounter): readonly string[] {
  if (!literal.startsWith('"')) return [];
  const original = JSON.parse(literal) as string;
  return [true, false].flatMap((mayBeEdited) => {
    const shrunk = shrink(original, { lossless: true, mayBeEdited, count: (text) => counter.count(text) });
    return shrunk ? [JSON.stringify(shrunk.text)] : [];
  });
}

/** Returns the text of a JSON string literal. */
function textIn(literal: string): string {
  return literal.startsWith('"') ? (JSON.parse(literal) as string) : literal;
}

/** Checks that each message was sent with its exact bytes, or that its bytes, or those of its texts and arguments, were restored. */
async function checkNothingLost(
  codec: Codec,
  before: string,
  after: string,
  recalled: readonly string[],
  model: string | undefined,
): Promise<void> {
  const counter = await loadTokenCounter(model);
  const bytes = new TextEncoder().encode(before);
  const whole = recalled.filter((original) => original.startsWith('['));
  const restored = new Set(recalled);
  const shown = new Set(
    resolveReferences(labeledResults(codec, new TextEncoder().encode(after))).map(unpadded),
  );
  const isSent = (literal: string) => after.includes(literal) || shown.has(unpadded(textIn(literal)));
  for (const message of codec.read(bytes, freshReading()).messages) {
    const slice = (start: number, end: number) =>
      new TextDecoder().decode(bytes.subarray(message.span.start + start, message.span.start + end));
    const raw = slice(0, message.span.end - message.span.start);
    if (after.includes(raw) || whole.some((original) => original.includes(raw))) continue;
    for (const part of message.parts) {
      const bytesOfPart = slice(part.span.start, part.span.end);
      if (after.includes(bytesOfPart) || whole.some((original) => original.includes(bytesOfPart))) continue;
      const spans = part.type === 'tool-call' ? [part.input] : textsOf(part);
      expect(spans.length).toBeGreaterThan(0);
      for (const { start, end } of spans) {
        const original = slice(start, end);
        const isPresent = isSent(original) || smallerForms(original, counter).some(isSent);
        expect(isPresent || restored.has(original), raw.slice(0, 300)).toBe(true);
      }
    }
  }
}
