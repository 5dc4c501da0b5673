/** A JSON answer of the gateway's own. */
import type { GatewayResponse } from './http.ts';

export function jsonResponse(status: number, value: unknown): GatewayResponse {
  return {
    status,
    headers: [['content-type', 'application/json']],
    body: new TextEncoder().encode(`${JSON.stringify(value)}\n`),
  };
}
