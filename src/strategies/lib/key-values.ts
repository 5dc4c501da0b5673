/**
 * What calls were about, in few words: the short values of their arguments, such as paths, commands, ids and large numbers, those used
 * most and last first. A stub that names them spares the model a recall only to find how something was called. Pure.
 */
import { spellValue } from '../../outline/summary-text.ts';
import { type Conversation, inputOf, type Message } from '../../conversation/conversation.ts';

/** A value longer than this is content and not a name. */
const longest = 160;
const shortest = 4;

/** Smaller numbers are counts and flags, and a model chooses them anew. */
const leastNumber = 100;

/** Values of one line in the arguments of the calls in these messages, that `known` does not hold already, up to so many characters together. */
export function keyValues(
  conversation: Conversation,
  messages: readonly Message[],
  { most, known }: { readonly most: number; readonly known: string },
): readonly string[] {
  const times = new Map<string, number>();
  for (const message of messages) {
    for (const part of message.parts) {
      if (part.type !== 'tool-call') continue;
      for (const value of shortValues(inputOf(conversation.body, message, part))) {
        const before = times.get(value) ?? 0;
        // Moves to the end: used last.
        times.delete(value);
        times.set(value, before + 1);
      }
    }
  }
  const chosen: string[] = [];
  let left = most;
  const byUse = [...times].toReversed().toSorted(([, one], [, other]) => other - one);
  for (const [value] of byUse) {
    const spelled = spellValue(value);
    if (spelled.length + 2 > left || known.includes(spelled)) continue;
    chosen.push(spelled);
    left -= spelled.length + 2;
  }
  return chosen;
}

/** Values of one line, in their order. */
export function shortValues(argumentsJson: string): readonly string[] {
  try {
    return leavesOf('', JSON.parse(argumentsJson));
  } catch {
    return [];
  }
}

/** `key` is the name of the argument, or of the member, that holds the value. */
function leavesOf(key: string, value: unknown): readonly string[] {
  if (typeof value === 'string') {
    const text = value.trim();
    const isName =
      text.length >= shortest && text.length <= longest && !text.includes('\n') && text.isWellFormed();
    return isName ? [text] : [];
  }
  // A bare number would say nothing.
  if (typeof value === 'number')
    return value >= leastNumber && /^[\w-]{1,40}$/.test(key) ? [`${key}=${value}`] : [];
  if (typeof value !== 'object' || value === null) return [];
  if (Array.isArray(value)) return value.flatMap((member) => leavesOf('', member));
  return Object.entries(value).flatMap(([name, member]) => leavesOf(name, member));
}
