/**
 * Reads the credentials of a request, and its session. The credentials decide which tenant it belongs to, according to the setting `tenant`,
 * and must not be sent to another provider than their own.
 */
import { openFixed } from '../../caches.ts';
import { LeporelloError } from '../../errors.ts';
import { type EncryptedStore, isTenantLabel } from '../../store/encrypted-store.ts';
import { type GatewayRequest, type HeaderList, headerOf } from '../http/http.ts';

/**
 * The setting `tenant`.
 *
 * - `'local'`: one tenant for all requests sent directly from this machine. A request that a proxy forwarded belongs to its credential.
 * - `'credential'`: each credential is a tenant of its own.
 * - another label (1 to 64 of a-z, 0-9 and -): one tenant for all requests.
 * - `{ header }`: the tenant that a proxy in front names in this header. The proxy must remove the client's own header of that name.
 * - `{ claim }`: the tenant that the JWT in `authorization` names in this claim. Only the provider checks the signature, so the token shows
 *   nothing under `/_leporello/` and cannot compress or retrieve. A request without that claim belongs to its credential.
 */
export type TenantSetting = string | { readonly header: string } | { readonly claim: string };

/** The tenant of a request, or the reason why it has none. `isVerified` is false when anyone could have written the tenant's name. */
export type Tenant =
  | { readonly label: string; readonly isVerified: boolean }
  | { readonly label: undefined; readonly problem: string };

/** Maps requests to tenants. */
export type TenantRule = {
  tenantOf(request: GatewayRequest): Tenant;
  /** Returns the headers for the provider, without the one that names the tenant. */
  forwarded(headers: HeaderList): HeaderList;
};

/** Creates the rule for a setting. Throws `bad-config` for an invalid setting. */
export function createTenantRule(
  setting: TenantSetting,
  encryptedStore: Pick<EncryptedStore, 'tenantOf'>,
): TenantRule {
  // The label takes two digests, and the same credential often comes again.
  let last: { readonly credentials: string | undefined; readonly tenant: Tenant } | undefined;
  const byCredential = ({ headers, target }: GatewayRequest): Tenant => {
    const credentials = joinedCredentials(headers, target);
    if (!last || last.credentials !== credentials)
      last = { credentials, tenant: { label: encryptedStore.tenantOf(credentials), isVerified: true } };
    return last.tenant;
  };
  if (setting === 'credential') return { tenantOf: byCredential, forwarded: allHeaders };
  if (setting === 'local') {
    const local: Tenant = { label: setting, isVerified: true };
    const tenantOf = (request: GatewayRequest) => (isForwarded(request) ? byCredential(request) : local);
    return { tenantOf, forwarded: allHeaders };
  }
  if (typeof setting === 'string') {
    const fixed: Tenant = { label: checkedLabel(setting), isVerified: true };
    return { tenantOf: () => fixed, forwarded: allHeaders };
  }
  if (hasText(setting, 'header')) {
    const name = checkedHeader(setting.header);
    return {
      tenantOf: ({ headers }) => tenantInHeader(headers, name, encryptedStore),
      forwarded: (headers) => headers.filter((header) => header[0] !== name),
    };
  }
  if (hasText(setting, 'claim') && setting.claim !== '') {
    const { claim } = setting;
    const tenantOf = (request: GatewayRequest) =>
      tenantInToken(request, claim, encryptedStore) ?? byCredential(request);
    return { tenantOf, forwarded: allHeaders };
  }
  throw badTenant(setting);
}

/** Returns the tenant whose data the gateway itself shows to a caller, or the reason why it shows none. */
export function viewerOf(tenant: Tenant): { readonly tenant: string } | { readonly problem: string } {
  if (tenant.label === undefined) return tenant;
  if (tenant.isVerified) return { tenant: tenant.label };
  return {
    problem:
      'This gateway reads the tenant from a token that it does not verify, so the token opens no stored data: send the adminToken to /_leporello/*, and a key without that claim to /v1/compress and /v1/retrieve.',
  };
}

/** Returns all headers, when none of them is only for the gateway. */
function allHeaders(headers: HeaderList): HeaderList {
  return headers;
}

/** Headers with which a proxy says that it has forwarded a request. */
const forwardedBy = ['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-host', 'x-real-ip'];

function isForwarded({ headers }: GatewayRequest): boolean {
  return headers.some(([name]) => forwardedBy.includes(name));
}

