/**
 * The part of a running gateway that serves `leporello wrap`: it describes the gateway, gives each wrap a base URL of its own, sums up its
 * receipts, and tells when no wrap uses the gateway any more. A wrap is alive as long as its connection is open or its client runs, so a
 * wrap that was killed leaves nothing to clean up, and its client continues.
 */
import { withResolvers } from '../../es2024.ts';
import { refuseForeign } from '../../gateway/routing/foreign-pages.ts';
import { queryOf } from '../../gateway/routing/tenant.ts';
import { type GatewayResponse, type Handler, headerOf, jsonResponse } from '../../gateway/http/http.ts';
import type { AnyReceipt } from '../../gateway/receipts/receipts.ts';
import type { Receipt } from '../../receipts/receipt.ts';
import { createReceiptTotals, type Totals } from '../../receipts/totals.ts';
import { type GatewayState, proofOf, wrapsPath } from '../running-gateway.ts';

export type WrapsOptions = {
  readonly secret: Uint8Array;
  /** The gateway's state, without what is known here. */
  readonly state: Omit<GatewayState, 'wraps' | 'endsWithWraps'>;
  readonly allowedHosts: readonly string[] | undefined;
  readonly endsWithWraps: boolean;
  readonly isRunning: (pid: number) => boolean;
  readonly pauses?: WrapPauses;
};

/** Milliseconds. */
export type WrapPauses = {
  /** Until the first wrap must have come. */
  readonly first: number;
  /** After the last use by a wrap that was killed before it named its client. */
  readonly unnamed: number;
  /** Without any wrap until the gateway is unused. */
  readonly unused: number;
  /** Between two looks at clients. */
  readonly look: number;
  /** For receipts of responses that have just ended, which the sums need. */
  readonly receipts: number;
};

const usualPauses: WrapPauses = {
  first: 60_000,
  unnamed: 60_000,
  unused: 1_000,
  look: 250,
  receipts: 30_000,
};

/** The sums of the requests of one wrap. */
export type WrapSums = Pick<
  Totals,
  'requests' | 'folds' | 'recalls' | 'tokensBefore' | 'tokensAfter' | 'money'
> & {
  /** Requests with a problem, and the newest problem; undefined if there was none. */
  readonly problems?: { readonly requests: number; readonly newest: string } | undefined;
};

/** Creates the part. `watched` returns the handler with it; `unused` resolves once no wrap uses the gateway. */
export function createWraps(options: WrapsOptions) {
  const { secret, allowedHosts, pauses = usualPauses } = options;
  const receipts = openWrapReceipts(pauses.receipts);
  const users = openWrapUsers(options, pauses, receipts.ended);

  function described(challenge: string): GatewayResponse {
    const { endsWithWraps, state } = options;
    const own: GatewayState = { ...state, wraps: users.alive(), endsWithWraps };
    return jsonResponse(200, { ...own, proof: proofOf(secret, challenge.slice(0, 100)) });
  }

  return {
    unused: users.unused,
    watched(handler: Handler): Handler {
      return async function serveWraps(request) {
        const found = wrapTarget.exec(request.target);
        if (!found) return handler(request);
        const [, id = '', rest = found[3] ?? ''] = found;
        const refused = allowedHosts && refuseForeign(request, allowedHosts);
        if (refused) return refused;
        const [path = ''] = rest.split('?', 1);
        const searchParams = new URLSearchParams(queryOf(rest));
        if (id === '') return described(searchParams.get('challenge') ?? '');
        if (path === '' || path === '/') return jsonResponse(200, await receipts.sumsOf(id));
        if (path === '/hold')
          return users.hold(id, Number(searchParams.get('pid')) || undefined, request.signal);
        users.used(id);
        const response = await handler({ ...request, target: rest });
        const receipt = headerOf(response.headers, 'x-leporello-receipt');
        if (receipt !== undefined && users.isKnown(id)) receipts.expect(id, receipt);
        return response;
      };
    },
    /** Adds a receipt to the sums of the wrap that its request came from. */
    onReceipt: (receipt: AnyReceipt) => receipts.add(receipt, users.isAnyKnown()),
    /** Ends all connections of wraps, so that the gateway can stop. */
    end: () => users.end(),
  };
}

type OneWrap = { holds: number; pid: number | undefined; lastUse: number };

