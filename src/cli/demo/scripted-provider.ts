/**
 * The model of the demo: a server on the loopback that streams what its script says, and keeps what it was sent. Knows one wire
 * format and no rules of it; the fake provider for tests (test/support/) knows them, but is not part of the command.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ChatBody, ChatCall, ChatMessage } from './chat.ts';

export type ScriptedProvider = {
  /** `http://127.0.0.1:PORT` */
  readonly url: string;
  /** The bodies it got, in order. */
  readonly received: readonly ChatBody[];
  close(): Promise<void>;
};

/** `answer` gives the model's message for a request. Errors of it are answered with 500. */
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

/** A few words each, as models send them. */
function piecesOf(text: string): readonly string[] {
  return text.match(/.{1,24}/gsu) ?? [];
}

async function textOf(incoming: IncomingMessage): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Uint8Array);
  return new TextDecoder().decode(Buffer.concat(chunks));
}
