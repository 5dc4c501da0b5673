/** Whose data a request is. */
import type { Vault } from '../memory/vault.ts';
import type { GatewayRequest } from './http.ts';
import { credentialOf } from './credentials.ts';

/** The label of the request's credential; the fixed one where the gateway serves one person, whose tokens change. */
export function tenantOf(
  { vault, tenant }: { readonly vault: Pick<Vault, 'tenantOf'>; readonly tenant: string | undefined },
  { headers, target }: GatewayRequest,
): string {
  return tenant ?? vault.tenantOf(credentialOf(headers, target));
}
