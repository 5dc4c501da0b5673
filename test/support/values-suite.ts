/**
 * Declares what every codec over values must do, as vitest cases: its requests survive the way into bytes and back, and the engine's folds change
 * nothing but the content that they name. Codecs of frameworks and of wire bodies pass the same cases.
 */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { WrittenValues } from '../../src/adapters/values.ts';
import { createLeporello } from '../../src/index.ts';
import { contentOf, paths, settings } from '../e2e/adapters/long-loop.ts';

export type ValuesFixture = {
  readonly name: string;
  /** Generates valid conversations. */
  readonly messages: fc.Arbitrary<readonly object[]>;
  /** Writes a request with these messages, and with a tool. */
  write(messages: readonly object[]): WrittenValues<object>;
  /** The member of a request, and of its body, that lists the messages. */
  readonly list: 'messages' | 'input' | 'contents';
  /** Returns the messages of a call of the tool, and its result. */
  step(call: { readonly id: string; readonly path: string; readonly result: string }): readonly object[];
  /** Returns a message of the user. */
  say(text: string): object;
  /** Returns a message as plain data. Default: as it is. */
  plain?(message: object): unknown;
  /** Leaves out of a list what means nothing without the messages that were dropped. Default: nothing. */
  settled?(messages: readonly object[]): readonly object[];
};

const runs = { numRuns: 60 };

export function valuesSuite(fixture: ValuesFixture): void {
  const { name, messages: generated, write, list, plain = same, settled = same } = fixture;
  const read = ({ read: readBody }: WrittenValues<object>, folded: Uint8Array) =>
    Reflect.get(readBody(folded), list) as readonly object[];
  /** Expects the same objects. One of two that are spelled alike may stand for the other. */
  const expectOwn = (found: readonly object[], expected: readonly object[], all = expected) => {
    expect(found.length).toBe(expected.length);
    const spelled = (message: object | undefined) => message && JSON.stringify(plain(message));
    const isOwn = (message: object, at: number) =>
      message === expected[at] || (all.includes(message) && spelled(message) === spelled(expected[at]));
    expect(found.every(isOwn)).toBe(true);
  };
  const bodyOf = (body: Uint8Array) => JSON.parse(new TextDecoder().decode(body)) as Lists;
  const bytesOf = (body: object) => new TextEncoder().encode(JSON.stringify(body, undefined, 1));

  describe(`values of ${name}`, () => {
    it('come back as the very same objects when nothing is folded, and after any of them were dropped', () => {
      const keeping = fc.array(fc.boolean(), { minLength: 60, maxLength: 60 });
      fc.assert(
        fc.property(generated, keeping, (messages, keeps) => {
          const written = write(messages);
          expectOwn(read(written, written.body), messages);
          const sent = bodyOf(written.body);
          const kept = sent[list]!.filter((_, at) => keeps[at]);
          // System messages at the beginning may be written elsewhere.
          const leading = messages.length - sent[list]!.length;
          const expected = messages.filter((_, at) => at < leading || keeps[at - leading]);
          const rest = new TextEncoder().encode(JSON.stringify({ ...sent, [list]: kept }));
          expectOwn(read(written, rest), settled(expected), messages);
        }),
        runs,
      );
    });

    it('are equal when they are built anew from all their bytes', () => {
      fc.assert(
        fc.property(generated, (messages) => {
          const written = write(messages);
          const rebuilt = read(written, bytesOf(bodyOf(written.body)));
          expect(rebuilt.map(plain)).toEqual(messages.map(plain));
        }),
        runs,
      );
    });

    it('keep all but the results that the engine folds, and these can be read', async () => {
      const { storeDeadlineMs: _, ...own } = settings;
      const leporello = createLeporello({ ...own, strategies: ['offload-results'], shrinks: false });
      const steps = paths.flatMap((path, at) =>
        fixture.step({ id: `call_${at}`, path, result: contentOf(path) }),
      );
      const messages = [fixture.say('Read all logs.'), ...steps, fixture.say('Which one has a secret?')];
      const before = JSON.stringify(messages.map(plain));
      const written = write(messages);
      const { outcome, body } = await leporello.prepare({ codec: written.codec, body: written.body });
      expect(outcome.status).toBe('compacted');
      const folded = read(written, body);
      expect(folded.length).toBe(messages.length);
      expect(JSON.stringify(messages.map(plain))).toBe(before);
      const changed = folded.filter((message, at) => message !== messages[at]);
      const ids = changed.map((message) => /mem_[a-z0-9]{16}/.exec(JSON.stringify(plain(message)))?.[0]);
      expect(ids.length).toBeGreaterThan(20);
      const originals = await Promise.all(ids.map((id) => leporello.original(id!)));
      // An original has the bytes of the JSON.
      const texts = originals.map((bytes) => JSON.parse(new TextDecoder().decode(bytes)) as string);
      expect(texts).toEqual(paths.slice(0, ids.length).map(contentOf));
      const again = write(messages);
      const { body: second } = await leporello.prepare({ codec: again.codec, body: again.body });
      expect(Buffer.compare(second, body)).toBe(0);
    });
  });
}

type Lists = { readonly [Key in ValuesFixture['list']]?: readonly unknown[] };

function same<Value>(value: Value): Value {
  return value;
}
