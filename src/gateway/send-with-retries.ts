/**
 * Sends a prepared request, and sends it again when the provider refuses it for a reason that the gateway may have caused: folded further
 * when it is too long, without reasoning when the reasoning is refused, with the client's own bytes when the folded ones are rejected.
 * The number of attempts is bounded. Every other answer is final. Continuations after a recall are retried when a failure may be temporary.
 */
import type { Codec, Overflow } from '../codecs/codec.ts';
import { refusalStatuses } from '../codecs/provider-errors.ts';
import { type PreparedRequest, type Refusal, passThrough } from '../engine/types.ts';
import {
  type GatewayRequest,
  type HeaderList,
  headerOf,
  headersToUpstream,
  splitUrl,
  type Upstream,
  type UpstreamResponse,
  withHeaders,
} from './http/http.ts';
import { upstreamError } from './http/problems.ts';
import { discardBody, maxErrorBytes, peekBody, type ReceivedBody } from './http/body.ts';
import { LeporelloError } from '../errors.ts';
import { withResolvers } from '../es2024.ts';
import { startSlicedTimer, type StartTimer } from '../store/wrapped-store.ts';

/** A client's request with the ways to send it. */
export type PendingRequest = {
  readonly codec: Codec;
  /** The body as the client sent it. */
  readonly body: Uint8Array;
  readonly prepared: PreparedRequest;
  readonly send: (body: Uint8Array) => Promise<UpstreamResponse>;
  /** Prepares the same request again, with the reason for which the provider refused it. */
  readonly prepareAgain: (refusal: Refusal) => Promise<PreparedRequest>;
  /** Disables folding for this conversation from now on. */
  readonly disableFolding: () => Promise<void>;
};

/** The request that was finally sent, and the answer to it. */
export type AnsweredRequest = { readonly prepared: PreparedRequest; readonly response: UpstreamResponse };

/**
 * Sends bodies upstream. An unchanged body is sent as the client sent it, compressed or not; a changed body is sent uncompressed. The
 * response is requested uncompressed, because it is read; some upstreams compress it anyway, and then it is decompressed. Only the first
 * body gets the client's idempotency key: with it, an upstream might answer another body with the first reply.
 */
export function sender(
  { upstream }: { readonly upstream: Upstream },
  request: GatewayRequest,
  url: string,
  received: ReceivedBody,
): PendingRequest['send'] {
  const { method, signal } = request;
  let all = upstreamHeaders(request);
  return (body) => {
    const sent =
      body === received.body ? { headers: all, body: received.wire } : { headers: unpacked(all), body };
    all = withoutKey(all);
    return upstream.send({ method, url, ...sent, signal, decode: true });
  };
}

/** Returns the client's headers for a request that the gateway makes beside the client's own. */
export function withoutKey(headers: HeaderList): HeaderList {
  return headers.filter(([name]) => name !== 'idempotency-key');
}

/** Returns the headers for a body that the gateway wrote, which is not compressed. */
export function unpacked(headers: HeaderList): HeaderList {
  return headers.filter(([name]) => name !== 'content-encoding');
}

/** Returns the client's headers for a request whose response is read. */
export function upstreamHeaders(request: GatewayRequest): HeaderList {
  return withHeaders(headersToUpstream(request.headers, 'changed'), [['accept-encoding', 'identity']]);
}

/** Maximum number of further folds of one request that the provider finds too long. Each must be smaller than the one before. */
const maxRefolds = 10;

/** Sends the request, again if necessary. Rejects with the errors of `Upstream.send`. */
export async function sendPrepared(sending: PendingRequest): Promise<AnsweredRequest> {
  const sent = await sendUntilFinal(sending);
  // A client may continue a reply only after all instances know the request it answered. Already true by now, unless the store hangs.
  await waitAtMost(sent.prepared.known);
  return sent;
}

