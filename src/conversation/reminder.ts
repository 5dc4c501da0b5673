/** What clients say to the model in the user's place: reminders, surroundings, the rules of a repository. Pure. */
import { bytesOf, type Conversation, type Message, textOf, textsOf } from './conversation.ts';

/**
 * Whether a text is nothing but elements that clients wrap such words in (`<system-reminder>`, `<environment_details>`). What the user
 * said meanwhile is passed on in them, too, and is none; nor is an element of any other name, for the user may have written it.
 */
export function isReminder(text: string): boolean {
  const end = text.trimEnd().length;
  if (end === 0) return false;
  for (let at = 0; at < end; ) {
    element.lastIndex = at;
    const begin = element.exec(text);
    if (!begin) return false;
    const close = `</${begin[1]}>`;
    const found = text.indexOf(close, element.lastIndex);
    if (found < 0) return false;
    at = found + close.length;
  }
  return !passedOn.test(text);
}

/** Whether the user says something in this message, beside its results and reminders. */
export function userSpeaks({ body }: Conversation, message: Message): boolean {
  if (message.role !== 'user') return false;
  return message.parts.some((part) => {
    if (part.type === 'tool-result') return false;
    if (part.type !== 'text') return true;
    return textsOf(part).some((span) => {
      const first = String.fromCharCode(bytesOf(body, message, span)[1]!);
      return !mayBegin.test(first) || !isReminder(textOf(body, message, span));
    });
  });
}

/** Of an element, of spaces in front of it, or of their escapes: other texts, which may be long, need not be decoded. */
const mayBegin = /[<\\ ]/;

/** The begin of one, with what is in front of it. Of names that a user may well give, such as `context`, none. */
const element =
  /\s*<((?:[a-z]+[-_])?reminder|(?:system|environment)[-_][a-z_-]+|user[-_]instructions)(?: [^>\n]{0,300})?>/y;

/** How clients pass on what the user said. */
const passedOn =
  /\buser\b[^.\n]{0,40}\b(?:sent|said|says|asks|asked|wrote|writes|replied|told|wants|requested|messages?|interrupted)\b/i;
