/** What happened in some messages, as a summarizer takes it: who said what, what was called and what it gave. No wire format. Pure. */
import {
  type Conversation,
  inputOf,
  type Message,
  textOf,
  textsOf,
} from '../../conversation/conversation.ts';
import { pairCalls, type PartPlace, placeKey } from '../../conversation/pairing.ts';
import { isReminder } from '../../conversation/turns.ts';
import type { SummaryStep } from '../../outline/summarizer.ts';

/** In order. Reasoning is left out, and so are calls of `recallTool`: what they brought stands elsewhere. */
export function summarySteps(
  conversation: Conversation,
  messages: readonly Message[],
  recallTool: string | undefined,
): readonly SummaryStep[] {
  const resultOf = resultsOf(conversation);
  return messages.flatMap((message) =>
    message.parts.flatMap((part, index): readonly SummaryStep[] => {
      if (part.type === 'text' && (message.role === 'user' || message.role === 'assistant'))
        return textsIn(conversation, message, index).map((text) => ({
          type: 'said',
          by: message.role === 'assistant' ? 'assistant' : isReminder(text) ? 'client' : 'user',
          text,
        }));
      if (part.type !== 'tool-call' || part.name === recallTool) return [];
      const input = inputOf(conversation.body, message, part);
      const answer = resultOf.get(placeKey({ message: message.index, part: index }));
      const answered = answer && conversation.messages[answer.message]!;
      const result = answer && answered?.parts[answer.part];
      return [
        {
          type: 'called',
          tool: part.name,
          input,
          result: answer && answered && textsIn(conversation, answered, answer.part).join('\n'),
          failed: result?.type === 'tool-result' && result.isError === true,
        },
      ];
    }),
  );
}

/** Where calls are answered, by the key of their place. */
function resultsOf(conversation: Conversation): ReadonlyMap<string, PartPlace | undefined> {
  const { pairs } = pairCalls(conversation);
  const results = known.get(pairs) ?? new Map(pairs.map(({ call, result }) => [placeKey(call), result]));
  known.set(pairs, results);
  return results;
}

/** By the pairs of a conversation, which never change: sub-goals ask message by message. */
const known = new WeakMap<object, ReadonlyMap<string, PartPlace | undefined>>();

function textsIn({ body }: Conversation, message: Message, part: number): readonly string[] {
  return textsOf(message.parts[part]!).map((span) => textOf(body, message, span));
}
