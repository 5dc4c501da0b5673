/**
 * Drops calls of tools that do not exist, with their errors: they teach the model nothing and invite it to try again. A call counts if its name is
 * not among the offered tools and its result is an error.
 */
import { type Part, textOf, textsOf } from '../conversation/conversation.ts';
import type { Edit } from '../conversation/edit.ts';
import { type Pair, pairCalls, type PartPlace } from '../conversation/turns.ts';
import { saysNoSuchTool } from './lib/no-such-tool.ts';
import type { FoldView, Strategy } from './strategy.ts';
import { placesEdited } from './lib/editable-texts.ts';

export const dropFailedCalls: Strategy = { name: 'drop-failed-calls', reach: 'history', propose };

function propose(view: FoldView): readonly Edit[] {
  const offered = new Set(view.conversation.toolNames);
  if (offered.size === 0) return [];
  const gone = placesEdited(view.edits);
  return pairCalls(view.conversation).pairs.flatMap((pair) => {
    if (offered.has(pair.name) || !pair.result || gone.parts.has(`${pair.call.message}.${pair.call.part}`))
      return [];
    if (gone.messages.has(pair.call.message)) return [];
    const edits = [dropPart(pair.call), dropPart(pair.result)];
    return isOld(view, pair, pair.result) && failed(view, pair.result, pair.name) && edits.every(view.mayEdit)
      ? edits
      : [];
  });
}

function dropPart({ message, part }: PartPlace): Edit {
  return { kind: 'drop-part', message, part, memory: undefined };
}

/** True if nothing protects the call. A call in a message with signed reasoning stays, because the reasoning must not be left alone. */
function isOld(view: FoldView, pair: Pair, result: PartPlace): boolean {
  const asking = view.conversation.messages[pair.call.message]!;
  return (
    !asking.parts.some((part) => part.type === 'reasoning' && part.signed) &&
    [pair.call, result].every(
      (place) => !view.protects.message(place.message) && !view.protects.part(place.message, place.part),
    )
  );
}

function failed(view: FoldView, place: PartPlace, name: string): boolean {
  const message = view.conversation.messages[place.message]!;
  const part: Part | undefined = message.parts[place.part];
  if (part?.type !== 'tool-result' || part.isError === false) return false;
  if (part.isError) return true;
  const text = textsOf(part)
    .map((span) => textOf(view.conversation.body, message, span))
    .join('\n');
  return saysNoSuchTool(text, name);
}
