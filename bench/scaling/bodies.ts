/** Builds the conversations of the scaling benchmark: joined recorded coding sessions, and some that are built to be hard. */
import { type ChatMessage, type Recorded, readRecorded } from '../tokens/recorded.ts';

/** Messages of Chat Completions. */
export type Messages = readonly object[];

/** Returns undefined if there are no recorded conversations. */
export function recordedSessions(): readonly Recorded[] | undefined {
  return readRecorded()?.filter(
    ({ source, messages }) => source === 'entire-cli-sessions' && messages.length >= 50,
  );
}

/** Joins sessions until they have at least `tokens` tokens by `count`. The next message would be the model's. */
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
  throw new Error(`The recorded sessions have only ${length} of ${tokens} tokens.`);
}

/** Returns alternating messages of user and assistant, each with about `bytes` bytes of JSON. */
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

/** Returns calls with different results of about `bytes` bytes each. */
export function toolLoop(count: number, bytes: number): Messages {
  const task = { role: 'user', content: 'Read them all.' };
  return [task, ...Array.from({ length: count }, (_, at) => callWithResult(at, bytes)).flat()];
}

/** Returns a call with its result. The text depends on `at`, so each turn is new. */
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

/** Builds a Chat Completions request of these messages. */
export function chatBody(messages: Messages, model = 'gpt-4o'): Uint8Array {
  const parameters = { type: 'object', properties: { path: { type: 'string' } } };
  const tools = [{ type: 'function', function: { name: 'read', description: 'Reads a file.', parameters } }];
  return new TextEncoder().encode(JSON.stringify({ model, stream: true, tools, messages }));
}
