/**
 * Finds the short values in the arguments of calls, such as paths, commands, ids and large numbers; those used most and last come first. A stub
 * that names them spares the model a recall just to find out what something was called. Pure.
 */
import { spellValue } from '../../outline/summary-text.ts';
import { type Conversation, inputOf, type Message } from '../../conversation/conversation.ts';

/** Maximum length of a value: a longer one is content, not a name. */
const maxLength = 160;
const minLength = 4;

/** Smaller numbers are counts and flags, which a model chooses itself. */
const minNumber = 100;

/** Returns one-line values in the arguments of the calls in these messages, up to `max` characters in total, without those in the text `known`. */
export function keyValues(
  conversation: Conversation,
  messages: readonly Message[],
  { max, known }: { readonly max: number; readonly known: string },
): readonly string[] {
  const times = new Map<string, number>();
  for (const message of messages) {
    for (const part of message.parts) {
      if (part.type !== 'tool-call') continue;
      for (const value of shortValues(inputOf(conversation.body, message, part))) {
        const before = times.get(value) ?? 0;
        // Moves the value to the end, as used last.
        times.delete(value);
        times.set(value, before + 1);
      }
    }
  }
  const chosen: string[] = [];
  let left = max;
  const byUse = [...times].toReversed().toSorted(([, one], [, other]) => other - one);
  for (const [value] of byUse) {
    const spelled = spellValue(value);
    if (spelled.length + 2 > left || known.includes(spelled)) continue;
    chosen.push(spelled);
    left -= spelled.length + 2;
  }
  return chosen;
}

/** Returns the one-line values in arguments, in order. */
export function shortValues(argumentsJson: string): readonly string[] {
  try {
    return leavesOf('', JSON.parse(argumentsJson));
  } catch {
    return [];
  }
}

/** Returns the values inside a value; `key` is the name of its argument or member. */
function leavesOf(key: string, value: unknown): readonly string[] {
  if (typeof value === 'string') {
    const text = value.trim();
    const isName =
      text.length >= minLength && text.length <= maxLength && !text.includes('\n') && text.isWellFormed();
    return isName ? [text] : [];
  }
  // A number without a name would say nothing.
  if (typeof value === 'number')
    return value >= minNumber && /^[\w-]{1,40}$/.test(key) ? [`${key}=${value}`] : [];
  if (typeof value !== 'object' || value === null) return [];
  if (Array.isArray(value)) return value.flatMap((member) => leavesOf('', member));
  return Object.entries(value).flatMap(([name, member]) => leavesOf(name, member));
}
