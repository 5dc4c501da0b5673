/**
 * What the scripted model says: the assistant's messages of the sample, one for each request; within the last one it asks for the
 * log again, which has been folded by then. Pure but for counting its turns.
 */
import type { ChatBody, ChatMessage } from './chat.ts';

/** The call whose result is read again, and what is looked for in it. */
const recalled = { call: 'call_02', query: 'small-amount' } as const;

const recallCall = 'call_recall';

export function demoScript(sample: ChatBody): (body: ChatBody) => ChatMessage {
  const replies = sample.messages.filter(({ role }) => role === 'assistant');
  let turn = 0;
  return (body) => {
    const reply = replies[turn];
    if (reply === undefined) throw new Error(`The script has ${replies.length} turns.`);
    if (turn < replies.length - 1) {
      turn += 1;
      return reply;
    }
    const [before, after] = split(reply.content ?? '');
    if (body.messages.at(-1)?.tool_call_id === recallCall) return { role: 'assistant', content: after };
    const id = memoryIdIn(body);
    if (id === undefined) return reply;
    const json = JSON.stringify({ id, query: recalled.query });
    const call = { id: recallCall, type: 'function', function: { name: 'read_memory', arguments: json } };
    return { role: 'assistant', content: before, tool_calls: [call] };
  };
}

/** Behind the first paragraph. */
function split(text: string): readonly [string, string] {
  const end = text.indexOf('\n\n');
  return [text.slice(0, end), text.slice(end)];
}

/** The id in the stub that stands where the result stood. */
function memoryIdIn({ messages }: ChatBody): string | undefined {
  const result = messages.find((message) => message.tool_call_id === recalled.call);
  return /mem_[0-9a-z]{16}/.exec(result?.content ?? '')?.[0];
}
