/**
 * Which headers cross the gateway. Hop-by-hop ones (RFC 9110, section 7.6.1) and our own end here, in both directions; all
 * others cross verbatim, duplicates and order included. Pure: lists in, lists out; the transports add what they need.
 */
import type { HeaderList } from './http.ts';

/** Whether the bytes that go on are the bytes that came; `changed` drops what describes the old ones. */
export type BodyState = 'same' | 'changed';

const hopByHop: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
]);
const endsHere = ['proxy-', 'x-leporello-'];
/** NamedTotals by the transport anew (`host`), or answered by the rim that took the request (`expect`). */
const requestOnly: ReadonlySet<string> = new Set(['host', 'expect']);
const ofTheBody: ReadonlySet<string> = new Set([
  'content-length',
  'content-md5',
  'digest',
  'content-digest',
  'repr-digest',
]);
const nothing: ReadonlySet<string> = new Set();

/** The client's headers as the upstream gets them. */
export function headersToUpstream(headers: HeaderList, body: BodyState): HeaderList {
  return crossing(headers, requestOnly, body);
}

/** The upstream's headers as the client gets them. */
export function headersToClient(headers: HeaderList, body: BodyState): HeaderList {
  return crossing(headers, nothing, body);
}

/** The first value of a header; `name` in lower case. */
export function headerOf(headers: HeaderList, name: string): string | undefined {
  return headers.find((header) => header[0] === name)?.[1];
}

/** The list with these headers in place of all others of their names; `name` in lower case. */
export function withHeaders(headers: HeaderList, replacing: HeaderList): HeaderList {
  const names = new Set(replacing.map(([name]) => name));
  return [...headers.filter(([name]) => !names.has(name)), ...replacing];
}

function crossing(headers: HeaderList, alsoStays: ReadonlySet<string>, body: BodyState): HeaderList {
  const named = namedByConnection(headers);
  return headers.filter(
    ([name]) =>
      !hopByHop.has(name) &&
      !alsoStays.has(name) &&
      !named.has(name) &&
      !endsHere.some((prefix) => name.startsWith(prefix)) &&
      !(body === 'changed' && ofTheBody.has(name)),
  );
}

/** `connection: close, x-hop` makes `x-hop` a header of this hop alone. */
function namedByConnection(headers: HeaderList): ReadonlySet<string> {
  let names: Set<string> | undefined;
  for (const [name, value] of headers) {
    if (name !== 'connection') continue;
    names ??= new Set();
    for (const token of value.split(',')) names.add(token.trim().toLowerCase());
  }
  return names ?? nothing;
}
