/**
 * Decides which headers pass through the gateway. Hop-by-hop headers (RFC 9110, section 7.6.1) and the gateway's own end here, in both
 * directions. All others pass unchanged, with duplicates and in order. The transports add the headers they need.
 */
import type { HeaderList } from './http.ts';

/** Says whether the bytes of a body are unchanged; `changed` drops the headers that describe the old bytes. */
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
/** Headers that the sending transport writes itself (`host`), or that the receiving server has answered (`expect`). */
const requestOnly: ReadonlySet<string> = new Set(['host', 'expect']);
const ofTheBody: ReadonlySet<string> = new Set([
  'content-length',
  'content-md5',
  'digest',
  'content-digest',
  'repr-digest',
]);
const nothing: ReadonlySet<string> = new Set();

/** Returns the client's headers for the upstream. */
export function headersToUpstream(headers: HeaderList, body: BodyState): HeaderList {
  return crossing(headers, requestOnly, body);
}

/** Returns the upstream's headers for the client. */
export function headersToClient(headers: HeaderList, body: BodyState): HeaderList {
  return crossing(headers, nothing, body);
}

/** Returns the first value of a header. `name` is in lower case. */
export function headerOf(headers: HeaderList, name: string): string | undefined {
  return headers.find((header) => header[0] === name)?.[1];
}

/** Returns the list with these headers in place of all others of the same names. Names are in lower case. */
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

/** Returns the names in the `connection` header: `connection: close, x-hop` makes `x-hop` a hop-by-hop header. */
function namedByConnection(headers: HeaderList): ReadonlySet<string> {
  let names: Set<string> | undefined;
  for (const [name, value] of headers) {
    if (name !== 'connection') continue;
    names ??= new Set();
    for (const token of value.split(',')) names.add(token.trim().toLowerCase());
  }
  return names ?? nothing;
}
