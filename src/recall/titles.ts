/** Says of each original where it stood: the message, and the call that it answered or made. Searches rank by it, and answers show it. Pure. */
import type { Conversation } from '../conversation/conversation.ts';
import type { Edit } from '../conversation/edit.ts';
import { inputOf } from '../conversation/messages.ts';
import { pairCalls, type PartPlace, placeKey } from '../conversation/turns.ts';
import { spellCall } from './message-page.ts';

export type OriginalTitle = {
  /** Index of the message, or of the first of several. */
  readonly message: number;
  /** What the original is, such as `result of Read src/app.ts`; undefined for whole messages, which say it themselves. */
  readonly text: string | undefined;
  /** True for the arguments of a call. */
  readonly isCall: boolean;
};

/** Returns the title of each original by its id. */
export function titlesOf(
  conversation: Conversation,
  edits: readonly Edit[],
): ReadonlyMap<string, OriginalTitle> {
  const callOf = new Map(
    pairCalls(conversation).pairs.flatMap(({ call, result }) =>
      result === undefined ? [] : [[placeKey(result), call] as const],
    ),
  );
  const titles = new Map<string, OriginalTitle>();
  for (const edit of edits) {
    if (edit.kind === 'insert-message' || edit.memory === undefined) continue;
    const place =
      edit.kind === 'replace-text'
        ? edit.at
        : { message: edit.message, part: 'part' in edit ? edit.part : -1 };
    const known = titles.get(edit.memory);
    if (known !== undefined && known.message <= place.message) continue;
    const text = edit.kind === 'drop-message' ? undefined : titleAt(conversation, place, callOf);
    const isCall = edit.kind === 'replace-input';
    titles.set(edit.memory, { message: place.message, text, isCall });
  }
  return titles;
}

function titleAt(
  conversation: Conversation,
  place: PartPlace,
  callOf: ReadonlyMap<string, PartPlace>,
): string | undefined {
  const message = conversation.messages[place.message];
  const part = message?.parts[place.part];
  if (message === undefined || part === undefined) return undefined;
  if (part.type === 'tool-call') return `call ${callAt(conversation, place)}`;
  if (part.type !== 'tool-result') return message.role;
  const call = callOf.get(placeKey(place));
  return call === undefined ? 'result' : `result of ${callAt(conversation, call)}`;
}

function callAt(conversation: Conversation, { message, part }: PartPlace): string {
  const holder = conversation.messages[message]!;
  const call = holder.parts[part]!;
  return call.type === 'tool-call' ? spellCall(call.name, inputOf(conversation.body, holder, call)) : '';
}