function tenantInHeader(
  headers: HeaderList,
  name: string,
  encryptedStore: Pick<EncryptedStore, 'tenantOf'>,
): Tenant {
  const values = headers.filter((header) => header[0] === name).map(([, value]) => value.trim());
  const [value = ''] = values;
  if (values.length === 1 && value !== '')
    return { label: encryptedStore.tenantOf(value, 'header'), isVerified: true };
  const sent = values.length > 1 ? `${values.length} headers ${name}` : `no header ${name}`;
  const problem = `The request has ${sent}: the proxy in front of this gateway must set one, to name the tenant, and remove any other.`;
  return { label: undefined, problem };
}

/**
 * Returns the tenant that a claim names; undefined without that claim. Other credentials of the request become part of the tenant's name,
 * because the provider may use one of them.
 */
function tenantInToken(
  { headers, target }: GatewayRequest,
  claim: string,
  encryptedStore: Pick<EncryptedStore, 'tenantOf'>,
): Tenant | undefined {
  const credentials = credentialsOf(headers, target);
  const bearer = credentials.find(({ from }) => from === 'authorization')?.value;
  const claims = bearer === undefined ? undefined : claimsOf(bearer);
  const value = claims?.[claim];
  if ((typeof value !== 'string' && typeof value !== 'number') || value === '') return undefined;
  const others = credentials.map((credential) => credential.value).filter((other) => other !== bearer);
  const issuer = claims?.['iss'];
  const name = JSON.stringify([typeof issuer === 'string' ? issuer : '', value, ...others.toSorted()]);
  return { label: encryptedStore.tenantOf(name, 'claim'), isVerified: false };
}

