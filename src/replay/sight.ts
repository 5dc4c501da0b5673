/**
 * Tells whether a context shows a value. Messages that stand as they were recorded are known to hold it or not; only what a policy wrote
 * anew is searched.
 */
import type { Conversation } from '../conversation/conversation.ts';
import { messageText } from './message-text.ts';
import { holds } from './needs.ts';
import type { Need, Recording } from './recording.ts';

export interface Sight {
  shows(context: Conversation, need: Need): boolean;
}

export function createSight({ conversation }: Recording): Sight {
  const digests = conversation.messages.map(({ digest }) => digest);
  const recorded = new Set(digests);
  const texts = new Map<string, string>();
  const standing = new WeakMap<
    Conversation,
    { readonly has: ReadonlySet<string>; readonly anew: readonly string[] }
  >();

  function standingIn(context: Conversation) {
    const known = standing.get(context);
    if (known) return known;
    const anew = context.messages
      .filter(({ digest }) => !recorded.has(digest))
      .map((message) => {
        const text = texts.get(message.digest) ?? messageText(context, message);
        texts.set(message.digest, text);
        return text;
      });
    const seen = { has: new Set(context.messages.map(({ digest }) => digest)), anew };
    standing.set(context, seen);
    return seen;
  }

  return {
    shows(context, need) {
      const { has, anew } = standingIn(context);
      return (
        need.in.some((index) => has.has(digests[index]!)) || anew.some((text) => holds(text, need.value))
      );
    },
  };
}
