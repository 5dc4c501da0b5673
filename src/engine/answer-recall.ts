/** Answers one call of the recall tool from the request itself: whoever can see the stub can have what it stands for. */
import { resolveRecall } from '../recall/resolve.ts';
import type { Prepared } from './prepared.ts';

export type RecallText = {
  /** For the model: the original, the part it asked for, or a sentence that says why not. */
  readonly text: string;
  /** Whether there was something to read: an original behind the id, or some to search. */
  readonly found: boolean;
  /** Of the text. */
  readonly tokens: number;
};

/** At most `maxTokens` of text, whatever arguments the model sent. */
export async function answerRecall(
  prepared: Prepared,
  argumentsJson: string,
  maxTokens: number,
): Promise<RecallText> {
  const count = (text: string) => prepared.counter?.count(text) ?? text.length;
  let found = false;
  const text = await resolveRecall({
    argumentsJson,
    async lookup(id) {
      const original = await (prepared.lookUpOriginal ?? prepared.original)(id);
      found ||= original !== undefined;
      return original && new TextDecoder().decode(original);
    },
    all: prepared.searched,
    maxTokens,
    countTokens: count,
  });
  return { text, found, tokens: count(text) };
}
