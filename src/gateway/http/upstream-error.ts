/** What went wrong on the way to a provider, as one of our errors. Names the origin alone: paths and queries can hold secrets. */
import { LeporelloError } from '../../errors.ts';

const deadlines: ReadonlySet<unknown> = new Set([
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
]);

/** `deadline` or `upstream-failed`; an error of ours that the signal was aborted with comes back itself. */
export function upstreamError(error: unknown, origin: string, signal: AbortSignal): LeporelloError {
  if (signal.aborted) {
    const { reason } = signal as { reason: unknown };
    if (LeporelloError.isInstance(reason)) return reason;
    return new LeporelloError('upstream-failed', `The request to ${origin} was cancelled.`, { cause: error });
  }
  const code = codeOf(error);
  if (deadlines.has(code)) {
    return new LeporelloError('deadline', `${origin} took too long to answer (${code}).`, { cause: error });
  }
  return new LeporelloError(
    'upstream-failed',
    `${origin} could not be reached or broke off (${code}). Check that it is up and its URL is right.`,
    { cause: error },
  );
}

/** fetch hides the reason in `cause`. */
function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown error';
  const found = [error, error.cause].find((one) => one instanceof Error && 'code' in one);
  return found instanceof Error && 'code' in found ? String(found.code) : error.name;
}
