/** What a model reads of a message, as plain text: texts decoded, and the values of calls without their JSON. Pure. */
import {
  bytesOf,
  type Conversation,
  decodeLiteral,
  type Message,
  textOf,
  textsOf,
} from '../conversation/conversation.ts';
import { argumentLeaves } from './needs.ts';

export function messageText({ body }: Conversation, message: Message): string {
  const texts = message.parts.flatMap((part) => {
    if (part.type === 'tool-call')
      return [part.name, ...argumentLeaves(argumentsOf(body, message, part.input))];
    return textsOf(part).map((span) => textOf(body, message, span));
  });
  return texts.join('\n');
}

/** The arguments of a call as JSON: in some formats they stand in a string. An empty string means none. */
export function argumentsOf(
  body: Uint8Array,
  message: Message,
  input: { readonly start: number; readonly end: number },
): string {
  const bytes = bytesOf(body, message, input);
  const json = bytes[0] === 0x22 ? decodeLiteral(bytes) : new TextDecoder().decode(bytes);
  return json.trim() === '' ? '{}' : json;
}