async function sendUntilFinal(sending: PendingRequest): Promise<AnsweredRequest> {
  let { prepared } = sending;
  let refusal = await refusalOf(await sending.send(prepared.body));
  for (let refold = 0; refold < maxRefolds; refold++) {
    const overflow = overflowIn(sending, refusal);
    if (!overflow) break;
    const smaller = await sending.prepareAgain({ reason: 'too long', overflow });
    if (smaller.body.length >= prepared.body.length) break;
    prepared = smaller;
    refusal = await refusalOf(await sending.send(prepared.body));
  }
  if (sending.codec.refusesReasoning(refusal.response.status, refusal.text ?? '')) {
    const without = await sending.prepareAgain({ reason: 'reasoning' });
    if (without.body.length < prepared.body.length) {
      prepared = without;
      refusal = await refusalOf(await sending.send(prepared.body));
    }
  }
  // Adding the recall tool is an edit too: it can exceed the provider's maximum number of tools.
  const wasEdited = prepared.maySendClientBody && prepared.body !== sending.body;
  if (refusal.text === undefined || !wasEdited || overflowIn(sending, refusal) || !originalMayFit(prepared)) {
    return { prepared, response: refusal.response };
  }
  return sendOriginal(sending, prepared, refusal.response.status);
}

/** A response, with its text when the status says that the request was refused. */
type CheckedResponse = { readonly response: UpstreamResponse; readonly text: string | undefined };

async function refusalOf(response: UpstreamResponse): Promise<CheckedResponse> {
  if (!refusalStatuses.has(response.status)) return { response, text: undefined };
  const { text, body } = await peekBody(response.body, maxErrorBytes);
  return { response: { ...response, body }, text };
}

function overflowIn({ codec }: PendingRequest, { response, text }: CheckedResponse): Overflow | undefined {
  return text === undefined ? undefined : codec.overflowIn(response.status, text);
}

function originalMayFit({ report }: PreparedRequest): boolean {
  return (
    report.window === undefined || report.tokensBefore === undefined || report.tokensBefore <= report.window
  );
}

async function sendOriginal(
  sending: PendingRequest,
  refused: PreparedRequest,
  refusedWith: number,
): Promise<AnsweredRequest> {
  const response = await sending.send(sending.body);
  if (response.status < 400) await waitAtMost(sending.disableFolding());
  const reason = `the provider answered ${refusedWith} to the folded request`;
  const { identity, report } = refused;
  const original = passThrough(sending.body, { status: 'failed', reason }, { model: report.model });
  return { prepared: { ...original, identity, trial: refused.trial }, response };
}

export type ContinuationDeps = {
  /** Rejects with the errors of `Upstream.send`. */
  readonly send: (body: Uint8Array) => Promise<UpstreamResponse>;
  /** Resolves after `ms` milliseconds, or as soon as the client disconnects. */
  readonly pause: (ms: number) => Promise<void>;
  /** True when the client has disconnected. */
  readonly hasLeft: () => boolean;
  readonly note: { upstreamStatus(status: number): void };
};

/** Retries of a continuation, as many as the official SDKs of the providers make by default. */
const maxRetries = 2;
/** Milliseconds of the first wait when the provider names none; each further wait is twice as long. */
const firstPauseMs = 500;
/** Milliseconds of the longest wait. When the provider asks for more, the client gets its error at once. */
const maxPauseMs = 8_000;

/** Statuses of problems that may be temporary. */
const retryableStatuses: ReadonlySet<number> = new Set([408, 429, 500, 502, 503, 504, 529]);

/**
 * Sends the request that continues after a recall, and returns the last answer. A temporary failure is retried: without the recall there
 * would have been no second request, so the client should not see it fail. Rejects with the errors of `Upstream.send`.
 */
