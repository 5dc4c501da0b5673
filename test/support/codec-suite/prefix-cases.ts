/** Tests prefix hashes: changes that clients make between turns change no hash; a change of meaning changes all later ones. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Codec } from '../../../src/codecs/codec.ts';
import { prefixLinks } from '../../../src/conversation/messages.ts';
import { sha256 } from '../../../src/store/encrypted-store.ts';
import { requestsFor } from './arbitrary.ts';
import { isAbsent, skipped } from './each-answer.ts';
import type { CodecFixture } from './fixture.ts';
import { jsonValueText } from './json-text.ts';
import { shown, view } from './views.ts';

const encoder = new TextEncoder();

export function prefixCases(codec: Codec, fixture: CodecFixture): void {
  const chain = (body: Uint8Array) => prefixLinks(view(codec, body), 'tenant', sha256);

  describe(`${codec.name} computes prefix hashes`, () => {
    it('of which a longer conversation keeps every hash', () => {
      fc.assert(
        fc.property(requestsFor(fixture), requestsFor(fixture), (one, other) => {
          const long = fixture.body({
            ...one,
            turns: [...one.turns, ...other.turns.filter((turn) => turn.say !== 'system')],
          });
          const before = chain(fixture.body(one));
          expect(chain(long).slice(0, before.length)).toEqual(before);
        }),
      );
    });

    const { sameMeaning } = fixture;
    if (isAbsent(sameMeaning)) skipped('that does not change with another spelling', sameMeaning);
    it.each(isAbsent(sameMeaning) ? [] : sameMeaning)('that do not change with %s', (_, one, other) => {
      expect(shown(one)).not.toBe(shown(other));
      expect(chain(one)).toEqual(chain(other));
      const places = (body: Uint8Array) =>
        view(codec, body).messages.map((message) =>
          message.parts.map((part) => [part.type, 'texts' in part ? part.texts.length : 0]),
        );
      expect(places(one)).toEqual(places(other));
    });

    it('that change after any message that says something else', () => {
      fc.assert(
        fc.property(requestsFor(fixture), fc.nat(), fc.nat(), jsonValueText(), (request, at, seed, value) => {
          const document = JSON.parse(shown(fixture.body(request))) as Record<string, unknown[]>;
          const messages = document[fixture.messagesKey]!;
          const before = chain(encoder.encode(JSON.stringify(document)));
          const index = at % messages.length;
          const changed = changedMessage(messages[index], seed, value, fixture.movingKeys);
          if (changed === undefined) return;
          messages[index] = changed;
          const links = attempt(() => chain(encoder.encode(JSON.stringify(document))));
          if (!links) return;
          expect(links.map((link, j) => link === before[j])).toEqual(links.map((_, j) => j <= index));
        }),
        { numRuns: 1000 },
      );
    });
  });
}

/** Replaces one value of the message; undefined when the meaning would stay the same. */
function changedMessage(message: unknown, seed: number, value: string, moving: ReadonlySet<string>): unknown {
  const before = JSON.stringify(message);
  const copy: unknown = JSON.parse(before);
  const places: { readonly held: unknown; readonly put: (instead: unknown) => void }[] = [];
  const visit = (node: unknown): void => {
    if (typeof node !== 'object' || node === null) return;
    const holder = node as Record<string, unknown>;
    for (const key of Object.keys(holder)) {
      if (!Array.isArray(node) && moving.has(key)) continue;
      const put = (instead: unknown) =>
        Object.defineProperty(holder, key, { value: instead, enumerable: true });
      places.push({ held: holder[key], put });
      visit(holder[key]);
    }
  };
  visit(copy);
  const { held, put } = places[seed % places.length]!;
  const other: unknown = JSON.parse(value);
  // A text in place of the list that holds it means the same.
  const isHeld = typeof other === 'string' && JSON.stringify(held).includes(JSON.stringify(other));
  if (Array.isArray(held) && isHeld) return undefined;
  put(other);
  return JSON.stringify(copy) === before ? undefined : copy;
}

function attempt<T>(run: () => T): T | undefined {
  try {
    return run();
  } catch {
    return undefined;
  }
}
