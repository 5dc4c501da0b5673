/** The model of the demo: a scripted provider of Chat Completions on the loopback, which recalls one folded result. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ChatBody, ChatCall, ChatMessage } from './client.ts';

/** The call whose result the model recalls, and the query for it. */
const recalled = { call: 'call_02', query: 'small-amount' } as const;

const recallCall = 'call_recall';

export function demoScript(sample: ChatBody): (body: ChatBody) => ChatMessage {
  const replies = sample.messages.filter(({ role }) => role === 'assistant');
  let turn = 0;
  return (body) => {
    const reply = replies[turn];
    if (reply === undefined)
      throw new Error(`The script has only ${replies.length} turns, but got another request.`);
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

/** Splits a text after its first paragraph. */
function split(text: string): readonly [string, string] {
  const end = text.indexOf('\n\n');
  return [text.slice(0, end), text.slice(end)];
}

/** Returns the id in the stub of the folded result. */
function memoryIdIn({ messages }: ChatBody): string | undefined {
  const result = messages.find((message) => message.tool_call_id === recalled.call);
  return /mem_[0-9a-z]{16}/.exec(result?.content ?? '')?.[0];
}

export type ScriptedProvider = {
  /** The URL, `http://127.0.0.1:PORT`. */
  readonly url: string;
  /** The bodies that it received, in order. */
  readonly received: readonly ChatBody[];
  close(): Promise<void>;
};

/**
 * Starts the scripted model: a server on the loopback that streams what `answer` returns for each request. It implements one wire format and
 * checks nothing; the fake provider for tests (test/support/) does, but is not part of the command.
 */
export async function startScriptedProvider(
  answer: (body: ChatBody) => ChatMessage,
): Promise<ScriptedProvider> {
  const received: ChatBody[] = [];
  const server = createServer((incoming, outgoing) => {
    serve(incoming, outgoing).catch(() => outgoing.destroy());
  });

  async function serve(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const body = JSON.parse(await textOf(incoming)) as ChatBody;
    received.push(body);
    const events = [...eventsOf(answer(body), `chatcmpl-${received.length}`, body.model)];
    outgoing.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const event of events) outgoing.write(`data: ${JSON.stringify(event)}\n\n`);
    outgoing.end('data: [DONE]\n\n');
  }

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(0, '127.0.0.1', resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function* eventsOf({ content, tool_calls }: ChatMessage, id: string, model: string): Generator<unknown> {
  const chunk = (delta: unknown, finish: string | null = null) => ({
    id,
    object: 'chat.completion.chunk',
    created: 0,
    model,
    choices: [{ index: 0, delta, finish_reason: finish }],
  });
  yield chunk({ role: 'assistant', content: '' });
  for (const piece of piecesOf(content ?? '')) yield chunk({ content: piece });
  for (const [index, call] of (tool_calls ?? []).entries())
    yield* callDeltas(call, index).map((delta) => chunk(delta));
  yield chunk({}, tool_calls === undefined ? 'stop' : 'tool_calls');
}

function callDeltas(
  { id, type, function: { name, arguments: json } }: ChatCall,
  index: number,
): readonly unknown[] {
  const opening = { index, id, type, function: { name, arguments: '' } };
  const rest = piecesOf(json).map((piece) => ({ index, function: { arguments: piece } }));
  return [opening, ...rest].map((call) => ({ tool_calls: [call] }));
}

/** Splits a text into pieces of a few words, as models send them. */
function piecesOf(text: string): readonly string[] {
  return text.match(/.{1,24}/gsu) ?? [];
}

async function textOf(incoming: IncomingMessage): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Uint8Array);
  return new TextDecoder().decode(Buffer.concat(chunks));
}
