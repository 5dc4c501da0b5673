/** What an engine is asked. */
import type { Codec } from '../codecs/codec.ts';

export type EngineRequest = {
  readonly codec: Codec;
  readonly body: Uint8Array;
  readonly tenant: string;
  /** Says that nobody waits any more: then nothing more is planned, and no fold is recorded that was not sent. Default: never. */
  readonly isTooLate?: () => boolean;
  /** Why the provider refused what was sent before for this request. */
  readonly refusal?: Refusal;
};

/** Too long: folds to so many tokens at most, whatever the triggers say. Reasoning: takes it out. */
export type Refusal =
  | { readonly reason: 'too long'; readonly atMost: number }
  | { readonly reason: 'reasoning' };
