/**
 * Converts failures on the way to a provider to errors of this project, and writes errors for the client and the log. They reveal no path, query
 * or content.
 */
import type { Codec, GatewayProblem } from '../../codecs/codec.ts';
import { LeporelloError, reasonOf } from '../../errors.ts';
import type { GatewayLog } from '../receipts/metrics.ts';
import type { UpstreamUrls } from '../routing/routes.ts';
import { type GatewayResponse, type HeaderList, splitUrl } from './http.ts';

/**
 * Converts a failure on the way to a provider to `deadline` or `upstream-failed`. A LeporelloError with which the signal was aborted is
 * returned itself. Messages name only the origin, because paths and queries can contain secrets.
 */
export function upstreamError(error: unknown, origin: string, signal: AbortSignal): LeporelloError {
  if (signal.aborted) {
    const { reason } = signal as { reason: unknown };
    if (LeporelloError.isInstance(reason)) return reason;
    return new LeporelloError('upstream-failed', `The request to ${origin} was canceled.`, { cause: error });
  }
  const code = codeOf(error);
  if (deadlines.has(code)) {
    return new LeporelloError('deadline', `${origin} took too long to answer (${code}).`, { cause: error });
  }
  return new LeporelloError(
    'upstream-failed',
    `${origin} could not be reached, or the connection broke (${code}). Check that it is up and its URL is right.`,
    { cause: error },
  );
}

const deadlines: ReadonlySet<unknown> = new Set([
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
]);

/** Returns the system's error code. fetch hides it in `cause`. */
function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown error';
  const found = [error, error.cause].find((one) => one instanceof Error && 'code' in one);
  return found instanceof Error && 'code' in found ? String(found.code) : error.name;
}

/**
 * Returns the client's error for a failed request to `url`: 504 when the upstream took too long, 500 for an error of our own code, otherwise 502. It
 * names the option of the URL.
 */
export function upstreamProblem(
  error: unknown,
  url: string,
  { urls, log }: { readonly urls: UpstreamUrls; readonly log: GatewayLog },
  receipt?: string,
): GatewayProblem {
  logOwnError(log, receipt, error);
  if (!LeporelloError.isInstance(error))
    return { status: 500, message: 'Leporello itself failed on this request. Its log says where.' };
  const { origin } = splitUrl(url);
  const options = Object.entries(urls)
    .filter(([, one]) => splitUrl(one).origin === origin)
    .map(([provider]) => `${provider}Url (LEPORELLO_${provider.toUpperCase()}_URL)`);
  const hint = `The option ${options.join(' or ')} sets this URL; leporello doctor checks it.`;
  // A request that was canceled is not the upstream's fault. Then the message does not begin with it.
  const isNamed =
    error.code === 'upstream-failed' && options.length > 0 && error.message.startsWith(`${origin} `);
  return {
    status: error.code === 'deadline' ? 504 : 502,
    message: isNamed ? `${error.message} ${hint}` : error.message,
  };
}

/** Logs an error of our own code by its kind and its place. Its message may quote content. Other errors are reported elsewhere. */
export function logOwnError(log: GatewayLog, receipt: string | undefined, error: unknown): void {
  if (LeporelloError.isInstance(error)) return;
  const frames = error instanceof Error ? (error.stack?.match(/^ +at .*:\d+:\d+\)?$/gm) ?? []) : [];
  const at = frames.slice(0, 5).map((frame) => frame.trim());
  log.warn({ receipt, error: reasonOf(error), at }, 'an error of Leporello itself: please report it');
}

/** Returns an error of the gateway in the wire format of the client. */
export function problemResponse(codec: Codec, problem: GatewayProblem, headers: HeaderList): GatewayResponse {
  return {
    status: problem.status,
    headers: [['content-type', 'application/json'], ...headers],
    body: codec.errorBody(problem),
  };
}

/** Returns the response of a server whose handler failed. It reveals nothing of the request or the error. */
export function internalError(): GatewayResponse {
  const error = { type: 'internal_error', message: 'The gateway failed on this request. Its log says why.' };
  return {
    status: 500,
    headers: [['content-type', 'application/json']],
    body: new TextEncoder().encode(JSON.stringify({ error })),
  };
}
