/**
 * Keeps passes over a growing conversation cheap: prefix hashes and values that are remembered by message, and slices, which
 * let other requests run during long work.
 *
 * A prefix is identified by a chain of digests over what the messages say, h(j) = H(h(j-1), canonical(message j)), tenant
 * first. The same prefix has the same hash in every later request and every instance, so folds need no session id and branches
 * cannot mix.
 */
import type { Conversation, Message } from './conversation.ts';
import { type Member, concatBytes } from './json-scan.ts';
import { type Steps, runSteps } from './texts.ts';

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
  const before = from > 0 ? known?.links : undefined;
  // A list that is longer was continued by another branch.
  const links =
    before?.length === from + 1 ? before : (before?.slice(0, from + 1) ?? [digest(encoder.encode(root))]);
  for (let at = from; at < messages.length; at++) {
    links.push(digest(encoder.encode(`${links[at]}\n${messages[at]!.canonical}`)));
  }
  rememberAt(chains, messages, from, { root, links });
  return links.slice(0, messages.length + 1);
}

type KnownLinks = { readonly root: string; readonly links: string[] };

/** Links by message. Conversations that only append share one list, which later turns make longer. */
const chains = new WeakMap<Message, KnownLinks>();

/** The number of newest messages under which values are remembered: clients often rewrite the last few. */
const rememberedMessages = 8;

/** Remembers a value under the newest of the messages from `from` on. */
function rememberAt<T>(
  known: WeakMap<Message, T>,
  messages: readonly Message[],
  from: number,
  value: T,
): void {
  for (let at = Math.max(from, messages.length - rememberedMessages); at < messages.length; at++)
    known.set(messages[at]!, value);
}

/**
 * Returns the canonical digest of a message: of its role and what each part says, byte for byte, without the members that clients
 * move. `pieces` are the bytes that the codec found significant, in order.
 */
export function canonicalDigest(role: string, pieces: readonly Uint8Array[], digest: Digest): string {
  return digest(joinedPieces([encoder.encode(role), ...pieces]));
}

/** Joins pieces by line ends. */
export function joinedPieces(pieces: readonly Uint8Array[]): Uint8Array {
  const joined = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length + 1, -1));
  let at = 0;
  for (const piece of pieces) {
    if (at > 0) joined.set(lineEnd, at++);
    joined.set(piece, at);
    at += piece.length;
  }
  return joined;
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

// Values that are remembered for each message of a prefix

/** Returns the values of all messages, in their order. The list may be longer than the conversation: a later turn may have grown it. */
export type PerMessage<T> = (messages: readonly Message[], valueOf: (message: Message) => T) => readonly T[];

export function perMessage<T>(): PerMessage<T> {
  /** Conversations that only append share one list. */
  const lists = new WeakMap<Message, T[]>();
  return function valuesOf(messages, valueOf) {
    let known: T[] | undefined;
    let from = messages.length;
    while (from > 0 && (known = lists.get(messages[from - 1]!)) === undefined) from--;
    if (known && from === messages.length) return known;
    // Another branch may have continued from the same message.
    const values = known?.length === from ? known : (known?.slice(0, from) ?? []);
    for (let index = from; index < messages.length; index++) values.push(valueOf(messages[index]!));
    rememberAt(lists, messages, from, values);
    return values;
  };
}

/** Remembers the result for an object as long as the object is alive. The object must not change. */
export function memoized<Key extends WeakKey, Made>(make: (key: Key) => Made): (key: Key) => Made {
  const known = new WeakMap<Key, { readonly made: Made }>();
  return (key) => {
    const before = known.get(key);
    if (before) return before.made;
    const made = make(key);
    known.set(key, { made });
    return made;
  };
}

// Cuts long work on one body into slices, so that it does not hold up other requests of the same thread. All passes over a
// conversation remember their results by message, so a pass that was paused continues where it was.

export type Slices = {
  /** True when the running slice has taken its time. */
  readonly isOver: () => boolean;
  /** Lets other requests run, if the slice has taken its time. */
  readonly pause: () => Promise<void>;
};

/** Runs the steps, and lets other requests run in between. Without `slices` it does not pause. */
export async function runInSlices<T>(steps: Steps<T>, slices: Slices | undefined): Promise<T> {
  if (!slices) return runSteps(steps);
  let step = steps.next();
  for (; !step.done; step = steps.next()) if (slices.isOver()) await slices.pause();
  return step.value;
}

/** Milliseconds. */
const sliceMs = 10;

/** Starts the first slice. */
export function openSlices(): Slices {
  let startedAt = performance.now();
  const isOver = (): boolean => performance.now() - startedAt > sliceMs;
  return {
    isOver,
    async pause() {
      if (!isOver()) return;
      await nextTurn();
      startedAt = performance.now();
    },
  };
}

/** Resolves in the next turn of the event loop, after everything that has arrived meanwhile was handled. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    if (typeof setImmediate === 'function') setImmediate(resolve);
    else setTimeout(resolve, 0);
  });
}
