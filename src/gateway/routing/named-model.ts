/**
 * Reads and writes what only the API of Gemini has in its URLs: model, action and form of a stream. It serves a stream as one JSON array that arrives in pieces, as
 * some clients want it: the upstream is asked for server-sent events, in which recalls can be answered, and their data become the items of the array.
 */
import { geminiFor } from '../../codecs/gemini/index.ts';
import { type GatewayResponse, type HeaderList, headerOf, splitEvents, withHeaders } from '../http/http.ts';

/**
 * Finds the route of a Gemini or Vertex AI request, whose path names model and action: `/v1beta/models/M:streamGenerateContent?alt=sse`.
 * Without `alt=sse`, the stream is one JSON array.
 */
export function namedModelRoute(path: string, query: string) {
  const [, model, action] = namedModel.exec(path) ?? [];
  if (model === undefined) return undefined;
  const streaming = action === 'streamGenerateContent';
  const codec = geminiFor({ model: decoded(model), streaming });
  if (action === 'countTokens') return { kind: 'count', codec } as const;
  const isRead = action === 'generateContent' || (streaming && hasKnownForm(query));
  return { kind: isRead ? 'model' : 'pass', codec } as const;
}

/** True when a query chooses no form of a stream that this gateway cannot write. */
function hasKnownForm(query: string): boolean {
  return [...new URLSearchParams(query)].every(
    ([name, value]) => (name !== 'alt' || value === 'sse' || value === 'json') && name !== '$alt',
  );
}

const namedModel =
  /^\/v1(?:(?:alpha|beta)\w*)?\/(?:(?:projects\/[^/]+\/locations\/[^/]+\/)?publishers\/google\/)?(?:models|tunedModels)\/([^/:]+):(\w+)$/;

/** Decodes a name. A malformed name stays as it is, for the provider to reject. */
function decoded(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

/** Returns the URL for a request of the gateway's own, not streamed, derived from the client's `url`. `model` replaces a model in the path. */
export function promptUrl(url: string, model: string | undefined): string {
  const [path = '', query = ''] = url.split('?', 2);
  const named = /^(.*\/(?:models|tunedModels)\/)([^/:]+):\w+$/.exec(path);
  if (!named) return url;
  const asked = new URLSearchParams(query);
  asked.delete('alt');
  const rest = asked.size === 0 ? '' : `?${asked.toString()}`;
  return `${named[1]!}${model === undefined ? named[2]! : encodeURIComponent(model.toWellFormed())}:generateContent${rest}`;
}

/** Returns the URL that asks for events in place of an array; the same URL if it asks for events already. */
export function eventsUrl(url: string): string {
  const [path = '', query = ''] = url.split('?', 2);
  const fields = query.split('&').filter((field) => field !== '');
  if (fields.includes(asEvents)) return url;
  return `${path}?${[...fields.filter((field) => field !== asJson), asEvents].join('&')}`;
}

/** The field of a query that chooses the form of a stream. */
const [asEvents, asJson] = ['alt=sse', 'alt=json'];

/** Converts the response to such a request: events to an array, and an error, which has no events, to an array of one item. */
export function asArray(response: GatewayResponse): GatewayResponse {
  const { status, headers, body } = response;
  const type = headerOf(headers, 'content-type') ?? '';
  const isStream = /^text\/event-stream\b/i.test(type);
  const isError = status >= 400 && /^application\/json\b/i.test(type);
  if (body === undefined || !(isStream || isError)) return response;
  if (body instanceof Uint8Array) return { status, headers: arrayHeaders(headers), body: listOfOne(body) };
  return { status, headers: arrayHeaders(headers), body: converted(body, isStream ? itemsOf : wrapped) };
}

function arrayHeaders(headers: HeaderList): HeaderList {
  const others = headers.filter(([name]) => name !== 'content-length');
  return withHeaders(others, [['content-type', 'application/json; charset=UTF-8']]);
}

function listOfOne(body: Uint8Array): Uint8Array {
  const list = new Uint8Array(body.length + 2);
  list.set(body, 1);
  list[0] = '['.charCodeAt(0);
  list[list.length - 1] = ']'.charCodeAt(0);
  return list;
}

const encoder = new TextEncoder();

/** Yields an array of the data of all events, each as soon as it has arrived. Comments have no data. */
async function* itemsOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let before = '[';
  for await (const { data } of splitEvents(chunks)) {
    if (data === '') continue;
    yield encoder.encode(before + data);
    before = ',\r\n';
  }
  yield encoder.encode(before === '[' ? '[]' : '\n]');
}

async function* wrapped(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield encoder.encode('[');
  yield* chunks;
  yield encoder.encode(']');
}

/** Returns the converted body. Ending it ends the body, too, even before the first `next()`, at which a generator would begin. */
function converted(
  body: AsyncIterable<Uint8Array>,
  convert: (chunks: AsyncIterable<Uint8Array>) => AsyncGenerator<Uint8Array>,
): AsyncIterable<Uint8Array> {
  return {
    [Symbol.asyncIterator]() {
      const chunks = body[Symbol.asyncIterator]();
      const pieces = convert({ [Symbol.asyncIterator]: () => chunks });
      return {
        next: () => pieces.next(),
        async return() {
          await chunks.return?.();
          return { done: true, value: undefined };
        },
      };
    },
  };
}
