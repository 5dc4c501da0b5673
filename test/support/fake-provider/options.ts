/** What a fake provider is started with, and what it records of a request. */
import type { Reply, Script, ScriptFormat } from './script.ts';

export type FakeProviderOptions = {
  readonly script: Script;
  /** Answers requests to other paths than those of the formats. A 404 by default. */
  readonly other?: (request: RecordedRequest) => Reply;
  /** Refuse Messages and contents whose roles do not alternate, as some hosts and older models do. Default false, as the providers' own. */
  readonly strictRoles?: boolean;
};

export type RecordedRequest = {
  readonly format: ScriptFormat | 'count-tokens' | 'compact' | 'other';
  readonly method: string;
  /** Path with query. */
  readonly target: string;
  /** Names in lower case, in the order they came. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Uint8Array;
  /** When the body had come whole, in ms since the epoch. */
  readonly receivedAt: number;
  /** How the response ended: written out whole, or broken off by either side. */
  readonly ended: Promise<'complete' | 'broken-off'>;
};
