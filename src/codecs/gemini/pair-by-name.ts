/**
 * Ids of calls and results are optional in this format: without them results answer calls by name and order. A call and a result
 * that both lack an id are paired by the name in the ids we made; here the results without an id get that of a call which has one.
 */
import type { Message, Part } from '../../conversation/conversation.ts';
import { nameInId } from './read-part.ts';

type OpenCall = { readonly id: string; readonly name: string; answered: boolean };

/** The messages themselves where nothing is to be paired so. */
export function pairByName(messages: readonly Message[]): readonly Message[] {
  let open: OpenCall[] = [];
  let speaker: Message['role'] | undefined;
  return messages.map((message) => {
    if (message.role === 'assistant' && speaker !== 'assistant') open = [];
    speaker = message.role;
    for (const part of message.parts)
      if (part.type === 'tool-call') open.push({ id: part.id, name: part.name, answered: false });
    const parts = message.parts.map((part) => (part.type === 'tool-result' ? answering(part, open) : part));
    return parts.every((part, index) => part === message.parts[index]) ? message : { ...message, parts };
  });
}

function answering(part: Part & { readonly type: 'tool-result' }, open: readonly OpenCall[]): Part {
  const name = nameInId(part.callId);
  const waiting = open.filter((call) => !call.answered);
  const call =
    waiting.find(({ id }) => id === part.callId) ??
    (name === undefined ? undefined : waiting.find((candidate) => candidate.name === name));
  if (!call) return part;
  call.answered = true;
  return call.id === part.callId ? part : { ...part, callId: call.id };
}
