/**
 * Ids of calls and results are optional in this format: without them results answer calls by name and order. A call and a result
 * that both lack an id are paired by the name in the ids we made; here the results without an id get that of a call which has one.
 */
import type { Message, Part } from '../../conversation/conversation.ts';
import { nameInId } from './read-part.ts';

type OpenCall = { readonly id: string; readonly name: string; answered: boolean };

/** Calls of one turn that wait for their results: in order, by id and by name. */
type OpenCalls = { readonly byId: Map<string, Waiting>; readonly byName: Map<string, Waiting> };

/** Calls in their order; the first `done` of them are answered. */
type Waiting = { readonly calls: OpenCall[]; done: number };

/** The messages themselves where nothing is to be paired so. */
export function pairByName(messages: readonly Message[]): readonly Message[] {
  let open = noCalls();
  let speaker: Message['role'] | undefined;
  return messages.map((message) => {
    if (message.role === 'assistant' && speaker !== 'assistant') open = noCalls();
    speaker = message.role;
    for (const part of message.parts) if (part.type === 'tool-call') addCall(open, part);
    const parts = message.parts.map((part) => (part.type === 'tool-result' ? answering(part, open) : part));
    return parts.every((part, index) => part === message.parts[index]) ? message : { ...message, parts };
  });
}

function noCalls(): OpenCalls {
  return { byId: new Map(), byName: new Map() };
}

function addCall(
  { byId, byName }: OpenCalls,
  { id, name }: { readonly id: string; readonly name: string },
): void {
  const call = { id, name, answered: false };
  for (const [calls, key] of [
    [byId, id],
    [byName, name],
  ] as const) {
    const waiting = calls.get(key);
    if (waiting) waiting.calls.push(call);
    else calls.set(key, { calls: [call], done: 0 });
  }
}

function answering(part: Part & { readonly type: 'tool-result' }, { byId, byName }: OpenCalls): Part {
  const name = nameInId(part.callId);
  const call =
    firstWaiting(byId.get(part.callId)) ?? (name === undefined ? undefined : firstWaiting(byName.get(name)));
  if (!call) return part;
  call.answered = true;
  return call.id === part.callId ? part : { ...part, callId: call.id };
}

/** Each call that is answered is passed by once. */
function firstWaiting(waiting: Waiting | undefined): OpenCall | undefined {
  if (!waiting) return undefined;
  while (waiting.calls[waiting.done]?.answered === true) waiting.done++;
  return waiting.calls[waiting.done];
}
