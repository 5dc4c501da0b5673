import * as fc from 'fast-check';
import { createCaches } from '../caches.ts';
import { describe, expect, it } from 'vitest';
import { commonLength, sha256 } from '../store/encrypted-store.ts';
import type { ReadContext } from './codec.ts';
import { openaiChat } from './openai-chat/index.ts';
import { Paused, openRun, runPausably } from '../conversation/steps.ts';
import { createSeenBodies } from './earlier-bodies.ts';

const encoder = new TextEncoder();

function bodyOf(texts: readonly string[], before = '"model":"m"'): Uint8Array {
  const messages = texts.map((content, at) => ({ role: at % 2 === 0 ? 'user' : 'assistant', content }));
  return encoder.encode(`{${before},"messages":${JSON.stringify(messages)},"stream":true}`);
}

/** Counts the digested bytes of blocks. */
function openReading(cacheMb?: number) {
  let digested = 0;
  const digest = (bytes: Uint8Array): string => {
    digested += bytes.length;
    return sha256(bytes);
  };
  const seen = createSeenBodies({ commonLength, caches: createCaches(cacheMb) });
  const reading: ReadContext = { digest, blocks: new Map(), seen };
  return {
    /** Reads a body, checks that the result equals a fresh read of these bytes, and returns how many bytes were digested. */
    read(body: Uint8Array): number {
      digested = 0;
      const before = body.slice();
      expect(openaiChat.read(body, reading)).toEqual(
        openaiChat.read(before, { digest: sha256, blocks: new Map() }),
      );
      return digested;
    },
  };
}

const long = Array.from({ length: 60 }, (_, at) => `message ${at} `.repeat(100));

