/** Writes the log of the gateway on standard error: JSON lines, or short lines for a terminal. It never contains content or keys. */
import { pino } from 'pino';
import {
  type GatewayRequest,
  type GatewayResponse,
  type Handler,
  headerOf,
} from '../../gateway/http/http.ts';
import type { GatewayLog } from '../../gateway/receipts/metrics.ts';
import { isOwnPath } from '../../gateway/routing/routes.ts';
import type { Terminal } from '../terminal.ts';

/** The log with all levels. */
export type Log = GatewayLog & {
  debug(fields: Readonly<Record<string, unknown>>, message: string): void;
  error(fields: Readonly<Record<string, unknown>>, message: string): void;
};

/** Creates the log. `level` is the lowest level that is written. */
export function createLog(terminal: Pick<Terminal, 'err' | 'isTty'>, level: string): Log {
  const write = terminal.isTty.err
    ? (line: string) => terminal.err(readable(line))
    : (line: string) => terminal.err(line);
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    { write },
  );
}

type LogFields = Readonly<Record<string, string | number | undefined>>;

/** Formats a line for a terminal: `14:03:11  warn  message  key=value`, or a request in its own format. */
function readable(line: string): string {
  const { level, time, msg, ...fields } = JSON.parse(line) as LogFields;
  const clock = String(time).slice(11, 19);
  const mark = level === 'info' ? '' : `${level}  `;
  const said =
    msg === 'request' ? requestLine(fields) : [msg, ...Object.entries(fields).map(pair)].join('  ');
  return `${clock}  ${mark}${said}\n`;
}

/** Formats a request: `POST /v1/messages  200  compacted 12301 > 6002 tokens  8 ms`. */
function requestLine({ method, path, status, outcome, tokensBefore, tokensAfter, ms }: LogFields): string {
  const hasTwoCounts = outcome === 'compacted' || outcome === 'observed';
  const counted = hasTwoCounts ? `${tokensBefore} > ${tokensAfter}` : tokensBefore;
  const tokens = counted === undefined ? '' : ` ${counted} tokens`;
  return [`${method} ${path}`, status, outcome === undefined ? '' : `${outcome}${tokens}`, `${ms} ms`]
    .filter((piece) => piece !== '')
    .join('  ');
}

function pair([key, value]: readonly [string, unknown]): string {
  return `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`;
}

/** Wraps a handler so that each request is logged when its response begins. Paths are logged without their query, which can contain keys. */
export function withRequestLog(handler: Handler, log: Log): Handler {
  return async function logged(request) {
    const started = performance.now();
    const response = await handler(request);
    const ms = Math.round(performance.now() - started);
    // One turn later, so that the response is sent first.
    setImmediate(() => logRequest(log, request, response, ms));
    return response;
  };
}

export function pathOf({ target }: GatewayRequest): string {
  return target.split('?')[0] ?? '/';
}

function logRequest(log: Log, request: GatewayRequest, response: GatewayResponse, ms: number): void {
  const path = pathOf(request);
  const fields = {
    method: request.method,
    path,
    status: response.status,
    ...foldFields(response),
    ms,
  };
  if (response.status >= 500) log.warn(fields, 'request');
  // Health checks come every few seconds and are not interesting.
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
