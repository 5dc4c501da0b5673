/** One line of log for each request, when its response begins: what was asked, what became of it, how long it took to get there. */
import { headerOf } from '../../gateway/http/headers.ts';
import type { GatewayRequest, GatewayResponse, Handler } from '../../gateway/http/http.ts';
import { isOwnPath } from '../../gateway/routing/routes.ts';
import type { Log } from './log.ts';

/** The handler with a log around it. Paths go in without their query, which can hold keys. */
export function withRequestLog(handler: Handler, log: Log): Handler {
  return async function logged(request) {
    const started = performance.now();
    const response = await handler(request);
    const ms = Math.round(performance.now() - started);
    // A turn later: the response goes out before it is told of.
    setImmediate(() => tell(log, request, response, ms));
    return response;
  };
}

function tell(log: Log, request: GatewayRequest, response: GatewayResponse, ms: number): void {
  const path = request.target.split('?')[0] ?? '/';
  const fields = {
    method: request.method,
    path,
    status: response.status,
    ...foldFields(response),
    ms,
  };
  if (response.status >= 500) log.warn(fields, 'request');
  // Health checks and the like come every few seconds and say nothing.
  else if (isOwnPath(path)) log.debug(fields, 'request');
  else log.info(fields, 'request');
}

function foldFields({ headers }: GatewayResponse): Readonly<Record<string, unknown>> {
  const outcome = headerOf(headers, 'x-leporello-outcome');
  if (outcome === undefined) return {};
  const tokens = (name: string): number | undefined => {
    const count = headerOf(headers, name);
    return count === undefined ? undefined : Number(count);
  };
  return {
    outcome,
    tokensBefore: tokens('x-leporello-tokens-before'),
    tokensAfter: tokens('x-leporello-tokens-after'),
    receipt: headerOf(headers, 'x-leporello-receipt'),
  };
}
