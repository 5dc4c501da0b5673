/** Describes conversations from outside for the cases of the suite: their content, and their bytes. */
import type { Codec, ReadContext } from '../../../src/codecs/codec.ts';
import type { Conversation } from '../../../src/conversation/conversation.ts';
import { textOf, textsOf } from '../../../src/conversation/messages.ts';
import { scanObject, skipSpace } from '../../../src/conversation/json-scan.ts';
import { sha256 } from '../../../src/store/encrypted-store.ts';

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Returns a context that remembers nothing of other tests. */
export function newReading(): ReadContext {
  return { digest: sha256, blocks: new Map() };
}

export function view(codec: Codec, body: Uint8Array | string): Conversation {
  return codec.read(typeof body === 'string' ? encoder.encode(body) : body, newReading());
}

/** Returns bytes as text. Throws if a code point was split. */
export function shown(bytes: Uint8Array): string {
  return decoder.decode(bytes);
}

/** Returns all texts that a body holds for the model, those outside the messages first. */
export function textsIn(conversation: Conversation): readonly string[] {
  const { body, preamble, messages } = conversation;
  return [...preamble, ...messages].flatMap((block) =>
    block.parts.flatMap((part) => textsOf(part).map((text) => textOf(body, block, text))),
  );
}

/** Returns the bytes of every top-level member except the list of messages. */
export function otherMembers({ body }: Conversation, messagesKey: string): readonly string[] {
  return scanObject(body, skipSpace(body, 0))
    .members.filter(({ key }) => key !== messagesKey)
    .map(({ span }) => shown(body.subarray(span.start, span.end)));
}

export function bytesOfBlock(
  body: Uint8Array,
  block: { readonly span: { readonly start: number; readonly end: number } },
): string {
  return shown(body.subarray(block.span.start, block.span.end));
}
