/** Requests that go on from a response the provider keeps. https://platform.openai.com/docs/guides/conversation-state */
import type { Conversation } from '../../conversation/conversation.ts';
import { scanArray, scanObject, skipSpace } from '../../conversation/json-scan.ts';
import type { KeptReply } from '../../conversation/kept-reply.ts';
import { applySplices, jsonBytes, listSplices } from '../../conversation/splice.ts';
import { setMembers } from '../event-json.ts';
import { answerItem, asList } from './write.ts';

/** The outputs that are still owed stand in front of the client's own; an input that is one text stays one where none are. */
export function goOnFrom({ body }: Pick<Conversation, 'body'>, { name, owed }: KeptReply): Uint8Array {
  const named = setMembers(body, { previous_response_id: jsonBytes(name) });
  if (owed.length === 0) return named;
  const listed = asList(named);
  const input = scanObject(listed, skipSpace(listed, 0)).members.find(({ key }) => key === 'input')!.value;
  const outputs = owed.map((answer) => ({ before: 0, bytes: answerItem(answer) }));
  const { elements } = scanArray(listed, input.start);
  return applySplices(
    listed,
    listSplices(elements, input.end - 1, () => false, outputs),
  );
}
