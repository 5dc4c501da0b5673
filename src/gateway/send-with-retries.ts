/**
 * Sends a prepared request and, where the provider refuses it for what we may have caused, tries again: folded harder when it says
 * that the request is too long, without reasoning when it refuses that, as the client's own bytes when it does not like the folded
 * ones. Bounded; any other answer stands.
 */
import type { Codec } from '../codecs/codec.ts';
import type { Overflow } from '../codecs/provider-errors.ts';
import type { Refusal as EngineRefusal } from '../engine/request.ts';
import { type Prepared, unprepared } from '../engine/prepared.ts';
import type { UpstreamResponse } from './http/http.ts';
import { peekBody } from './http/body.ts';
import { waitAtMost } from './waiting.ts';
import { LeporelloError } from '../errors.ts';
import { headerOf } from './http/headers.ts';

/** One request of a client with the ways to send it. */
export type Sending = {
  readonly codec: Codec;
  /** As the client sent it. */
  readonly body: Uint8Array;
  readonly prepared: Prepared;
  readonly send: (body: Uint8Array) => Promise<UpstreamResponse>;
  /** Prepares the same request anew, for what it was refused for. */
  readonly prepareAgain: (refusal: EngineRefusal) => Promise<Prepared>;
  /** Tells that this conversation is to be sent as it comes from now on. */
  readonly leaveAlone: () => Promise<void>;
};

/** What was sent in the end, and the answer to it. */
export type Sent = { readonly prepared: Prepared; readonly response: UpstreamResponse };

/** Folds of one request for a provider that finds it too long. Each must be smaller than the one before. */
const maxRefolds = 10;

/** Rejects like an upstream. */
export async function sendPrepared(sending: Sending): Promise<Sent> {
  const sent = await sendAsItIsTaken(sending);
  // Nobody goes on from a reply before all instances know what it was a reply to. Long done by now, but where the store hangs.
  await waitAtMost(sent.prepared.known);
  return sent;
}

async function sendAsItIsTaken(sending: Sending): Promise<Sent> {
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
  // The recall tool alone is an edit, too: a client at its provider's limit of tools is refused for it.
  const wasEdited = prepared.mayGoAsItCame && prepared.body !== sending.body;
  if (refusal.text === undefined || !wasEdited || overflowIn(sending, refusal) || !originalMayFit(prepared)) {
    return { prepared, response: refusal.response };
  }
  return sendOriginal(sending, prepared, refusal.response.status);
}

/** A response of which the text was read when its status says that the request was refused. */
type Refusal = { readonly response: UpstreamResponse; readonly text: string | undefined };

/** Error bodies are a few hundred bytes. */
const maxErrorBytes = 1024 * 1024;

async function refusalOf(response: UpstreamResponse): Promise<Refusal> {
  if (response.status !== 400 && response.status !== 413) return { response, text: undefined };
  const { text, body } = await peekBody(response.body, maxErrorBytes);
  return { response: { ...response, body }, text };
}

function overflowIn({ codec }: Sending, { response, text }: Refusal): Overflow | undefined {
  return text === undefined ? undefined : codec.overflowIn(response.status, text);
}

function originalMayFit({ report }: Prepared): boolean {
  return (
    report.window === undefined || report.tokensBefore === undefined || report.tokensBefore <= report.window
  );
}

async function sendOriginal(sending: Sending, refused: Prepared, refusedWith: number): Promise<Sent> {
  const response = await sending.send(sending.body);
  if (response.status < 400) await waitAtMost(sending.leaveAlone());
  const reason = `the provider answered ${refusedWith} to the folded request`;
  const { identity, report } = refused;
  const original = unprepared(sending.body, { status: 'failed', reason }, { model: report.model });
  return { prepared: { ...original, identity }, response };
}

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
