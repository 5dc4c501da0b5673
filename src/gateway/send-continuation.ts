/**
 * Sends the request that goes on from a recall. A provider that cannot take it just now is asked again, a few times and soon: without the
 * recall there would have been no second request, so its client must not see it fail for what passes in a moment.
 */
import { LeporelloError } from '../errors.ts';
import { headerOf } from './http/headers.ts';
import type { UpstreamResponse } from './http/http.ts';

export type Continuing = {
  /** Rejects like an upstream. */
  readonly send: (body: Uint8Array) => Promise<UpstreamResponse>;
  /** Resolves after so many milliseconds, or as soon as the client has gone. */
  readonly pause: (ms: number) => Promise<void>;
  /** Whether the client has gone. */
  readonly hasLeft: () => boolean;
  readonly note: { upstreamStatus(status: number): void };
};

/** As many as the official SDKs of the providers make by default. */
const mostRetries = 2;
/** The first wait where the provider names none, in milliseconds; the next is twice as long. */
const firstPauseMs = 500;
/** A provider that asks for a longer wait is not asked again: the client hears so at once. Milliseconds. */
const longestPauseMs = 8_000;

/** Statuses of what may pass by itself. */
const passing: ReadonlySet<number> = new Set([408, 429, 500, 502, 503, 504, 529]);

/** The last answer, whatever it is. Rejects like an upstream. */
export async function sendContinuation(exchange: Continuing, body: Uint8Array): Promise<UpstreamResponse> {
  for (let retries = 0; ; retries++) {
    const answer = await attempt(exchange, body);
    const pauseMs = retries < mostRetries && !exchange.hasLeft() ? pauseAfter(answer, retries) : undefined;
    if (pauseMs === undefined) {
      if (answer instanceof LeporelloError) throw answer;
      return answer;
    }
    if (!(answer instanceof LeporelloError)) await answer.body[Symbol.asyncIterator]().return?.();
    await exchange.pause(pauseMs);
    if (exchange.hasLeft()) throw new LeporelloError('upstream-failed', 'The client has gone.');
  }
}

/** The response, or why there is none. Rejects for what is no fault of the upstream. */
async function attempt(
  { send, note }: Continuing,
  body: Uint8Array,
): Promise<UpstreamResponse | LeporelloError> {
  try {
    const response = await send(body);
    note.upstreamStatus(response.status);
    return response;
  } catch (error) {
    if (error instanceof LeporelloError && error.code === 'upstream-failed') return error;
    throw error;
  }
}

/** How long to wait before the next attempt, in milliseconds; undefined where there is to be none. */
function pauseAfter(answer: UpstreamResponse | LeporelloError, retries: number): number | undefined {
  const backOff = firstPauseMs * 2 ** retries;
  // The connection broke: one that was kept open may have been closed as the request was sent.
  if (answer instanceof LeporelloError) return backOff;
  const { status, headers } = answer;
  if (!passing.has(status) || headerOf(headers, 'x-should-retry') === 'false') return undefined;
  const inMs = headerOf(headers, 'retry-after-ms');
  const inSeconds = headerOf(headers, 'retry-after');
  if (inMs === undefined && inSeconds === undefined) return backOff;
  const pauseMs = inMs === undefined ? Number(inSeconds) * 1_000 : Number(inMs);
  // A date is not a number, and is not waited for.
  return pauseMs >= 0 && pauseMs <= longestPauseMs ? pauseMs : undefined;
}

/** Resolves after so many milliseconds, or as soon as the signal aborts. */
export async function pauseUnless(signal: AbortSignal, ms: number): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', done);
  });
}
