/**
 * Refuses requests that web pages of other hosts make a browser send: to 127.0.0.1, or through a name of their own that resolves there (DNS
 * rebinding), with which they could even read the answers. Programs send no Origin, and address the host they mean.
 */
import {
  type GatewayRequest,
  type GatewayResponse,
  type HeaderList,
  headerOf,
  jsonResponse,
} from '../http/http.ts';

/**
 * Returns a refusal for a request that is addressed to an unknown host name or sent by a web page of another host; undefined when the
 * request may pass.
 */
export function refuseForeign(
  { headers }: GatewayRequest,
  allowedHosts: readonly string[],
): GatewayResponse | undefined {
  const host = hostName(headerOf(headers, 'host') ?? '');
  if (!allowedHosts.includes(host)) {
    return refusal(
      421,
      `This gateway does not serve the host ${JSON.stringify(host.slice(0, 100))}. Add it to allowedHosts if it should.`,
    );
  }
  const origin = headerOf(headers, 'origin');
  // Desktop programs use schemes of their own. Web pages send http, https or, where the browser hides the origin, null.
  const isForeign =
    origin === 'null' ||
    (/^https?:/.test(origin ?? '') && !allowedHosts.includes(hostName(origin!.replace(/^https?:\/\//, ''))));
  return isForeign || isLoadedByPage(headers)
    ? refusal(403, 'This gateway does not answer web pages of other hosts.')
    : undefined;
}

/**
 * True when a page of another site loads this URL as an image, a script or a frame: browsers send no Origin for these. False when a person
 * follows a link.
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
