/** The simple policies: nothing at all, keep the last results, cut every result. Plain edits, through the codec like the engine's own. */
import { type Conversation, textOf, textsOf } from '../conversation/conversation.ts';
import type { Edit } from '../conversation/edit.ts';
import type { Policy, PolicyRequest } from './policy.ts';

export const fullContext: Policy = editPolicy('full context', () => []);

/** Clears all tool results but the last, as many agents do in every request. */
export function keepLast(results: number): Policy {
  return editPolicy(`keep last ${results}`, ({ conversation }) => {
    const all = resultTexts(conversation);
    const first = (all.at(-1)?.order ?? 0) + 1 - results;
    return all.filter((slot) => slot.order < first).flatMap((slot) => replaced(slot, '[cleared]'));
  });
}

/** Keeps the first and the last characters of every tool result. */
export function cutResults(characters: number): Policy {
  return editPolicy(`cut to 2 × ${characters}`, ({ conversation, rerun }) =>
    resultTexts(conversation).flatMap((slot) => {
      const { text } = slot;
      if (rerun.has(slot.message) || text.length <= 2 * characters) return [];
      const head = text.slice(0, characters).toWellFormed();
      const tail = text.slice(-characters).toWellFormed();
      return replaced(slot, `${head}\n[${text.length - 2 * characters} characters cut]\n${tail}`);
    }),
  );
}

function editPolicy(name: string, edits: (request: PolicyRequest) => readonly Edit[]): Policy {
  return {
    name,
    hasMemory: false,
    open: (codec) => ({
      async send(request) {
        return { body: codec.write(request.conversation, edits(request)), prepared: undefined };
      },
    }),
  };
}

type ResultText = {
  readonly message: number;
  readonly part: number;
  readonly index: number;
  /** Counts results, not their texts. */
  readonly order: number;
  readonly text: string;
};

function resultTexts(conversation: Conversation): readonly ResultText[] {
  let order = -1;
  return conversation.messages.flatMap((message) =>
    message.parts.flatMap((part, at) => {
      if (part.type !== 'tool-result') return [];
      order += 1;
      return textsOf(part).map((span, index) => ({
        message: message.index,
        part: at,
        index,
        order,
        text: textOf(conversation.body, message, span),
      }));
    }),
  );
}

/** Never by something longer. */
function replaced({ message, part, index, text }: ResultText, stub: string): readonly Edit[] {
  if (stub.length >= text.length) return [];
  return [{ kind: 'replace-text', at: { message, part, text: index }, stub, memory: '' }];
}
