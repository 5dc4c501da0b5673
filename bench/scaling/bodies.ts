/** The conversations of the scaling benchmark: recorded coding sessions joined to a length, and some that are made to be hard. */
import { type ChatMessage, type Recorded, readRecorded } from '../tokens/recorded.ts';

/** Messages in the form of Chat Completions. */
export type Messages = readonly object[];

/** Undefined where there are no recorded conversations. */
export function recordedSessions(): readonly Recorded[] | undefined {
  return readRecorded()?.filter(
    ({ source, messages }) => source === 'entire-cli-sessions' && messages.length >= 50,
  );
}

/** The sessions end to end until they have so many tokens, as `count` reckons them. The last message is not the model's. */
export function joined(
  sessions: readonly Recorded[],
  tokens: number,
  count: (message: ChatMessage) => number,
): Messages {
  const messages: ChatMessage[] = [];
  let length = 0;
  for (const message of sessions.flatMap((session) => session.messages)) {
    if (length >= tokens && message.role === 'assistant') return messages;
    messages.push(message);
    length += count(message);
  }
  throw new Error(`The recorded sessions have ${length} tokens, but ${tokens} are asked for.`);
}

/** Short messages of both sides, of about so many bytes each. */
export function smallTalk(count: number, bytes: number): Messages {
  return Array.from({ length: count }, (_, at) => {
    const role = at % 2 === 0 ? 'user' : 'assistant';
    const content = `${at} and so on, and so forth`.padEnd(
      bytes - `{"role":"${role}","content":""},`.length,
      '.',
    );
    return { role, content };
  });
}

/** Calls with results of about so many bytes, each another text. */
export function toolLoop(count: number, bytes: number): Messages {
  const begin = { role: 'user', content: 'Read them all.' };
  return [begin, ...Array.from({ length: count }, (_, at) => callWithResult(at, bytes)).flat()];
}

/** The messages of one turn that was never seen before. */
export function callWithResult(at: number, bytes: number): Messages {
  const id = `call_${at}`;
  const line = (number: number) =>
    `${number}: the value of ${at} at ${number} is ${(at * 7_919 + number) % 10_007}\n`;
  const content = Array.from({ length: Math.ceil(bytes / line(99).length) }, (_, number) =>
    line(number),
  ).join('');
  const call = { name: 'read', arguments: JSON.stringify({ path: `notes/${at}.txt` }) };
  return [
    { role: 'assistant', content: null, tool_calls: [{ id, type: 'function', function: call }] },
    { role: 'tool', tool_call_id: id, content },
  ];
}

/** A request of these messages in the form of Chat Completions. */
export function chatBody(messages: Messages, model = 'gpt-4o'): Uint8Array {
  const parameters = { type: 'object', properties: { path: { type: 'string' } } };
  const tools = [{ type: 'function', function: { name: 'read', description: 'Reads a file.', parameters } }];
  return new TextEncoder().encode(JSON.stringify({ model, stream: true, tools, messages }));
}
