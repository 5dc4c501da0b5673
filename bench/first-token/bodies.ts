/**
 * Builds a conversation of tool calls as a request of each wire format. The bytes are the same in every run, except for turn numbers of
 * eight digits. Another number in the newest message makes the next turn of the conversation; in every message, a new conversation.
 */
import { asAnthropic } from '../../test/support/as-anthropic.ts';
import { asResponses } from '../../test/support/as-responses.ts';
import { randomNumbers } from '../tokens/arithmetic.ts';
import { type ChatMessage, asGemini } from './as-gemini.ts';

export const formats = ['chat', 'messages', 'responses', 'gemini'] as const;
export type Format = (typeof formats)[number];

export const paths: Readonly<Record<Format, string>> = {
  chat: '/v1/chat/completions',
  messages: '/v1/messages',
  responses: '/v1/responses',
  gemini: '/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse',
};

/** A request body with the offsets of its turn numbers in bytes. The last one is in the newest message. */
export type Body = { readonly bytes: Uint8Array; readonly numbersAt: readonly number[] };

const number = '00000000';

/** Builds a body of about `size` bytes. */
export function bodyOf(format: Format, size: number): Body {
  const bytes = inFormat[format](encode({ messages: conversation(size), tools }));
  const text = Buffer.from(bytes);
  const numbersAt: number[] = [];
  for (let at = text.indexOf(number); at >= 0; at = text.indexOf(number, at + 1)) numbersAt.push(at);
  return { bytes, numbersAt };
}

/** Writes another turn number into the newest message or into every message. */
export function renumber({ bytes, numbersAt }: Body, turn: number, where: 'last' | 'everywhere'): void {
  const digits = new TextEncoder().encode(String(turn).padStart(number.length, '0'));
  for (const at of where === 'last' ? numbersAt.slice(-1) : numbersAt) bytes.set(digits, at);
}

const inFormat: Readonly<Record<Format, (chat: Uint8Array) => Uint8Array>> = {
  chat: (chat) => withMembers(chat, { model: 'gpt-4o', stream: true }),
  messages: (chat) => asAnthropic(withMembers(chat, { model: 'claude-sonnet-4-5', stream: true })),
  responses: (chat) => withMembers(asResponses(withMembers(chat, { model: 'gpt-5' })), { stream: true }),
  gemini: asGemini,
};

function withMembers(body: Uint8Array, members: object): Uint8Array {
  return encode({ ...(JSON.parse(new TextDecoder().decode(body)) as object), ...members });
}

function encode(body: object): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(body));
}

const parameters = { type: 'object', properties: { path: { type: 'string' } } };
const tools = [{ type: 'function', function: { name: 'read', description: 'Reads a file.', parameters } }];

function conversation(size: number): readonly ChatMessage[] {
  const messages: ChatMessage[] = [
    { role: 'system', content: `You are a careful engineer. Session ${number}.` },
    { role: 'user', content: 'Find out why the nightly build is red.' },
  ];
  const next = randomNumbers(7);
  for (let length = 0, at = 0; length < size - 3_500; at += 1) {
    const content = `file ${number}\n${lines(next)}`;
    const call = { name: 'read', arguments: JSON.stringify({ path: `notes/${at}.txt` }) };
    messages.push(
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: `call_${at}`, type: 'function', function: call }],
      },
      { role: 'tool', tool_call_id: `call_${at}`, content },
    );
    length += content.length + 200;
  }
  messages.push({ role: 'assistant', content: 'The cause is not in these.' });
  messages.push({ role: 'user', content: `Go on with ${number}.` });
  return messages;
}

const words =
  'the build server could not find a package that another job had moved while this one was still waiting for its turn'.split(
    ' ',
  );

/** Returns about 3,000 characters of prose, with as many tokens per character as natural text. */
function lines(next: (below: number) => number): string {
  return Array.from({ length: 40 }, () =>
    Array.from({ length: 14 }, () => words[next(words.length)]).join(' '),
  ).join('\n');
}