export async function sendContinuation(
  exchange: ContinuationDeps,
  body: Uint8Array,
): Promise<UpstreamResponse> {
  for (let retries = 0; ; retries++) {
    const answer = await attempt(exchange, body);
    const pauseMs = retries < maxRetries && !exchange.hasLeft() ? pauseAfter(answer, retries) : undefined;
    if (pauseMs === undefined) {
      if (answer instanceof LeporelloError) throw answer;
      return answer;
    }
    if (!(answer instanceof LeporelloError)) await discardBody(answer.body);
    await exchange.pause(pauseMs);
    if (exchange.hasLeft()) throw new LeporelloError('upstream-failed', 'The client disconnected.');
  }
}

/** Returns the response, or the upstream's failure as a value. Throws any other error. */
async function attempt(
  { send, note }: ContinuationDeps,
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

/** Returns the milliseconds to wait before the next attempt; undefined when there is no next attempt. */
function pauseAfter(answer: UpstreamResponse | LeporelloError, retries: number): number | undefined {
  const backOff = firstPauseMs * 2 ** retries;
  // A kept-alive connection may have been closed just as the request was sent.
  if (answer instanceof LeporelloError) return backOff;
  const { status, headers } = answer;
  if (!retryableStatuses.has(status) || headerOf(headers, 'x-should-retry') === 'false') return undefined;
  const inMs = headerOf(headers, 'retry-after-ms');
  const inSeconds = headerOf(headers, 'retry-after');
  if (inMs === undefined && inSeconds === undefined) return backOff;
  // `retry-after` may also be a date.
  const seconds = Number(inSeconds);
  const afterMs = Number.isNaN(seconds)
    ? Math.max(0, Date.parse(inSeconds ?? '') - Date.now())
    : seconds * 1_000;
  const pauseMs = inMs === undefined ? afterMs : Number(inMs);
  // A wait that can be read in neither way becomes NaN here: then there is no retry.
  return pauseMs >= 0 && pauseMs <= maxPauseMs ? pauseMs : undefined;
}

/** Milliseconds that a client waits at most for the store after the provider has answered. */
export const storeWaitMs = 100;

/**
 * Resolves when the work has ended, successfully or not, or when the time is up. In the latter case the work continues, and its failure is
 * ignored here: the work itself must report it.
 */
export async function waitAtMost(
  work: Promise<unknown>,
  ms: number = storeWaitMs,
  startTimer: StartTimer = startSlicedTimer,
): Promise<void> {
  let hasEnded = false;
  const end = (): void => {
    hasEnded = true;
  };
  const ended = work.then(end, end);
  // Mostly the work has ended before, and then this turn says so. A timer for each request would cost more than that.
  await Promise.resolve();
  if (hasEnded) return;
  const late = withResolvers<void>();
  const timer = startTimer(ms, late.resolve);
  await Promise.race([ended, late.promise]);
  timer.stop();
}

/** Resolves after `ms` milliseconds, or as soon as the signal aborts. */
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

/** Returns functions of the embedding program, such as its log, whose errors are ignored: they must not break off a response. */
export function unfailing<
  Name extends string,
  Owner extends Readonly<Record<Name, (...args: never[]) => unknown>>,
>(owner: Owner, names: readonly Name[]): Pick<Owner, Name> {
  const ignoring =
    (name: Name) =>
    (...args: never[]) => {
      try {
        const result = owner[name](...args);
        if (result instanceof Promise) result.catch(() => undefined);
      } catch {
        // Ignored, see above.
      }
    };
  return Object.fromEntries(names.map((name) => [name, ignoring(name)])) as unknown as Pick<Owner, Name>;
}

/** Returns the same upstream, but other errors than ours, as an upstream of the program may throw, become `upstream-failed` or `deadline`. */
export function reported(upstream: Upstream): Upstream {
  return {
    async send(request) {
      try {
        return await upstream.send(request);
      } catch (error) {
        if (LeporelloError.isInstance(error)) throw error;
        throw upstreamError(error, splitUrl(request.url).origin, request.signal);
      }
    },
    close: () => upstream.close(),
  };
}
