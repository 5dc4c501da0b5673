import { describe, expect, it } from 'vitest';
import { LeporelloError } from '../errors.ts';
import { type HeaderList, headerOf, type UpstreamRequest, type UpstreamResponse } from './http/http.ts';
import { type ContinuationDeps, pauseUnless, sendContinuation, sender } from './send-with-retries.ts';

type Answer = UpstreamResponse | LeporelloError | Error;

const body = new TextEncoder().encode('{}');
const broke = new LeporelloError('upstream-failed', 'It broke off.');

async function* nothing(): AsyncGenerator<Uint8Array> {
  // An empty body.
}

function answer(status: number, headers: HeaderList = []): UpstreamResponse {
  return { status, headers, body: nothing() };
}

/** Plays these answers, and notes each step: `sent`, or the milliseconds of a pause. */
function played(answers: readonly Answer[], leavesAfter = Number.POSITIVE_INFINITY) {
  const done: (string | number)[] = [];
  const statuses: number[] = [];
  const exchange: ContinuationDeps = {
    send: async () => {
      done.push('sent');
      const next = answers[done.filter((step) => step === 'sent').length - 1]!;
      if (next instanceof Error) throw next;
      return next;
    },
    pause: async (ms) => {
      done.push(ms);
    },
    hasLeft: () => done.length >= leavesAfter,
    note: { upstreamStatus: (status) => statuses.push(status) },
  };
  return { exchange, done, statuses };
}

describe('a sender', () => {
  it("gives the client's idempotency key to the first body only", async () => {
    const keys: (string | undefined)[] = [];
    const upstream = {
      send: async ({ headers }: UpstreamRequest) => {
        keys.push(headerOf(headers, 'idempotency-key'));
        return answer(200);
      },
      close: async () => undefined,
    };
    const { signal } = new AbortController();
    const headers: HeaderList = [['idempotency-key', 'once']];
    const request = { method: 'POST', target: '/v1', headers, body: undefined, signal };
    const received = { body, wire: body, unreadReason: undefined };
    const send = sender({ upstream }, request, 'https://api.example/v1', received);
    for (const each of [new Uint8Array(1), body]) await send(each);
    expect(keys).toEqual(['once', undefined]);
  });
});

describe('a continuation', () => {
  it.each<[string, readonly Answer[], readonly (string | number)[], number]>([
    ['is sent once when it is accepted', [answer(200)], ['sent'], 200],
    [
      'waits longer each time',
      [answer(529), answer(500), answer(200)],
      ['sent', 500, 'sent', 1_000, 'sent'],
      200,
    ],
    [
      'is sent at most three times',
      [answer(429), answer(429), answer(429)],
      ['sent', 500, 'sent', 1_000, 'sent'],
      429,
    ],
    [
      'waits as long as the provider says',
      [answer(429, [['retry-after', '2.5']]), answer(200)],
      ['sent', 2_500, 'sent'],
      200,
    ],
    [
      'prefers milliseconds to seconds',
      [
        answer(429, [
          ['retry-after', '3'],
          ['retry-after-ms', '20'],
        ]),
        answer(200),
      ],
      ['sent', 20, 'sent'],
      200,
    ],
    ['is not sent again when the wait is too long', [answer(429, [['retry-after', '8.1']])], ['sent'], 429],
    [
      'waits until the date that the provider names',
      [answer(429, [['retry-after', 'Wed, 21 Oct 2015 07:28:00 GMT']]), answer(200)],
      ['sent', 0, 'sent'],
      200,
    ],
    [
      'is not sent again when that date is far away',
      [answer(429, [['retry-after', 'Thu, 01 Jan 2099 00:00:00 GMT']])],
      ['sent'],
      429,
    ],
    [
      'is not sent again when the wait cannot be read',
      [answer(429, [['retry-after', 'soon']])],
      ['sent'],
      429,
    ],
    [
      'is not sent again when the provider says so',
      [answer(529, [['x-should-retry', 'false']])],
      ['sent'],
      529,
    ],
    ['is not sent again when it is invalid', [answer(400)], ['sent'], 400],
    ['is sent again when the connection broke', [broke, answer(200)], ['sent', 500, 'sent'], 200],
  ])('%s', async (_, answers, steps, status) => {
    const { exchange, done, statuses } = played(answers);
    expect((await sendContinuation(exchange, body)).status).toBe(status);
    expect(done).toEqual(steps);
    expect(statuses.at(-1)).toBe(status);
  });

  it('is sent again although the refused answer cannot be ended', async () => {
    const ending = { next: () => nothing().next(), return: () => Promise.reject(new Error('reset')) };
    const unending = { [Symbol.asyncIterator]: () => ending };
    const { exchange, done } = played([{ status: 503, headers: [], body: unending }, answer(200)]);
    expect((await sendContinuation(exchange, body)).status).toBe(200);
    expect(done).toEqual(['sent', 500, 'sent']);
  });

  it('fails with the last error of the upstream', async () => {
    const { exchange, done } = played([broke, broke, broke]);
    await expect(sendContinuation(exchange, body)).rejects.toBe(broke);
    expect(done).toEqual(['sent', 500, 'sent', 1_000, 'sent']);
  });

  it.each([new LeporelloError('deadline', 'Too late.'), new Error('bug')])(
    'fails at once with %s',
    async (error) => {
      const { exchange, done } = played([error]);
      await expect(sendContinuation(exchange, body)).rejects.toBe(error);
      expect(done).toEqual(['sent']);
    },
  );

  it.each([
    ['before it waits', 1, ['sent']],
    ['while it waits', 2, ['sent', 500]],
  ])('is not sent again for a client that disconnects %s', async (_, leavesAfter, steps) => {
    const { exchange, done } = played([broke, broke], leavesAfter);
    await expect(sendContinuation(exchange, body)).rejects.toMatchObject({ code: 'upstream-failed' });
    expect(done).toEqual(steps);
  });
});

describe('a pause', () => {
  it('ends with the signal, or never begins', async () => {
    const client = new AbortController();
    const pause = pauseUnless(client.signal, 1e9);
    client.abort();
    await pause;
    await pauseUnless(client.signal, 1e9);
    await pauseUnless(new AbortController().signal, 1);
  });
});
