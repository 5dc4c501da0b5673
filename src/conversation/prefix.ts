/**
 * Prefix identity: a chain of digests over what the messages say, h(j) = H(h(j-1), canonical(message j)), tenant first.
 * The same prefix has the same link in every later request, in every instance, so folds need no session id and branches cannot mix.
 */
import type { Conversation, Span } from './conversation.ts';
import type { Member } from './json-scan.ts';
import { concatBytes } from './splice.ts';

type Digest = (bytes: Uint8Array) => string;

const encoder = new TextEncoder();

/**
 * The links of a conversation: element j stands for messages 0 to j-1, so there is one more than there are messages.
 * `root` names whose and which format the conversation is: prefixes of different roots never meet.
 */
export function prefixChain(conversation: Conversation, root: string, digest: Digest): readonly string[] {
  const links = [digest(encoder.encode(root))];
  for (const message of conversation.messages) {
    links.push(digest(encoder.encode(`${links.at(-1)}\n${message.canonical}`)));
  }
  return links;
}

/**
 * The canonical digest of a message: its role and what each part says, byte for byte, without the members clients move about.
 * `pieces` are what the codec found significant, in order.
 */
export function canonicalDigest(role: string, pieces: readonly Uint8Array[], digest: Digest): string {
  const separator = encoder.encode('\n');
  return digest(concatBytes([encoder.encode(role), ...pieces.flatMap((piece) => [separator, piece])]));
}

/** The bytes of an object's members but for the ignored keys, as they stand, in their order. */
export function significantBytes(
  bytes: Uint8Array,
  members: readonly Member[],
  ignored: ReadonlySet<string>,
): Uint8Array {
  const spans: Span[] = members.filter((member) => !ignored.has(member.key)).map((member) => member.span);
  const comma = encoder.encode(',');
  return concatBytes(spans.flatMap((span) => [bytes.subarray(span.start, span.end), comma]));
}
