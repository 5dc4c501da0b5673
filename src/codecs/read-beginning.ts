/**
 * Reads only the beginning of a request: its fields and first messages. It scans the body once and parses almost nothing. It
 * serves requests that are sent without being read whole: a client's bypass, or a fold that exceeded its deadline.
 */
import type { Conversation } from '../conversation/conversation.ts';
import { type Member, concatBytes, firstElements, scanObject, skipSpace } from '../conversation/json-scan.ts';
import type { Codec, ReadContext } from './codec.ts';

const encoder = new TextEncoder();

/** Bytes. A longer body is not scanned: that would block other requests for more than a few dozen milliseconds. */
const maxBodyBytes = 16 * 1024 * 1024;
/** The user's first words come within this many messages, after the system's. */
const maxElements = 16;
/** Bytes. Fields and lists are read up to this size. */
const maxFieldBytes = 256 * 1024;

/** Returns the beginning of the conversation; its spans are not those of `body`. Undefined for a body of another format. */
export function readBeginning(
  codec: Pick<Codec, 'read'>,
  body: Uint8Array,
  reading: ReadContext,
): Conversation | undefined {
  if (body.length > maxBodyBytes) return undefined;
  try {
    const { members } = scanObject(body, skipSpace(body, 0));
    const fields = members.flatMap((member) => fieldOf(body, member) ?? []);
    return codec.read(objectOf(fields), reading);
  } catch {
    // The reader of the whole body reports what is wrong with it.
    return undefined;
  }
}

/** Returns a member as it is; a list is cut after its first elements. Undefined when it is too long. */
function fieldOf(body: Uint8Array, { span, value }: Member): Uint8Array | undefined {
  if (body[value.start] !== OPEN_BRACKET)
    return value.end - value.start > maxFieldBytes ? undefined : body.subarray(span.start, span.end);
  const elements = firstElements(body, value.start, maxElements);
  const fitting = elements.filter(({ end }) => end - value.start <= maxFieldBytes);
  const end = fitting.at(-1)?.end ?? value.start + 1;
  return concatBytes([body.subarray(span.start, end), encoder.encode(']')]);
}

const OPEN_BRACKET = '['.charCodeAt(0);

function objectOf(fields: readonly Uint8Array[]): Uint8Array {
  const comma = encoder.encode(',');
  const joined = fields.flatMap((field, index) => (index > 0 ? [comma, field] : [field]));
  return concatBytes([encoder.encode('{'), ...joined, encoder.encode('}')]);
}
