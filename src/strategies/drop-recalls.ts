/**
 * Drops what the model recalled in earlier turns, oldest first: the private calls together with their answers. What they brought stays
 * recallable under the id it was recalled by, so nothing is lost but the asking again.
 */
import type { Conversation } from '../conversation/conversation.ts';
import type { Edit } from '../conversation/edit.ts';
import { type Pair, pairCalls, type PartPlace, placeKey } from '../conversation/pairing.ts';
import type { FoldView, Strategy } from './strategy.ts';
import { touched } from './text-slots.ts';

export const dropRecalls: Strategy = { name: 'drop-recalls', lastResort: false, propose };

function propose(view: FoldView): readonly Edit[] {
  const edits: Edit[] = [];
  let saved = 0;
  for (const round of roundsOf(view)) {
    if (saved >= view.excess.amount) break;
    const dropped = editsFor(view, round);
    if (dropped.length === 0 || !dropped.every(view.mayEdit)) continue;
    edits.push(...dropped);
    saved += dropped.reduce((sum, edit) => sum + gainOf(view, edit), 0);
  }
  return edits;
}

/** The answered recalls of each message that makes some, where nothing of them is protected or gone. */
function roundsOf(view: FoldView): readonly (readonly PartPlace[])[] {
  const gone = touched(view.edits);
  const isFree = ({ message, part }: PartPlace) =>
    !view.protects.message(message) &&
    !view.protects.part(message, part) &&
    !gone.messages.has(message) &&
    !gone.parts.has(placeKey({ message, part }));
  const rounds = new Map<number, PartPlace[]>();
  for (const pair of pairCalls(view.conversation).pairs) {
    if (!isRecall(view, pair)) continue;
    rounds.set(pair.call.message, [...(rounds.get(pair.call.message) ?? []), pair.call, pair.result]);
  }
  return [...rounds.values()].filter((places) => places.every(isFree));
}

function isRecall(view: FoldView, pair: Pair): pair is Pair & { readonly result: PartPlace } {
  return pair.name === view.recallTool && pair.result !== undefined;
}

/** Messages that hold nothing else go whole, with the reasoning that led to the recalls; of others only the parts go. */
function editsFor({ conversation }: FoldView, places: readonly PartPlace[]): readonly Edit[] {
  const going = new Set(places.map(placeKey));
  const whole = new Set(
    places.map(({ message }) => message).filter((index) => isNothingElse(conversation, index, going)),
  );
  const parts = places.filter(({ message }) => !whole.has(message));
  // Reasoning that led to the recall must not stand alone.
  if (parts.some(({ message }) => holdsSigned(conversation, message))) return [];
  return [
    ...[...whole].map((message): Edit => ({ kind: 'drop-message', message, memory: undefined })),
    ...parts.map((place): Edit => ({ kind: 'drop-part', ...place, memory: undefined })),
  ];
}

function isNothingElse({ messages }: Conversation, index: number, going: ReadonlySet<string>): boolean {
  return messages[index]!.parts.every(
    ({ type }, part) => type === 'reasoning' || going.has(placeKey({ message: index, part })),
  );
}

function holdsSigned({ messages }: Conversation, index: number): boolean {
  return messages[index]!.parts.some((part) => part.type === 'reasoning' && part.signed);
}

function gainOf(view: FoldView, edit: Edit): number {
  const inMessages = view.excess.unit === 'messages';
  switch (edit.kind) {
    case 'drop-message':
      return inMessages ? 1 : view.measure.message(edit.message);
    case 'drop-part': {
      const message = view.conversation.messages[edit.message]!;
      return inMessages ? 0 : view.measure.part(message, message.parts[edit.part]!);
    }
    case 'replace-text':
    case 'insert-message':
      return 0;
  }
}
