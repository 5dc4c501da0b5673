/**
 * Reads the body that a program passes to the library: bytes, a text or an object. If the program does not name the wire format, it is found
 * by the shape of the body, and its codec is loaded. No error contains content. Pure except for loading codecs.
 */
import type { Codec } from '../codecs/codec.ts';
import { type BodyMembers, formatOf, membersOf, wireFormats } from './formats.ts';
import { jsonBytes } from '../conversation/json-scan.ts';
import { LeporelloError } from '../errors.ts';

/** A request body as a program has it: the bytes, their text, or the object that an SDK takes. */
export type GivenBody = Uint8Array | string | object;

/** Returns the bytes of a body. They are those of the program where it has bytes. Throws `bad-config` for an object that is no JSON. */
export function bytesOfBody(body: GivenBody): Uint8Array {
  if (body instanceof Uint8Array) return body;
  if (typeof body === 'string') return new TextEncoder().encode(body);
  try {
    return jsonBytes(body);
  } catch (cause) {
    throw new LeporelloError('bad-config', 'request.body is an object that JSON.stringify refuses.', {
      cause,
    });
  }
}

/** Returns the codec for a body by its shape. Throws `bad-config` at once if no format has this shape. */
export function codecFor(body: Uint8Array): Promise<Codec> {
  const members = membersOf(body);
  if (!members)
    throw new LeporelloError(
      'bad-config',
      'request.body is not one JSON object. Pass the whole body of a request to a model.',
    );
  const name = formatOf(body, members);
  if (name) return wireFormats[name].load();
  const codecs = Object.values(wireFormats).map(({ exported }) => exported);
  throw new LeporelloError(
    'bad-config',
    `request.body is an object with ${keysOf(members)}, so its wire format cannot be found. Pass codec, one of those that leporello/codecs/ exports: ${codecs.join(', ')}.`,
  );
}

/** Lists the first keys. Values are never shown. */
function keysOf(members: BodyMembers): string {
  const keys = [...members.keys()].map((key) => key.slice(0, 30).toWellFormed());
  if (keys.length === 0) return 'no members';
  const more = keys.length > 8 ? ` and ${keys.length - 8} more` : '';
  return `the members ${keys.slice(0, 8).join(', ')}${more}`;
}
