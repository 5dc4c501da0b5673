/** How replies begin, in few words: a stub that says so keeps the thread of a long talk. Pure. */
import { type Conversation, type Message, textOf, textsOf } from '../conversation/conversation.ts';
import { quote } from './stub.ts';

/** Characters of one beginning. */
const longest = 120;

/** Of the replies among these messages that call nothing, in order; the newest first where not all have room in `most` characters. */
export function repliesBegin(
  conversation: Conversation,
  messages: readonly Message[],
  most: number,
): readonly string[] {
  const chosen: string[] = [];
  let left = most;
  for (const message of messages.toReversed()) {
    if (message.role !== 'assistant' || message.parts.some(({ type }) => type === 'tool-call')) continue;
    const text = textIn(conversation, message);
    const spelled = quote(text, longest);
    if (text === '' || spelled.length + 2 > left) continue;
    chosen.push(spelled);
    left -= spelled.length + 2;
  }
  return chosen.toReversed();
}

/** The first text of a message, on one line. */
function textIn({ body }: Conversation, message: Message): string {
  const [first] = message.parts.flatMap((part) => (part.type === 'text' ? textsOf(part) : []));
  return first === undefined ? '' : textOf(body, message, first).replaceAll(/\s+/g, ' ').trim();
}
