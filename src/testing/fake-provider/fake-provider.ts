/**
 * A provider for tests, demo and benchmarks: a real HTTP server on the loopback that speaks Chat Completions and Messages, plain
 * and streamed, refuses what the real ones refuse, answers what its script says, and keeps every request it got.
 */
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { chatFormat } from './chat-format.ts';
import { deliver, sendJson } from './deliver.ts';
import { isObject, parseJson } from './json.ts';
import { messagesFormat } from './messages-format.ts';
import { messagesRefusal } from './messages-rules.ts';
import type { JsonObject, Reply, Script, ScriptFormat, WireFormat } from './script.ts';

export type FakeProviderOptions = {
  readonly script: Script;
  /** Answers requests to other paths than those of the two formats. A 404 by default. */
  readonly other?: (request: RecordedRequest) => Reply;
  /** Refuse Messages whose roles do not alternate, as some hosts of that API still do. Default false, as the provider's own. */
  readonly strictRoles?: boolean;
};

export type RecordedRequest = {
  readonly format: ScriptFormat | 'count-tokens' | 'other';
  readonly method: string;
  /** Path with query. */
  readonly target: string;
  /** Names in lower case, in the order they came. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Uint8Array;
  /** When the body had come whole, in ms since the epoch. */
  readonly receivedAt: number;
  /** How the response ended: written out whole, or broken off by either side. */
  readonly ended: Promise<'complete' | 'broken-off'>;
};

export type FakeProvider = {
  /** `http://127.0.0.1:PORT`, without a path. */
  readonly url: string;
  /** All requests so far, refused ones too. */
  readonly requests: readonly RecordedRequest[];
  /** Resolves when so many requests have come. */
  received(count: number): Promise<void>;
  /** Breaks off what is under way and frees the port. */
  close(): Promise<void>;
};

/**
 * Starts on a free port.
 * @example
 * const provider = await startFakeProvider({ script: [{ type: 'turn', parts: [{ type: 'text', text: 'Hello' }] }] });
 * const client = new SomeSdk({ baseURL: `${provider.url}/v1`, apiKey: 'any' });
 */
export async function startFakeProvider(options: FakeProviderOptions): Promise<FakeProvider> {
  const requests: RecordedRequest[] = [];
  const waiting: { readonly count: number; readonly resolve: () => void }[] = [];
  const answer = createAnswerer(options);
  const serve = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const request = await record(incoming, outgoing);
    requests.push(request);
    for (const { count, resolve } of waiting) if (requests.length >= count) resolve();
    await answer(request, outgoing);
  };
  const server = createServer((incoming, outgoing) => {
    serve(incoming, outgoing).catch(() => outgoing.destroy());
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    received: (count) =>
      new Promise((resolve) => {
        if (requests.length >= count) resolve();
        else waiting.push({ count, resolve });
      }),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function record(incoming: IncomingMessage, outgoing: ServerResponse): Promise<RecordedRequest> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  const { rawHeaders, method = 'GET', url = '/' } = incoming;
  return {
    format: formatOf(method, url),
    method,
    target: url,
    headers: rawHeaders.flatMap((name, i) => (i % 2 === 0 ? [[name.toLowerCase(), rawHeaders[i + 1]!]] : [])),
    body: Buffer.concat(chunks),
    receivedAt: Date.now(),
    ended: new Promise((resolve) => {
      outgoing.once('close', () => resolve(outgoing.writableFinished ? 'complete' : 'broken-off'));
    }),
  };
}

function formatOf(method: string, target: string): RecordedRequest['format'] {
  if (method !== 'POST') return 'other';
  const [path] = target.split('?');
  if (path === '/v1/chat/completions') return 'chat';
  if (path === '/v1/messages') return 'messages';
  return path === '/v1/messages/count_tokens' ? 'count-tokens' : 'other';
}

function createAnswerer(options: FakeProviderOptions) {
  const { script, other, strictRoles = false } = options;
  const formats: Readonly<Record<RecordedRequest['format'], WireFormat>> = {
    chat: chatFormat,
    messages: messagesFormat(strictRoles),
    'count-tokens': {
      ...messagesFormat(strictRoles),
      refusal: (body) => messagesRefusal(body, { maxTokens: false, strictRoles }),
    },
    other: chatFormat,
  };
  let index = 0;
  return async (request: RecordedRequest, outgoing: ServerResponse): Promise<void> => {
    const format = formats[request.format];
    const bytes = request.body.length;
    const refuse = (status: number, message: string): void =>
      sendJson(outgoing, status, format.errorBody(status, { message }));
    if (request.format === 'other') {
      if (other === undefined) refuse(404, `Invalid URL (${request.method} ${request.target})`);
      else await deliver(outgoing, other(request), { format, request: {}, index: 0, bytes });
      return;
    }
    const body = parseJson(request.body);
    if (!isObject(body)) {
      refuse(400, 'We could not parse the JSON body of your request.');
      return;
    }
    const refusal = format.refusal(body);
    if (refusal !== undefined) sendJson(outgoing, 400, format.errorBody(400, refusal));
    else if (request.format === 'count-tokens')
      sendJson(outgoing, 200, { input_tokens: Math.ceil(bytes / 4) });
    else {
      const mine = index++;
      const reply = await replyOf(script, request.format, body, mine);
      await deliver(outgoing, reply, { format, request: body, index: mine, bytes });
    }
  };
}

const failed = (message: string): Reply => ({ type: 'error', status: 400, body: { error: { message } } });

/** A script that fails answers 400, which no client tries again. */
async function replyOf(
  script: Script,
  format: ScriptFormat,
  body: JsonObject,
  index: number,
): Promise<Reply> {
  if (typeof script !== 'function') {
    return (
      script[index] ?? failed(`The script has ${script.length} replies and this is request ${index + 1}.`)
    );
  }
  try {
    return await script({ format, body, index });
  } catch (error) {
    return failed(`The script failed: ${String(error)}`);
  }
}
