/** Finds the texts of a conversation that edits can still replace, given the edits made so far. */
import {
  bytesOf,
  type Message,
  type Part,
  type TextPlace,
  textOf,
  textsOf,
} from '../../conversation/conversation.ts';
import type { Edit } from '../../conversation/edit.ts';
import type { FoldView } from '../strategy.ts';

/** A text that can be replaced. */
export type EditableText = {
  readonly at: TextPlace;
  readonly message: Message;
  readonly part: Part;
  /** The JSON string literal, which is stored as the original. */
  readonly literal: Uint8Array;
  text(): string;
};

/** Yields the texts of parts of one type, in order, except those that edits have dropped or replaced. */
export function* editableTexts(view: FoldView, type: Part['type']): Generator<EditableText> {
  const gone = placesEdited(view.edits);
  for (const message of view.conversation.messages) {
    if (gone.messages.has(message.index)) continue;
    for (const [index, part] of message.parts.entries()) {
      if (part.type !== type || gone.parts.has(`${message.index}.${index}`)) continue;
      for (const [text, span] of textsOf(part).entries()) {
        if (gone.texts.has(`${message.index}.${index}.${text}`)) continue;
        yield {
          at: { message: message.index, part: index, text },
          message,
          part,
          literal: bytesOf(view.conversation.body, message, span),
          text: () => textOf(view.conversation.body, message, span),
        };
      }
    }
  }
}

/** The places that edits have dropped or replaced: messages by index, everything else by key of place. */
export type EditedPlaces = {
  readonly messages: ReadonlySet<number>;
  readonly parts: ReadonlySet<string>;
  readonly texts: ReadonlySet<string>;
  readonly inputs: ReadonlySet<string>;
};

/** Returns the edited places. They are remembered per list of edits, since a fold's list is the same in every request. */
export function placesEdited(edits: readonly Edit[]): EditedPlaces {
  const gone = known.get(edits) ?? placesOf(edits);
  known.set(edits, gone);
  return gone;
}

const known = new WeakMap<readonly Edit[], EditedPlaces>();

function placesOf(edits: readonly Edit[]): EditedPlaces {
  const messages = new Set<number>();
  const parts = new Set<string>();
  const texts = new Set<string>();
  const inputs = new Set<string>();
  for (const edit of edits) {
    switch (edit.kind) {
      case 'drop-message':
        messages.add(edit.message);
        break;
      case 'drop-part':
        parts.add(`${edit.message}.${edit.part}`);
        break;
      case 'replace-text':
        texts.add(`${edit.at.message}.${edit.at.part}.${edit.at.text}`);
        break;
      case 'replace-input':
        inputs.add(`${edit.message}.${edit.part}`);
        break;
      case 'insert-message':
        break;
    }
  }
  return { messages, parts, texts, inputs };
}

const encoder = new TextEncoder();

/** Returns the size of a text in UTF-8 bytes. */
export function byteLength(text: string): number {
  return encoder.encode(text).length;
}
