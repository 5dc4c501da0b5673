/** The options of a fake provider, and what it records of a request. */
import type { Reply, Script, ScriptFormat } from './script.ts';

export type FakeProviderOptions = {
  readonly script: Script;
  /** Answers requests to paths outside the formats. A 404 by default. */
  readonly other?: (request: RecordedRequest) => Reply;
  /**
   * Refuses Messages and contents whose roles do not alternate, as some hosts and older models do. Default false, as the
   * providers themselves.
   */
  readonly strictRoles?: boolean;
};

export type RecordedRequest = {
  readonly format: ScriptFormat | 'count-tokens' | 'compact' | 'other';
  readonly method: string;
  /** Path with query. */
  readonly target: string;
  /** Names in lower case, in the order of arrival. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Uint8Array;
  /** When the whole body had arrived, in ms since the epoch. */
  readonly receivedAt: number;
  /** How the response ended: written completely, or broken off by either side. */
  readonly ended: Promise<'complete' | 'broken-off'>;
};
