/**
 * Drops what the model recalled in earlier turns, oldest first: the hidden calls with their answers. The content can still be recalled by the same
 * id, so only the repeated recall is lost.
 */
import type { Conversation, Part } from '../conversation/conversation.ts';
import type { Edit } from '../conversation/edit.ts';
import { type Pair, pairCalls, type PartPlace, placeKey } from '../conversation/turns.ts';
import type { FoldView, Strategy } from './strategy.ts';
import { placesEdited } from './lib/editable-texts.ts';

export const dropRecalls: Strategy = { name: 'drop-recalls', reach: 'history', propose };

function propose(view: FoldView): readonly Edit[] {
  const isFree = freeMessages(view);
  const edits: Edit[] = [];
  let saved = 0;
  for (const round of recallTurnsOf(view)) {
    if (saved >= view.excess.amount) break;
    const dropped = editsFor(view, round);
    if (dropped.length === 0 || !dropped.every((edit) => isFree(edit.message) && view.mayEdit(edit)))
      continue;
    edits.push(...dropped);
    saved += dropped.reduce((sum, edit) => sum + gainOf(view, edit), 0);
  }
  return edits;
}

/** Adjacent messages of the model that make one turn: in some formats, reasoning and each call are messages of their own. */
type RecallTurn = {
  readonly turn: readonly number[];
  /** The answered recalls in the turn, and their answers. */
  readonly recalls: readonly PartPlace[];
};

/** Returns the turns with recalls of which nothing is pinned or dropped. */
function recallTurnsOf(view: FoldView): readonly RecallTurn[] {
  const gone = placesEdited(view.edits).parts;
  const rounds = new Map<number, PartPlace[]>();
  const startOfTurn = turnStarts(view.conversation);
  for (const pair of pairCalls(view.conversation).pairs) {
    if (!isRecall(view, pair)) continue;
    const start = startOfTurn(pair.call.message);
    const recalls = rounds.get(start) ?? [];
    recalls.push(pair.call, pair.result);
    rounds.set(start, recalls);
  }
  return [...rounds]
    .filter(([, recalls]) =>
      recalls.every((place) => !view.protects.part(place.message, place.part) && !gone.has(placeKey(place))),
    )
    .map(([start, recalls]) => ({ turn: turnFrom(view.conversation, start), recalls }));
}

function isRecall(view: FoldView, pair: Pair): pair is Pair & { readonly result: PartPlace } {
  return pair.name === view.recallTool && pair.result !== undefined;
}

/** Returns a function that finds the start of a message's turn. Call it in order, so that no message is visited twice. */
function turnStarts({ messages }: Conversation): (index: number) => number {
  let last = { index: 0, start: 0 };
  return (index) => {
    let start = index;
    while (start > last.index && messages[start - 1]?.role === 'assistant') start--;
    last = { index, start: start === last.index ? last.start : start };
    return last.start;
  };
}

function turnFrom({ messages }: Conversation, start: number): readonly number[] {
  let end = start;
  while (messages[end]?.role === 'assistant') end++;
  return messages.slice(start, end).map(({ index }) => index);
}

type Drop = Extract<Edit, { readonly kind: 'drop-message' | 'drop-part' }>;

/**
 * Makes the drops of one turn. Messages with only recalls are dropped as a whole, with the reasoning before the recalls; of others only the parts.
 * Nothing is dropped if signed reasoning also led to something else, because it must stay with everything it led to.
 */
function editsFor({ conversation: { messages } }: FoldView, { turn, recalls }: RecallTurn): readonly Drop[] {
  const going = new Set(recalls.map(placeKey));
  const isWhole = (message: number) =>
    messages[message]!.parts.every(
      ({ type }, part) => type === 'reasoning' || going.has(placeKey({ message, part })),
    );
  const isAll = turn.every(isWhole);
  if (!isAll && turn.some((message) => messages[message]!.parts.some(isSealed))) return [];
  const concerned = new Set([...(isAll ? turn : []), ...recalls.map(({ message }) => message)]);
  return [...concerned]
    .toSorted((a, b) => a - b)
    .flatMap((message): readonly Drop[] =>
      isWhole(message)
        ? [{ kind: 'drop-message', message, memory: undefined }]
        : recalls
            .filter((place) => place.message === message)
            .map((place) => ({ kind: 'drop-part', ...place, memory: undefined })),
    );
}

function isSealed(part: Part): boolean {
  return part.type === 'reasoning' && part.signed;
}

/** Returns a function that is true for messages that are neither protected nor dropped. */
function freeMessages(view: FoldView): (message: number) => boolean {
  const gone = placesEdited(view.edits).messages;
  return (message) => !view.protects.message(message) && !gone.has(message);
}

function gainOf(view: FoldView, edit: Drop): number {
  const inMessages = view.excess.unit === 'messages';
  if (edit.kind === 'drop-message') return inMessages ? 1 : view.measure.message(edit.message);
  const message = view.conversation.messages[edit.message]!;
  return inMessages ? 0 : view.measure.part(message, message.parts[edit.part]!);
}
