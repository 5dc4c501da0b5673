/**
 * Keeps web pages away from a gateway on the loopback. A page can make a browser send requests to 127.0.0.1, and, by a name of its own
 * that resolves there (DNS rebinding), even read the answers. Programs send no Origin, and address the host they mean.
 */
import { headerOf } from './http/headers.ts';
import type { GatewayRequest, GatewayResponse, HeaderList } from './http/http.ts';
import { jsonResponse } from './http/json-response.ts';

/** The refusal of a request that was addressed to a foreign name or sent by a foreign page; undefined when it may pass. */
export function refuseForeign(
  { headers }: GatewayRequest,
  allowedHosts: readonly string[] | undefined,
): GatewayResponse | undefined {
  if (allowedHosts === undefined) return undefined;
  const host = hostName(headerOf(headers, 'host') ?? '');
  if (!allowedHosts.includes(host)) {
    return refusal(
      421,
      `This gateway does not answer for the host ${JSON.stringify(host.slice(0, 100))}. Add it to allowedHosts if it should.`,
    );
  }
  const origin = headerOf(headers, 'origin');
  // Desktop programs have schemes of their own; the web's are http, https and, for what hides it, null.
  const isForeign =
    origin === 'null' ||
    (/^https?:/.test(origin ?? '') && !allowedHosts.includes(hostName(origin!.replace(/^https?:\/\//, ''))));
  return isForeign || isLoadedByPage(headers)
    ? refusal(403, 'This gateway does not answer web pages of other hosts.')
    : undefined;
}

/**
 * True when a page of another site loads this as an image, a script or a frame, for which browsers send no Origin. A link that a person
 * follows is no such thing.
 */
function isLoadedByPage(headers: HeaderList): boolean {
  if (headerOf(headers, 'origin') !== undefined) return false;
  return (
    headerOf(headers, 'sec-fetch-site') === 'cross-site' && headerOf(headers, 'sec-fetch-dest') !== 'document'
  );
}

function hostName(authority: string): string {
  return authority.replace(/:\d+$/, '').toLowerCase();
}

function refusal(status: number, message: string): GatewayResponse {
  return jsonResponse(status, { error: { type: 'permission_error', message } });
}