/** Returns the payload of a JWT; undefined for any other text. */
function claimsOf(token: string): Readonly<Record<string, unknown>> | undefined {
  const [, payload] = /^[\w-]+\.([\w-]+)\.[\w-]*$/.exec(token) ?? [];
  if (payload === undefined) return undefined;
  try {
    const bytes = Uint8Array.from(atob(payload.replaceAll('-', '+').replaceAll('_', '/')), (character) =>
      character.charCodeAt(0),
    );
    const claims: unknown = JSON.parse(new TextDecoder().decode(bytes));
    return typeof claims === 'object' && claims !== null ? (claims as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

function hasText<K extends string>(setting: unknown, key: K): setting is Readonly<Record<K, string>> {
  if (typeof setting !== 'object' || setting === null || Object.keys(setting).length !== 1) return false;
  return typeof (setting as Record<string, unknown>)[key] === 'string';
}

function checkedLabel(label: string): string {
  if (isTenantLabel(label)) return label;
  throw badTenant(label);
}

/** Returns the name in lower case. Throws for headers with credentials, because the gateway would keep them from the provider. */
function checkedHeader(name: string): string {
  const lower = name.toLowerCase();
  const isTaken = [...credentialHeaders, 'cookie', 'host'].includes(lower);
  if (/^[\w!#$%&'*+.^`|~-]{1,100}$/.test(lower) && !isTaken) return lower;
  throw new LeporelloError(
    'bad-config',
    `tenant.header is ${JSON.stringify(name.slice(0, 80))}: it must be the name of a header that the proxy in front sets, such as x-tenant, and not of one that contains a credential.`,
  );
}

function badTenant(setting: unknown): LeporelloError {
  const shown = (JSON.stringify(setting) ?? 'undefined').slice(0, 80);
  return new LeporelloError(
    'bad-config',
    `tenant is ${shown}: it must be local, credential, a label of 1 to 64 characters of a-z, 0-9 and -, {"header": NAME} or {"claim": NAME}.`,
  );
}

/** Returns the session that a client names in its headers. It only groups receipts. */
export function sessionOf(headers: HeaderList): string | undefined {
  for (const name of [
    'x-leporello-session',
    'x-claude-code-session-id',
    'x-session-affinity',
    'session-id',
    'session_id',
  ]) {
    const value = headerOf(headers, name);
    if (value !== undefined) return value;
  }
  return undefined;
}

/** A credential. `from` is the header that contains it, or `?key` for the query. */
type Credential = { readonly from: string; readonly value: string };

/** Headers that contain a credential, for all clients and hosts. Not cookies: load balancers set new ones all the time. */
const credentialHeaders: readonly string[] = ['authorization', 'x-api-key', 'api-key', 'x-goog-api-key'];

/** Returns the credentials of a request in order, without the word `Bearer`. */
export function credentialsOf(headers: HeaderList, target: string): readonly Credential[] {
  const inHeaders = headers
    .filter(([name]) => credentialHeaders.includes(name))
    .map(([from, value]) => ({
      from,
      value: from === 'authorization' ? value.replace(/^bearer\s+/i, '') : value,
    }));
  const query = queryOf(target);
  const inQuery = query === '' ? null : new URLSearchParams(query).get('key');
  return inQuery === null ? inHeaders : [...inHeaders, { from: '?key', value: inQuery }];
}

/**
 * Returns all credentials as one text, or undefined if there are none. A single key gives the same text in every header; several are joined,
 * so that users who share one key stay separate.
 */
export function joinedCredentials(headers: HeaderList, target: string): string | undefined {
  const all = new Set(credentialsOf(headers, target).map(({ value }) => value));
  return all.size === 0 ? undefined : [...all].toSorted().join('\n');
}

/** True when one of the credentials is the token, also as the password of basic authentication, which browsers ask for. */
export function hasCredential({ headers, target }: GatewayRequest, token: string): boolean {
  const values = credentialsOf(headers, target).map(({ value }) => value);
  const passwords = basicPairs(headers).map((pair) => pair.slice(pair.indexOf(':') + 1));
  return [...values, ...passwords].some((value) => sameText(value, token));
}

/** Returns the user names with passwords of basic authentication. */
function basicPairs(headers: HeaderList): readonly string[] {
  return headers.flatMap(([, value]) => {
    const [, encoded] = /^basic\s+([\w+/=-]+)\s*$/i.exec(value) ?? [];
    return encoded === undefined ? [] : [decodeBase64(encoded)];
  });
}

/** True when the headers or the target of a request contain the token anywhere, also as a password of basic authentication. */
export function carriesToken({ headers, target }: GatewayRequest, token: string): boolean {
  const texts = [
    ...headers.map(([, value]) => value),
    ...basicPairs(headers),
    target,
    percentDecoded(target),
  ];
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

// The owner of a credential: the provider that gave it out, as far as that can be recognized.

/** Key formats by issuer. The first match counts. */
const keyShapes: readonly { readonly shape: RegExp; readonly owner: string }[] = [
  { shape: /^sk-ant-/, owner: 'Anthropic' },
  { shape: /^sk-or-/, owner: 'OpenRouter' },
  { shape: /^sk-/, owner: 'OpenAI' },
  { shape: /^(?:ya29\.|AIza|AQ\.)/, owner: 'Google' },
  { shape: /^(?:AWS4-HMAC-|ABSK|bedrock-api-key-)/, owner: 'Amazon' },
  { shape: /^gsk_/, owner: 'Groq' },
  { shape: /^xai-/, owner: 'xAI' },
  { shape: /^hf_/, owner: 'Hugging Face' },
  { shape: /^(?:gh[opsu]_|github_pat_)/, owner: 'GitHub' },
  { shape: /^pplx-/, owner: 'Perplexity' },
  { shape: /^nvapi-/, owner: 'NVIDIA' },
];

/** Hosts that accept only keys of their owner. Any other host may accept any key. */
const hosts: readonly { readonly host: RegExp; readonly owner: string }[] = [
  { host: /(?:^|\.)api\.openai\.com$/, owner: 'OpenAI' },
  { host: /(?:^|\.)anthropic\.com$/, owner: 'Anthropic' },
  { host: /(?:^|\.)googleapis\.com$/, owner: 'Google' },
];

/** Returns the issuer of a key; undefined when its format is not known. */
export function ownerOf(key: string): string | undefined {
  return keyShapes.find(({ shape }) => shape.test(key))?.owner;
}

/** Returns a credential that another issuer than the host of the URL gave out, as far as that can be recognized. */
export function strayCredential(
  credentials: readonly Credential[],
  url: string,
): { readonly from: string; readonly owner: string } | undefined {
  const name = hostOf(url);
  const host = hosts.find((known) => known.host.test(name))?.owner;
  if (host === undefined) return undefined;
  return credentials
    .map(({ from, value }) => ({ from, owner: ownerOfHeader[from] ?? ownerOf(value) ?? host }))
    .find(({ owner }) => owner !== host);
}

/** Headers that only one provider uses for its key. */
const ownerOfHeader: Readonly<Record<string, string>> = { 'x-goog-api-key': 'Google', 'api-key': 'Azure' };

const hostNames = openFixed<string, string>('host names');

/** Returns the host of a configured URL, without the port. */
export function hostOf(url: string): string {
  const known = hostNames.get(url);
  if (known !== undefined) return known;
  const host = URL.canParse(url) ? new URL(url).hostname : url;
  hostNames.set(url, host);
  return host;
}
