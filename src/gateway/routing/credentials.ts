/** Reads the credentials of a request, and detects the gateway's own token among them. */
import type { GatewayRequest, HeaderList } from '../http/http.ts';

/** A credential. `from` is the header that contains it, or `?key` for the query. */
export type Credential = { readonly from: string; readonly value: string };

/** Headers that contain a credential, for all clients and hosts. Not cookies: load balancers set new ones all the time. */
export const credentialHeaders: readonly string[] = [
  'authorization',
  'x-api-key',
  'api-key',
  'x-goog-api-key',
];

/** Returns the credentials of a request in order, without the word `Bearer`. */
export function credentialsOf(headers: HeaderList, target: string): readonly Credential[] {
  const inHeaders = headers
    .filter(([name]) => credentialHeaders.includes(name))
    .map(([from, value]) => ({
      from,
      value: from === 'authorization' ? value.replace(/^bearer\s+/i, '') : value,
    }));
  const inQuery = new URLSearchParams(queryOf(target)).get('key');
  return inQuery === null ? inHeaders : [...inHeaders, { from: '?key', value: inQuery }];
}

/**
 * Returns all credentials as one text, or undefined if there are none. A single key gives the same text in every header; several are joined,
 * so that users who share one key stay separate.
 */
export function credentialOf(headers: HeaderList, target: string): string | undefined {
  const all = new Set(credentialsOf(headers, target).map(({ value }) => value));
  return all.size === 0 ? undefined : [...all].toSorted().join('\n');
}

/** True when one of the credentials is the token. */
export function isFrom({ headers, target }: GatewayRequest, token: string): boolean {
  return credentialsOf(headers, target).some(({ value }) => sameText(value, token));
}

/** True when the headers or the target of a request contain the token anywhere, also as a password of basic authentication. */
export function carriesToken({ headers, target }: GatewayRequest, token: string): boolean {
  const passwords = headers.flatMap(([, value]) => {
    const [, encoded] = /^basic\s+([\w+/=-]+)\s*$/i.exec(value) ?? [];
    return encoded === undefined ? [] : [decodeBase64(encoded)];
  });
  const texts = [...headers.map(([, value]) => value), ...passwords, target, percentDecoded(target)];
  return texts.some((text) => text.includes(token));
}

/** Decodes each `%xx` to the character of that byte. Malformed escapes stay as they are. Never throws. */
export function percentDecoded(text: string): string {
  return text.replaceAll(/%([0-9a-f]{2})/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
}

/** Returns the part of a target after its first question mark; empty without one. */
export function queryOf(target: string): string {
  const mark = target.indexOf('?');
  return mark < 0 ? '' : target.slice(mark + 1);
}

function decodeBase64(text: string): string {
  try {
    return atob(text.replaceAll('-', '+').replaceAll('_', '/'));
  } catch {
    return '';
  }
}

/** Compares two texts in constant time for texts of the same length. */
function sameText(given: string, wanted: string): boolean {
  if (given.length !== wanted.length) return false;
  let difference = 0;
  for (let at = 0; at < wanted.length; at++) difference |= given.charCodeAt(at) ^ wanted.charCodeAt(at);
  return difference === 0;
}
