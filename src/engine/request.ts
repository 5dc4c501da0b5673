/** The request of an engine, and the time it may take. */
import type { Codec } from '../codecs/codec.ts';
import type { Overflow } from '../codecs/provider-errors.ts';
import { LeporelloError } from '../errors.ts';

export type EngineRequest = {
  readonly codec: Codec;
  readonly body: Uint8Array;
  readonly tenant: string;
  /** The upstream that serves the request, such as its origin. Context windows are learned per upstream and model. */
  readonly upstream?: string;
  /**
   * Milliseconds left to wait for a store, and to plan a fold that only saves money. A fold without which the request would not fit is
   * made however long it takes. Default: unbounded.
   */
  readonly leftMs?: () => number;
  /** The reason why the provider refused this request before. */
  readonly refusal?: Refusal;
};

/** `too long` folds below the provider's limit, whatever the triggers say; `reasoning` drops all reasoning. */
export type Refusal =
  | { readonly reason: 'too long'; readonly overflow: Overflow }
  | { readonly reason: 'reasoning' };

/** Settles like the promise; rejects with `deadline` when the request's time is over first. */
export async function inTime<T>({ leftMs }: Pick<EngineRequest, 'leftMs'>, promise: Promise<T>): Promise<T> {
  if (!leftMs) return promise;
  const left = Math.max(0, leftMs());
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(
    () =>
      late.reject(
        new LeporelloError('deadline', `The store did not answer in the ${Math.round(left)} ms left.`),
      ),
    left,
  );
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
