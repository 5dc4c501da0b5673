/**
 * Says which edits of a generateContent body are allowed. No part is bound to its prefix: a signature belongs to its own part.
 * https://ai.google.dev/gemini-api/docs/thought-signatures
 */
import type { Conversation, Message, Part } from '../../conversation/conversation.ts';
import { type Edit, lastMessageOf } from '../../conversation/edit.ts';
import type { FormatRules } from '../codec.ts';
import { exceptKept } from '../what-stays.ts';
import { faults } from './faults.ts';
import { problems, currentTurn } from './problems.ts';
import { isSigned } from './read-part.ts';

export const rules: FormatRules = {
  problems,
  faults,
  mayEdit: exceptKept(mayEdit),
  bindsPrefix: () => false,
  complete: (_conversation, edits) => ({ status: 'ok', edits }),
};

/**
 * Unsigned texts, calls and results may change. A signed part stays unchanged, and in the current turn, whose signatures are
 * checked, it also keeps its place. A whole step may be removed, calls and responses together. With `cachedContent` the contents
 * follow the cache, so they may change.
 */
function mayEdit(conversation: Conversation, edit: Edit): boolean {
  const at = lastMessageOf(edit);
  const message = conversation.messages[at];
  if (!message) return false;
  switch (edit.kind) {
    case 'insert-message':
      // "function response turn comes immediately after a function call turn"
      return !message.parts.some((part) => part.type === 'tool-result');
    case 'drop-message':
      return true;
    case 'drop-part':
      return mayDrop(conversation, message, message.parts[edit.part]);
    case 'replace-text': {
      const part = message.parts[edit.at.part];
      if (part?.type !== 'text' && part?.type !== 'tool-result') return false;
      return edit.at.text in part.texts && !isSignedIn(conversation, message, part);
    }
    case 'replace-input': {
      const part = message.parts[edit.part];
      return (
        part?.type === 'tool-call' &&
        part.input.end > part.input.start &&
        !isSignedIn(conversation, message, part)
      );
    }
  }
}

function mayDrop(conversation: Conversation, message: Message, part: Part | undefined): boolean {
  if (!part || part.type === 'opaque' || part.type === 'media') return false;
  const isFinished = message.index < currentTurn(conversation);
  if (part.type === 'reasoning') return isFinished;
  return isFinished || !isSignedIn(conversation, message, part);
}

function isSignedIn({ body }: Conversation, message: Message, part: Part): boolean {
  return isSigned(body.subarray(message.span.start, message.span.end), part.span);
}
