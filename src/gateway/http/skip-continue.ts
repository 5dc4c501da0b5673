/**
 * Makes undici skip `100 Continue` where nobody asked for it, as HTTP expects of every client (RFC 9110, section 15.2). undici skips
 * all other interim responses but takes this one for a broken server, and closes the connection. So each 100 is shown to it as a 102.
 */
import { subscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import { buildConnector } from 'undici';

/** Reads the bytes of one connection before undici does. */
type StatusReader = {
  /** The next bytes are the status line of a response. */
  expectResponse(): void;
  /** Changes the status of a 100 in place. */
  read(chunk: Uint8Array): void;
};

const readers = new WeakMap<object, StatusReader>();
let isSubscribed = false;

/** Connects as undici does by itself. */
export function connectorThatSkips100(options: buildConnector.BuildOptions): buildConnector.connector {
  // One subscription for the process: undici tells there of every request, just before it writes the first byte.
  if (!isSubscribed) subscribe('undici:client:sendHeaders', onRequest);
  isSubscribed = true;
  const connect = buildConnector(options);
  return (target, callback) => {
    connect(target, (...[error, socket]) => {
      if (error) callback(error, null);
      else callback(null, watched(socket));
    });
  };
}

function onRequest(message: unknown): void {
  const { socket } = message as { readonly socket: object };
  readers.get(socket)?.expectResponse();
}

/** undici takes the bytes of a socket by `read`, so that is where they are seen first. */
function watched(socket: Socket): Socket {
  const reader = createStatusReader();
  readers.set(socket, reader);
  const read = socket.read.bind(socket);
  socket.read = (size?: number) => {
    const chunk: unknown = read(size);
    if (chunk instanceof Uint8Array) reader.read(chunk);
    return chunk;
  };
  return socket;
}

const LF = 10;
const CR = 13;
const DIGIT_2 = 50;
/** The bytes before the status, and the offset of its three digits. */
const version = new TextEncoder().encode('HTTP/1.1 ');
const minorVersion = version.length - 2;

function createStatusReader(): StatusReader {
  let state: 'status' | 'interim' | 'final' = 'status';
  /** So many bytes of the status line have come. */
  let at = 0;
  let digits = '';
  let isLineEmpty = false;

  function readStatus(chunk: Uint8Array, place: number): void {
    const byte = chunk[place]!;
    if (at === 0 && (byte === CR || byte === LF)) return;
    if (at < version.length) {
      if (at !== minorVersion && byte !== version[at]) state = 'final';
      at += 1;
      return;
    }
    digits += String.fromCharCode(byte);
    if (digits.length < 3) return;
    if (digits === '100') chunk[place] = DIGIT_2;
    // Behind a 101 another protocol is spoken.
    state = digits.startsWith('1') && digits !== '101' ? 'interim' : 'final';
    isLineEmpty = false;
  }

  function readInterim(byte: number): void {
    if (byte === LF && isLineEmpty) restart();
    else if (byte === LF) isLineEmpty = true;
    else if (byte !== CR) isLineEmpty = false;
  }

  function restart(): void {
    state = 'status';
    at = 0;
    digits = '';
  }

  return {
    expectResponse: restart,
    read(chunk) {
      for (let place = 0; place < chunk.length && state !== 'final'; place++) {
        if (state === 'status') readStatus(chunk, place);
        else readInterim(chunk[place]!);
      }
    },
  };
}
