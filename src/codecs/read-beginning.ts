/**
 * Reads only how a request begins: its fields and the first messages. It costs one scan of the body, parses almost nothing, and so
 * serves requests that are sent without being read whole: a client's bypass, or a fold that took too long.
 */
import type { Conversation } from '../conversation/conversation.ts';
import { firstElements, type Member, scanObject, skipSpace } from '../conversation/json-scan.ts';
import { concatBytes } from '../conversation/splice.ts';
import type { Codec, ReadContext } from './codec.ts';

const encoder = new TextEncoder();

/** A longer body is not scanned: that would hold up other requests for more than a few dozen milliseconds. Bytes. */
const longestBody = 16 * 1024 * 1024;
/** The user's first words stand among so many messages, behind the system's. */
const mostElements = 16;
/** Fields and lists are read up to this size. Bytes. */
const mostBytes = 256 * 1024;

/** The conversation as far as it was read; its spans are not those of `body`. Undefined for what is no request of this format. */
export function readBeginning(
  codec: Pick<Codec, 'read'>,
  body: Uint8Array,
  reading: ReadContext,
): Conversation | undefined {
  if (body.length > longestBody) return undefined;
  try {
    const { members } = scanObject(body, skipSpace(body, 0));
    const fields = members.flatMap((member) => fieldOf(body, member) ?? []);
    return codec.read(objectOf(fields), reading);
  } catch {
    // The reader of the whole body reports what is wrong with it.
    return undefined;
  }
}

/** The member as it stands; a list cut behind its first elements. Undefined where it is too long. */
function fieldOf(body: Uint8Array, { span, value }: Member): Uint8Array | undefined {
  if (body[value.start] !== OPEN_BRACKET)
    return value.end - value.start > mostBytes ? undefined : body.subarray(span.start, span.end);
  const elements = firstElements(body, value.start, mostElements);
  const fitting = elements.filter(({ end }) => end - value.start <= mostBytes);
  const end = fitting.at(-1)?.end ?? value.start + 1;
  return concatBytes([body.subarray(span.start, end), encoder.encode(']')]);
}

const OPEN_BRACKET = '['.charCodeAt(0);

function objectOf(fields: readonly Uint8Array[]): Uint8Array {
  const comma = encoder.encode(',');
  const joined = fields.flatMap((field, index) => (index > 0 ? [comma, field] : [field]));
  return concatBytes([encoder.encode('{'), ...joined, encoder.encode('}')]);
}
