/**
 * Identifies prefixes by a chain of digests over what the messages say, h(j) = H(h(j-1), canonical(message j)), tenant first. The
 * same prefix has the same hash in every later request and every instance, so folds need no session id and branches cannot mix.
 */
import type { Conversation, Message } from './conversation.ts';
import type { Member } from './json-scan.ts';
import { concatBytes } from './splice.ts';

type Digest = (bytes: Uint8Array) => string;

const encoder = new TextEncoder();
const lineEnd = encoder.encode('\n');
const comma = encoder.encode(',');

/**
 * Returns the links of a conversation: element j is the hash of messages 0 to j-1, so there is one more than there are messages.
 * `root` names the tenant and the format: prefixes of different roots never share a link. Links of the prefix that an earlier
 * call saw are not computed again.
 */
export function prefixLinks({ messages }: Conversation, root: string, digest: Digest): readonly string[] {
  let known: KnownLinks | undefined;
  let from = messages.length;
  for (; from > 0; from--) {
    known = chains.get(messages[from - 1]!);
    if (known?.root === root) break;
  }
  if (from === messages.length && known?.root === root) return known.links;
  const links = from > 0 && known ? known.links.slice(0, from + 1) : [digest(encoder.encode(root))];
  for (let at = links.length - 1; at < messages.length; at++) {
    links.push(digest(encoder.encode(`${links[at]}\n${messages[at]!.canonical}`)));
  }
  const last = messages.at(-1);
  // Each entry holds all links before it, so a conversation that continues keeps only its newest entry.
  if (from > 0) chains.delete(messages[from - 1]!);
  if (last) chains.set(last, { root, links });
  return links;
}

type KnownLinks = { readonly root: string; readonly links: readonly string[] };

/** Links by the last message of a request. */
const chains = new WeakMap<Message, KnownLinks>();

/**
 * Returns the canonical digest of a message: of its role and what each part says, byte for byte, without the members that clients
 * move. `pieces` are the bytes that the codec found significant, in order.
 */
export function canonicalDigest(role: string, pieces: readonly Uint8Array[], digest: Digest): string {
  return digest(concatBytes([encoder.encode(role), ...pieces.flatMap((piece) => [lineEnd, piece])]));
}

/** Returns the bytes of an object's members in order, without the ignored keys. */
export function significantBytes(
  bytes: Uint8Array,
  members: readonly Member[],
  ignored: ReadonlySet<string>,
): Uint8Array {
  const still = members.filter((member) => !ignored.has(member.key));
  return concatBytes(still.flatMap(({ span }) => [bytes.subarray(span.start, span.end), comma]));
}
