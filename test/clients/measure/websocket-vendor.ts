/**
 * Serves a vendor's WebSocket for the Responses API: each `response.create` becomes a request to the scripted provider, and the events of
 * its stream become messages. It stores responses, so that `previous_response_id` works.
 */
import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { isObject, objectsIn, parseJson } from '../../support/fake-provider/json.ts';
import type { JsonObject } from '../../support/fake-provider/script.ts';

/** Serves an upgrade; `onText` gets each message of the client unchanged. */
export function serveWebSocket(
  { headers }: IncomingMessage,
  socket: Duplex,
  options: { readonly provider: string; readonly onText: (text: string) => void },
): void {
  const key = `${headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
  const accept = createHash('sha1').update(key).digest('base64');
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
  );
  const responses = new Map<string, readonly unknown[]>();
  const read = frameReader((opcode, payload) => {
    if (opcode === close) socket.end(frame(close, Buffer.alloc(0)));
    else if (opcode === ping) socket.write(frame(pong, payload));
    else if (opcode === text) {
      options.onText(payload.toString());
      answer(payload, options.provider, responses, (event) => {
        socket.write(frame(text, Buffer.from(event)));
      }).catch((error: unknown) => socket.destroy(error instanceof Error ? error : undefined));
    }
  });
  socket.on('data', read);
  socket.on('error', () => socket.destroy());
}

const [text, close, ping, pong] = [1, 8, 9, 10];

async function answer(
  payload: Buffer,
  provider: string,
  responses: Map<string, readonly unknown[]>,
  send: (event: string) => void,
): Promise<void> {
  const asked = parseJson(payload);
  if (!isObject(asked) || asked['type'] !== 'response.create') return;
  const { type: _, generate, previous_response_id: previous, ...body } = asked;
  const input = [...(responses.get(String(previous)) ?? []), ...objectsIn(body['input'])];
  if (generate === false) {
    const id = `resp_warm_${responses.size}`;
    responses.set(id, input);
    const response = { id, object: 'response', model: body['model'], output: [], usage: null };
    send(JSON.stringify({ type: 'response.created', response: { ...response, status: 'in_progress' } }));
    send(JSON.stringify({ type: 'response.completed', response: { ...response, status: 'completed' } }));
    return;
  }
  const reply = await fetch(`${provider}/v1/responses`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ ...body, input, stream: true }),
  });
  for (const line of (await reply.text()).split('\n')) {
    if (!line.startsWith('data: {')) continue;
    const event = JSON.parse(line.slice(6)) as JsonObject;
    if (isObject(event['response']) && event['type'] === 'response.completed') {
      responses.set(String(event['response']['id']), [...input, ...objectsIn(event['response']['output'])]);
    }
    send(line.slice(6));
  }
}

/** Returns a reader of a client's bytes that reports each complete message and joins fragments. */
function frameReader(report: (opcode: number, payload: Buffer) => void): (chunk: Buffer) => void {
  let waiting = Buffer.alloc(0);
  let fragments: Buffer[] = [];
  let started = 0;
  return (chunk) => {
    waiting = Buffer.concat([waiting, chunk]);
    while (waiting.length >= 2) {
      const short = waiting[1]! & 0x7f;
      const head = short === 126 ? 4 : short === 127 ? 10 : 2;
      if (waiting.length < head) return;
      const length =
        short === 126 ? waiting.readUInt16BE(2) : short === 127 ? Number(waiting.readBigUInt64BE(2)) : short;
      if (waiting.length < head + 4 + length) return;
      const mask = waiting.subarray(head, head + 4);
      const payload = Buffer.from(waiting.subarray(head + 4, head + 4 + length)).map(
        (byte, at) => byte ^ mask[at % 4]!,
      );
      const [isLast, opcode] = [(waiting[0]! & 0x80) !== 0, waiting[0]! & 0x0f];
      waiting = waiting.subarray(head + 4 + length);
      if (opcode >= close) report(opcode, Buffer.from(payload));
      else {
        if (opcode !== 0) started = opcode;
        fragments.push(Buffer.from(payload));
        if (!isLast) continue;
        report(started, Buffer.concat(fragments));
        fragments = [];
      }
    }
  };
}

function frame(opcode: number, payload: Buffer): Buffer {
  const { length } = payload;
  const head = length < 126 ? Buffer.from([0x80 | opcode, length]) : Buffer.alloc(length < 65_536 ? 4 : 10);
  if (length >= 126) {
    head[0] = 0x80 | opcode;
    head[1] = length < 65_536 ? 126 : 127;
    if (length < 65_536) head.writeUInt16BE(length, 2);
    else head.writeBigUInt64BE(BigInt(length), 2);
  }
  return Buffer.concat([head, payload]);
}
