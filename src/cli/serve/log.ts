/** The gateway's log on standard error: JSON lines for machines, short lines for a person at a terminal. Never content, never keys. */
import { pino } from 'pino';
import type { GatewayLog } from '../../gateway/receipts/reporting.ts';
import type { Terminal } from '../terminal.ts';
import { headerOf } from '../../gateway/http/headers.ts';
import type { GatewayRequest, GatewayResponse, Handler } from '../../gateway/http/http.ts';
import { isOwnPath } from '../../gateway/routing/routes.ts';

export type Log = GatewayLog & {
  debug(fields: Readonly<Record<string, unknown>>, message: string): void;
  error(fields: Readonly<Record<string, unknown>>, message: string): void;
};

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

type Fields = Readonly<Record<string, string | number | undefined>>;

/** `14:03:11  warn  message  key=value`, and a request as a sentence of its own. */
function readable(line: string): string {
  const { level, time, msg, ...fields } = JSON.parse(line) as Fields;
  const clock = String(time).slice(11, 19);
  const mark = level === 'info' ? '' : `${level}  `;
  const said =
    msg === 'request' ? requestLine(fields) : [msg, ...Object.entries(fields).map(pair)].join('  ');
  return `${clock}  ${mark}${said}\n`;
}

/** `POST /v1/messages  200  compacted 12301 > 6002 tokens  8 ms` */
function requestLine({ method, path, status, outcome, tokensBefore, tokensAfter, ms }: Fields): string {
  const isReckoned = outcome === 'compacted' || outcome === 'observed';
  const counted = isReckoned ? `${tokensBefore} > ${tokensAfter}` : tokensBefore;
  const tokens = counted === undefined ? '' : ` ${counted} tokens`;
  return [`${method} ${path}`, status, outcome === undefined ? '' : `${outcome}${tokens}`, `${ms} ms`]
    .filter((piece) => piece !== '')
    .join('  ');
}

function pair([key, value]: readonly [string, unknown]): string {
  return `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`;
}

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