/** Tells which wraps use the gateway. `ended` is called for each that no longer does. */
function openWrapUsers(
  { endsWithWraps, isRunning }: WrapsOptions,
  pauses: WrapPauses,
  ended: (id: string) => void,
) {
  const wraps = new Map<string, OneWrap>();
  const ending = new AbortController();
  const unused = withResolvers<void>();
  let lastUse = performance.now() + pauses.first - pauses.unused;
  const looking = endsWithWraps ? setInterval(look, pauses.look) : undefined;
  looking?.unref();

  function opened(id: string): OneWrap {
    const known = wraps.get(id) ?? { holds: 0, pid: undefined, lastUse: 0 };
    wraps.set(id, known);
    return known;
  }

  function remove(id: string): void {
    wraps.delete(id);
    ended(id);
  }

  /** A wrap that was killed before it could name its client is alive for some time after each request. */
  function isAlive({ holds, pid, lastUse: last }: OneWrap): boolean {
    if (holds > 0) return true;
    return pid === undefined ? performance.now() - last < pauses.unnamed : isRunning(pid);
  }

  function look(): void {
    for (const [id, wrap] of wraps) if (!isAlive(wrap)) remove(id);
    if (wraps.size > 0) lastUse = performance.now();
    else if (performance.now() - lastUse >= pauses.unused) unused.resolve();
  }

  return {
    unused: unused.promise,
    isKnown: (id: string) => wraps.has(id),
    isAnyKnown: () => wraps.size > 0,
    alive: () => [...wraps.values()].filter(isAlive).length,
    used(id: string): void {
      const wrap = wraps.get(id);
      if (wrap) wrap.lastUse = performance.now();
    },
    /** Answers a wrap that stays connected as long as it uses the gateway. */
    hold(id: string, pid: number | undefined, signal: AbortSignal): GatewayResponse {
      if (ending.signal.aborted) return jsonResponse(503, { error: 'This gateway is stopping.' });
      const wrap = opened(id);
      wrap.holds += 1;
      wrap.pid = pid ?? wrap.pid;
      lastUse = performance.now();
      wrap.lastUse = lastUse;
      const over = AbortSignal.any([signal, ending.signal]);
      const release = (): void => {
        wrap.holds -= 1;
        if (wrap.holds === 0 && !endsWithWraps) remove(id);
      };
      if (over.aborted) release();
      else over.addEventListener('abort', release, { once: true });
      return { status: 200, headers: [['content-type', 'text/plain']], body: silence(over) };
    },
    end(): void {
      clearInterval(looking);
      ending.abort();
    },
  };
}

/** Entries of a map at most. */
const maxRemembered = 1_000;

/** Adds an entry. When there are too many, the oldest one goes and is returned. */
function remember<T>(map: Map<string, T>, key: string, value: T): readonly [string, T] | undefined {
  map.set(key, value);
  if (map.size <= maxRemembered) return undefined;
  const [oldest] = map;
  map.delete(oldest![0]);
  return oldest;
}

/** Sums up the receipts of each wrap. Sums wait at most `waitMs` milliseconds for receipts of responses that have just ended. */
function openWrapReceipts(waitMs: number) {
  /** The wrap of each request, by the id of its receipt. */
  const wrapOf = new Map<string, string>();
  /** Receipts that came before their responses. */
  const early = new Map<string, AnyReceipt>();
  /** The receipts that have not come yet, by wrap. */
  const pending = new Map<string, Set<string>>();
  const totals = createReceiptTotals();
  const problems = new Map<string, NonNullable<WrapSums['problems']>>();

  /** Notes what went wrong. A client that left, as after Ctrl-C, is no problem. */
  function noteProblem(id: string, { problem, cutOff }: Receipt): void {
    if (problem === undefined || cutOff === 'client left') return;
    remember(problems, id, { requests: (problems.get(id)?.requests ?? 0) + 1, newest: problem });
  }

  function add(receipt: AnyReceipt, isAnyKnown: boolean): void {
    if (receipt.kind === 'shadow') return;
    const isSummary = receipt.kind === 'summary';
    const id = wrapOf.get(isSummary ? receipt.behind : receipt.id);
    // A response that is not streamed comes after its receipt.
    if (id === undefined) {
      if (!isSummary && isAnyKnown) remember(early, receipt.id, receipt);
      return;
    }
    early.delete(receipt.id);
    if (isSummary) totals.addSummary(id, receipt);
    else {
      totals.add(id, receipt);
      noteProblem(id, receipt);
    }
    pending.get(id)?.delete(receipt.id);
  }

  return {
    /** Adds a receipt. `isAnyKnown`: some wrap uses the gateway, so the response may be for one. */
    add,
    /** Notes that a receipt belongs to a wrap. */
    expect(id: string, receipt: string): void {
      pending.set(id, (pending.get(id) ?? new Set()).add(receipt));
      const forgotten = remember(wrapOf, receipt, id);
      // Its receipt can no longer be found, so nothing may wait for it.
      if (forgotten) pending.get(forgotten[1])?.delete(forgotten[0]);
      const known = early.get(receipt);
      if (known) add(known, true);
    },
    /** Nothing waits any more for the receipts of a wrap. */
    ended: (id: string) => void pending.delete(id),
    async sumsOf(id: string): Promise<WrapSums> {
      const latest = performance.now() + waitMs;
      while ((pending.get(id)?.size ?? 0) > 0 && performance.now() < latest) {
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
      const { requests, folds, recalls, tokensBefore, tokensAfter, money } = totals.total(id);
      return { requests, folds, recalls, tokensBefore, tokensAfter, money, problems: problems.get(id) };
    },
  };
}

/** `/_leporello/wraps`, optionally with an id and a target below it. */
const wrapTarget = new RegExp(`^${wrapsPath}(?:/([\\w-]{1,64})((?:[/?].*)?)|(\\?.*)?)$`, 's');

/** A body that has one line, and ends with the signal. */
async function* silence(signal: AbortSignal): AsyncGenerator<Uint8Array> {
  yield new TextEncoder().encode('held\n');
  if (!signal.aborted)
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
}
