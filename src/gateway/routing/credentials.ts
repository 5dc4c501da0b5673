/** The credentials that a request carries, and whether one of them is the gateway's own token. Pure. */
import type { GatewayRequest, HeaderList } from '../http/http.ts';

/** One credential; `from` is the header, or `?key` for the query, that it came in. */
export type Credential = { readonly from: string; readonly value: string };

/** Headers that hold a credential, over all clients and hosts of the formats. A cookie is none: load balancers set new ones all the time. */
export const credentialHeaders: readonly string[] = [
  'authorization',
  'x-api-key',
  'api-key',
  'x-goog-api-key',
];

/** The credentials of a request in the order they came; the word `Bearer` is left out. */
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
 * The credentials as one text: a single key is the same text however its client sends it; several are joined, so that users behind
 * one shared key stay apart. Undefined without any.
 */
export function credentialOf(headers: HeaderList, target: string): string | undefined {
  const all = new Set(credentialsOf(headers, target).map(({ value }) => value));
  return all.size === 0 ? undefined : [...all].toSorted().join('\n');
}

/** True when one of the credentials is the token. */
export function isFrom({ headers, target }: GatewayRequest, token: string): boolean {
  return credentialsOf(headers, target).some(({ value }) => sameText(value, token));
}

/** True when the token stands anywhere in the head of the request: in any header, as a password, or in the target. */
export function carriesToken({ headers, target }: GatewayRequest, token: string): boolean {
  const passwords = headers.flatMap(([, value]) => {
    const [, encoded] = /^basic\s+([\w+/=-]+)\s*$/i.exec(value) ?? [];
    return encoded === undefined ? [] : [decodeBase64(encoded)];
  });
  const texts = [...headers.map(([, value]) => value), ...passwords, target, percentDecoded(target)];
  return texts.some((text) => text.includes(token));
}

/** The text with each `%xx` as the character of that byte. Never throws: what is malformed stays as it is. */
export function percentDecoded(text: string): string {
  return text.replaceAll(/%([0-9a-f]{2})/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
}

/** The part of a target after its first question mark; empty without one. */
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

/** Takes the same time wherever two texts of one length differ. */
function sameText(given: string, wanted: string): boolean {
  if (given.length !== wanted.length) return false;
  let difference = 0;
  for (let at = 0; at < wanted.length; at++) difference |= given.charCodeAt(at) ^ wanted.charCodeAt(at);
  return difference === 0;
}
