/** Converts messages into the steps that a summarizer reads: who said what, and which calls returned what. Independent of wire formats. Pure. */
import {
  type Conversation,
  inputOf,
  type Message,
  textOf,
  textsOf,
} from '../../conversation/conversation.ts';
import { type PartPlace, isReminder, pairCalls, placeKey } from '../../conversation/turns.ts';
import type { SummaryStep } from '../../outline/summarizer.ts';

/** Returns the steps in order, without reasoning and calls of `recallTool`, whose answers are elsewhere in the conversation. */
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

/** Returns the places of results by the key of their call's place. */
function resultsOf(conversation: Conversation): ReadonlyMap<string, PartPlace | undefined> {
  const { pairs } = pairCalls(conversation);
  const results = known.get(pairs) ?? new Map(pairs.map(({ call, result }) => [placeKey(call), result]));
  known.set(pairs, results);
  return results;
}

/** Remembered by the pairs of a conversation, which never change, since sub-goals are read message by message. */
const known = new WeakMap<object, ReadonlyMap<string, PartPlace | undefined>>();

function textsIn({ body }: Conversation, message: Message, part: number): readonly string[] {
  return textsOf(message.parts[part]!).map((span) => textOf(body, message, span));
}
