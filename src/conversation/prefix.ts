/**
 * Prefix identity: a chain of digests over what the messages say, h(j) = H(h(j-1), canonical(message j)), tenant first.
 * The same prefix has the same link in every later request, in every instance, so folds need no session id and branches cannot mix.
 */
import type { Conversation } from './conversation.ts';
import type { Member } from './json-scan.ts';
import { concatBytes } from './splice.ts';

type Digest = (bytes: Uint8Array) => string;

const encoder = new TextEncoder();
const lineEnd = encoder.encode('\n');
const comma = encoder.encode(',');

/** The links of a conversation: element j stands for messages 0 to j-1, so there is one more than there are messages. */
export type Chain = { readonly canonicals: readonly string[]; readonly links: readonly string[] };

/**
 * The chain of a conversation. `root` names whose and which format it is: prefixes of different roots never meet. `known` is
 * another chain of this root, of an earlier turn say: as far as the two agree its links are taken over instead of reckoned anew.
 */
export function prefixChain(conversation: Conversation, root: string, digest: Digest, known?: Chain): Chain {
  const canonicals = conversation.messages.map((message) => message.canonical);
  const links = known?.links.slice(0, commonLength(known.canonicals, canonicals) + 1) ?? [
    digest(encoder.encode(root)),
  ];
  for (let at = links.length - 1; at < canonicals.length; at++) {
    links.push(digest(encoder.encode(`${links[at]}\n${canonicals[at]}`)));
  }
  return { canonicals, links };
}

function commonLength(one: readonly string[], other: readonly string[]): number {
  let length = 0;
  while (length < one.length && length < other.length && one[length] === other[length]) length++;
  return length;
}

/**
 * The canonical digest of a message: its role and what each part says, byte for byte, without the members clients move about.
 * `pieces` are what the codec found significant, in order.
 */
export function canonicalDigest(role: string, pieces: readonly Uint8Array[], digest: Digest): string {
  return digest(concatBytes([encoder.encode(role), ...pieces.flatMap((piece) => [lineEnd, piece])]));
}

/** The bytes of an object's members but for the ignored keys, as they stand, in their order. */
export function significantBytes(
  bytes: Uint8Array,
  members: readonly Member[],
  ignored: ReadonlySet<string>,
): Uint8Array {
  const still = members.filter((member) => !ignored.has(member.key));
  return concatBytes(still.flatMap(({ span }) => [bytes.subarray(span.start, span.end), comma]));
}
