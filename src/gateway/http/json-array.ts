/**
 * Serves a stream as one JSON array that arrives in pieces, as some clients of formats with the mode in the URL want it. The upstream is asked for
 * server-sent events, in which recalls can be answered, and their data become the items of the array. It reads no files and opens no sockets.
 */
import { type GatewayResponse, type HeaderList, headerOf, splitEvents, withHeaders } from './http.ts';

/** Returns the URL that asks for events in place of an array; the same URL if it asks for events already. */
export function eventsUrl(url: string): string {
  const [path = '', query = ''] = url.split('?', 2);
  const fields = query.split('&').filter((field) => field !== '');
  if (fields.includes(asEvents)) return url;
  return `${path}?${[...fields.filter((field) => field !== asJson), asEvents].join('&')}`;
}

/** The field of a query that chooses the form of a stream. */
const [asEvents, asJson] = ['alt=sse', 'alt=json'];

/** True when a query chooses no form of a stream that this gateway cannot write. */
export function hasKnownForm(query: string): boolean {
  return [...new URLSearchParams(query)].every(
    ([name, value]) => (name !== 'alt' || value === 'sse' || value === 'json') && name !== '$alt',
  );
}

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
