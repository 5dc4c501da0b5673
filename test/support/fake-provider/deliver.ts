/** Writes a scripted reply to the connection: plain, as a stream with its pauses, hanging or cut. All timing is here. */
import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { textOf } from './script.ts';
import type { Answer, ModelRequest, Reply, Turn, TurnPart, WireEvent, WireFormat } from './script.ts';

export type Context = {
  readonly format: WireFormat;
  readonly request: ModelRequest;
  readonly index: number;
  /** Size of the request body. */
  readonly bytes: number;
};

/** Resolves when the reply is written or the client has disconnected. */
export async function deliver(outgoing: ServerResponse, reply: Reply, context: Context): Promise<void> {
  outgoing.setHeader(context.format.idHeader, `req_${context.index}`);
  switch (reply.type) {
    case 'turn':
      return sendTurn(outgoing, reply, context, 'whole');
    case 'hang': {
      if (reply.afterEvents === undefined) return closed(outgoing);
      const turn: Turn = { type: 'turn', parts: reply.parts ?? [] };
      return sendTurn(outgoing, turn, context, { end: 'hang', after: reply.afterEvents });
    }
    case 'cut': {
      const turn: Turn = { type: 'turn', parts: reply.parts ?? someText };
      return sendTurn(outgoing, turn, context, { end: 'cut', after: reply.afterEvents });
    }
    case 'error': {
      const message = `The script answers this request with status ${reply.status}.`;
      for (const [name, value] of Object.entries(reply.headers ?? {})) outgoing.setHeader(name, value);
      sendJson(outgoing, reply.status, reply.body ?? context.format.errorBody(reply.status, { message }));
      return;
    }
    case 'raw':
      for (const [name, value] of Object.entries(reply.headers)) outgoing.setHeader(name, value);
      outgoing.writeHead(reply.status).flushHeaders();
      for (const chunk of reply.chunks) {
        await write(outgoing, chunk);
        // One turn of the event loop between chunks; otherwise they are sent together.
        await sleep(0);
      }
      outgoing.end();
  }
}

export function sendJson(outgoing: ServerResponse, status: number, body: unknown): void {
  const text = JSON.stringify(body);
  outgoing.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
  });
  outgoing.end(text);
}

const someText: readonly TurnPart[] = [{ type: 'text', text: 'word '.repeat(100) }];

type Extent = 'whole' | { readonly end: 'hang' | 'cut'; readonly after: number };

async function sendTurn(
  outgoing: ServerResponse,
  turn: Turn,
  context: Context,
  extent: Extent,
): Promise<void> {
  const { format, request } = context;
  const answer = answerOf(turn, context);
  // Before the last byte is sent: after it the client may ask for what is kept.
  if (extent === 'whole') format.memory?.keep(answer);
  if (request.reply !== 'whole') {
    const events = format.events(answer);
    const given = extent === 'whole' ? events : events.slice(0, extent.after);
    await sendEvents(outgoing, given, turn, streamTypes[request.reply]);
  } else {
    const whole = format.whole(answer);
    if (extent === 'whole') sendJson(outgoing, 200, whole);
    else sendHalf(outgoing, JSON.stringify(whole));
  }
  if (extent === 'whole') outgoing.end();
  else if (extent.end === 'hang') await closed(outgoing);
  else {
    // One turn later, because bytes written in this one may still be corked.
    await sleep(0);
    outgoing.socket?.destroySoon();
  }
}

const streamTypes = {
  events: 'text/event-stream; charset=utf-8',
  array: 'application/json; charset=UTF-8',
} as const;

async function sendEvents(
  outgoing: ServerResponse,
  events: readonly WireEvent[],
  turn: Turn,
  contentType: string,
): Promise<void> {
  outgoing.writeHead(200, { 'content-type': contentType, 'cache-control': 'no-cache' });
  outgoing.flushHeaders();
  const gone = closed(outgoing);
  for (const { text, part } of events) {
    const pause = part === undefined ? undefined : turn.pauseBeforePart?.[part];
    if (pause !== undefined) {
      await Promise.race([typeof pause === 'number' ? sleep(pause) : pause, gone]);
    }
    if (outgoing.destroyed) return;
    await write(outgoing, text);
    if (turn.chunkDelayMs !== undefined) await sleep(turn.chunkDelayMs);
  }
}

function sendHalf(outgoing: ServerResponse, text: string): void {
  const bytes = Buffer.from(text);
  outgoing.writeHead(200, { 'content-type': 'application/json', 'content-length': bytes.length });
  outgoing.write(bytes.subarray(0, bytes.length / 2));
}

async function write(outgoing: ServerResponse, chunk: string | Uint8Array): Promise<void> {
  if (outgoing.destroyed || outgoing.write(chunk)) return;
  await new Promise<void>((resolve) => {
    const done = (): void => {
      outgoing.off('drain', done).off('close', done);
      resolve();
    };
    outgoing.on('drain', done).on('close', done);
  });
}

async function closed(outgoing: ServerResponse): Promise<void> {
  if (outgoing.destroyed) return;
  await new Promise<void>((resolve) => {
    outgoing.once('close', resolve);
  });
}

function answerOf(turn: Turn, { format, index, request, bytes }: Context): Answer {
  const written = turn.parts.map((part) =>
    part.type === 'tool-call' ? JSON.stringify(part.arguments) : textOf(part),
  );
  return {
    index,
    request,
    parts: turn.parts,
    usage: {
      input: Math.ceil(bytes / 4),
      output: Math.ceil((written.join('').length + 1) / 4),
      cacheRead: 0,
      cacheWrite: 0,
      ...(turn.usage ?? format.cached?.(request)),
    },
    finish: turn.finish,
    chunkSize: turn.chunkSize ?? 12,
  };
}