describe('bodies read before', () => {
  it('are not digested again when they continue', () => {
    const { read } = openReading();
    expect(read(bodyOf(long.slice(0, 50)))).toBeGreaterThan(50_000);
    expect(read(bodyOf(long.slice(0, 52)))).toBeLessThan(8_000);
    expect(read(bodyOf(long.slice(0, 60)))).toBeLessThan(30_000);
  });

  it('serve a client that went back, and one that changed a message in the middle', () => {
    const { read } = openReading();
    read(bodyOf(long));
    expect(read(bodyOf(long.slice(0, 40)))).toBeLessThan(4_000);
    read(bodyOf(long));
    const rewritten = long.with(45, 'something else');
    expect(read(bodyOf(rewritten))).toBeLessThan(30_000);
  });

  it('are remembered in more than one form: as received and as sent', () => {
    const { read } = openReading();
    const folded = (texts: readonly string[]) => texts.with(20, 'folded');
    read(bodyOf(long.slice(0, 50)));
    read(bodyOf(folded(long.slice(0, 50))));
    expect(read(bodyOf(long.slice(0, 52)))).toBeLessThan(8_000);
    expect(read(bodyOf(folded(long.slice(0, 52))))).toBeLessThan(8_000);
    expect(read(bodyOf(long.slice(0, 54)))).toBeLessThan(8_000);
  });

  it('are remembered for each of several agents that begin alike', () => {
    const { read } = openReading();
    const agents = Array.from({ length: 12 }, (_, at) => [...long.slice(0, 30), `I am agent ${at}.`]);
    for (const texts of agents) read(bodyOf([...texts, ...long.slice(31, 50)]));
    for (const texts of agents) expect(read(bodyOf([...texts, ...long.slice(31, 52)]))).toBeLessThan(8_000);
  });

  it('share their bytes with the branches of a conversation', () => {
    const { read } = openReading(1.7);
    const start = Array.from({ length: 12 }, (_, at) => `message ${at} `.repeat(2_000));
    const branches = Array.from({ length: 10 }, (_, at) => [
      ...start,
      ...['a', 'b', 'c'].map((one) => one + at),
    ]);
    for (const texts of branches) read(bodyOf(texts));
    for (const texts of branches) expect(read(bodyOf([...texts, 'more']))).toBeLessThan(4_000);
  });

  it('are not trusted when whoever sent them changes the bytes afterwards', () => {
    const { read } = openReading();
    const body = bodyOf(long);
    read(body);
    body.set(encoder.encode('CHANGED'), body.length - 20_000);
    read(body);
    read(body);
  });

  it('are read again when something before the messages has another length', () => {
    const { read } = openReading();
    read(bodyOf(long));
    expect(read(bodyOf(long, '"model":"another"'))).toBeGreaterThan(50_000);
  });

  it('are forgotten, the oldest first, beyond the byte limit', () => {
    const { read } = openReading(0.33);
    const other = long.map((text) => `other ${text}`);
    read(bodyOf(long));
    read(bodyOf(other));
    expect(read(bodyOf(long))).toBeGreaterThan(50_000);
  });

  it('change nothing that is read, however a conversation continues', () => {
    const change = fc.record({
      at: fc.nat(70),
      text: fc.string({ unit: 'binary', maxLength: 3_000 }),
      drop: fc.nat(3),
    });
    fc.assert(
      fc.property(fc.array(change, { maxLength: 12 }), (changes) => {
        const { read } = openReading();
        let texts: readonly string[] = long;
        read(bodyOf(texts));
        for (const { at, text, drop } of changes) {
          texts = texts.toSpliced(at, drop, text);
          read(bodyOf(texts));
        }
      }),
      { numRuns: 60 },
    );
  });

  it('are not mixed with those of another request that was read while one was paused', () => {
    const reading: ReadContext = {
      digest: sha256,
      blocks: new Map(),
      seen: createSeenBodies({ commonLength }),
    };
    const start = long.slice(0, 30);
    const paused = bodyOf([...start, 'one', ...long.slice(31, 50)]);
    const other = [...start, 'two', ...long.slice(31, 35)];
    openaiChat.read(bodyOf([...start, 'one', ...long.slice(31, 40)]), reading);
    let left = 5;
    let mayPause = true;
    const slice = openRun(() => mayPause && left-- <= 0);
    const readPaused = () => runPausably(slice, () => openaiChat.read(paused, reading));
    expect(readPaused).toThrow(Paused);
    mayPause = false;
    openaiChat.read(bodyOf(other), reading);
    const fresh = (body: Uint8Array) => openaiChat.read(body, { digest: sha256, blocks: new Map() });
    expect(readPaused()).toEqual(fresh(paused));
    for (const body of [bodyOf([...other, 'more']), paused])
      expect(openaiChat.read(body, reading)).toEqual(fresh(body));
  });

  it('keep their message objects, as received and as sent, while both grow', () => {
    const reading: ReadContext = {
      digest: sha256,
      blocks: new Map(),
      seen: createSeenBodies({ commonLength }),
    };
    // The two forms have more than half of their bytes in common.
    const forms = [
      (texts: readonly string[]) => texts,
      (texts: readonly string[]) => texts.with(35, 'folded'),
    ];
    const before = forms.map((form) => openaiChat.read(bodyOf(form(long.slice(0, 40))), reading).messages);
    for (const length of [42, 44, 46]) {
      const now = forms.map((form) => openaiChat.read(bodyOf(form(long.slice(0, length))), reading).messages);
      for (const [at, messages] of before.entries())
        expect(messages.every((message, index) => message === now[at]![index])).toBe(true);
    }
  });

  it('are refused as before when they are no JSON after the known part', () => {
    const body = bodyOf(long);
    const reading: ReadContext = {
      digest: sha256,
      blocks: new Map(),
      seen: createSeenBodies({ commonLength }),
    };
    openaiChat.read(body, reading);
    const end = body.lastIndexOf(']'.charCodeAt(0));
    for (const tail of ['', ' 1]}', ',]}', ',{"role":"user"', '}', '] }x'])
      expect(() =>
        openaiChat.read(encoder.encode(new TextDecoder().decode(body.subarray(0, end)) + tail), reading),
      ).toThrow('not a Chat Completions request');
  });
});
