/** Decides whose data a request is, by the setting `tenant`. */
import { LeporelloError } from '../../errors.ts';
import { isTenantLabel, type EncryptedStore } from '../../store/encrypted-store.ts';
import { credentialHeaders, credentialOf, credentialsOf } from './credentials.ts';
import type { GatewayRequest, HeaderList } from '../http/http.ts';

/**
 * - `'local'`: one tenant for all requests that come straight from this machine. One that a proxy has forwarded counts by its credential.
 * - `'credential'`: each credential is a tenant of its own.
 * - another label (1 to 64 of a-z, 0-9 and -): one tenant for all requests.
 * - `{ header }`: what a proxy in front says in this header. The proxy must take the client's own header of that name out.
 * - `{ claim }`: what the JWT in `authorization` says under this name. Its signature is for the provider to check, so this tenant sees
 *   nothing under `/_leporello/`. A request without that claim counts by its credential.
 */
export type TenantSetting = string | { readonly header: string } | { readonly claim: string };

/** `isVerified` is false where anybody could have written the name of the tenant. */
export type Tenant =
  | { readonly label: string; readonly isVerified: boolean }
  | { readonly label: undefined; readonly problem: string };

export type TenantRule = {
  tenantOf(request: GatewayRequest): Tenant;
  /** The headers that go on to the provider: without the one that names the tenant. */
  forwarded(headers: HeaderList): HeaderList;
};

/** Throws `bad-config` for a setting that is none of those above. */
export function createTenantRule(
  setting: TenantSetting,
  encryptedStore: Pick<EncryptedStore, 'tenantOf'>,
): TenantRule {
  const byCredential = ({ headers, target }: GatewayRequest): Tenant => ({
    label: encryptedStore.tenantOf(credentialOf(headers, target)),
    isVerified: true,
  });
  if (setting === 'credential') return { tenantOf: byCredential, forwarded: asTheyCame };
  if (setting === 'local') {
    const local: Tenant = { label: setting, isVerified: true };
    const tenantOf = (request: GatewayRequest) => (isForwarded(request) ? byCredential(request) : local);
    return { tenantOf, forwarded: asTheyCame };
  }
  if (typeof setting === 'string') {
    const fixed: Tenant = { label: checkedLabel(setting), isVerified: true };
    return { tenantOf: () => fixed, forwarded: asTheyCame };
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
    return { tenantOf, forwarded: asTheyCame };
  }
  throw badTenant(setting);
}

/** No header is for the gateway alone. */
function asTheyCame(headers: HeaderList): HeaderList {
  return headers;
}

/** Headers by which a proxy says that it has forwarded a request. */
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
  const came = values.length > 1 ? `${values.length} headers ${name}` : `no header ${name}`;
  const problem = `The request has ${came}: the proxy in front of this gateway must set one, to name the tenant, and remove any other.`;
  return { label: undefined, problem };
}

/** Undefined without that claim. Any other credential of the request counts, too: it may be the one that the provider looks at. */
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

/** The payload of a JWT; undefined for any other text. */
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

/** In lower case. A credential would be kept from the provider. */
function checkedHeader(name: string): string {
  const lower = name.toLowerCase();
  const isTaken = [...credentialHeaders, 'cookie', 'host'].includes(lower);
  if (/^[\w!#$%&'*+.^`|~-]{1,100}$/.test(lower) && !isTaken) return lower;
  throw new LeporelloError(
    'bad-config',
    `tenant.header is ${JSON.stringify(name.slice(0, 80))}: it must be the name of a header that the proxy in front sets, such as x-tenant, and none that holds a credential.`,
  );
}

function badTenant(setting: unknown): LeporelloError {
  const shown = (JSON.stringify(setting) ?? 'undefined').slice(0, 80);
  return new LeporelloError(
    'bad-config',
    `tenant is ${shown}: it must be local, credential, a label of 1 to 64 of a-z, 0-9 and -, {"header": NAME} or {"claim": NAME}.`,
  );
}
