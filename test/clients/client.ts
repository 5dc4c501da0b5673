/**
 * What is known of one agent CLI: which package it is, and how it is told to talk to our gateway without asking anybody anything.
 * Data only: what drives them is the same for all.
 */

/** One CLI with its ways of talking to a provider. */
export type Client = {
  readonly name: string;
  /** `package@version`: pinned, so that a run says something about the gateway and not about their release of today. */
  readonly install: string;
  /** The command in `node_modules/.bin`. */
  readonly command: string;
  readonly variants: readonly Variant[];
  /** Why a second run cannot go on where the first ended; undefined where it can. */
  readonly cannotResume?: string;
};

export type Variant = {
  /** The wire format, with what else tells it from the client's other variants. */
  readonly format: string;
  /** What the model is called in the client's requests. */
  readonly model: string;
  /** False for a model that binds its thinking to all that stands before it: in a running turn nothing could be folded. */
  readonly thinks?: false;
  /** True where it loads the tools of an MCP server on demand: it goes through the tool search loop instead of the folded one. */
  readonly loadsTools?: true;
  readonly setup: (rims: Rims) => Setup;
  /** What must be true of the run beside what holds for all clients: problems in words. */
  readonly also?: (
    exchanges: readonly { readonly target: string; readonly status: number }[],
  ) => readonly string[];
};

export type Rims = {
  /** `http://127.0.0.1:PORT`, without a path. */
  readonly url: string;
  readonly model: string;
  readonly task: string;
  /** Whether the last session in this folder goes on. */
  readonly isResumed: boolean;
  /** The folder the client works in. */
  readonly folder: string;
};

export type Setup = {
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Files by their path in the client's home. */
  readonly files?: Readonly<Record<string, string>>;
};

/** A credential that no provider knows. */
export const dummyKey = 'dummy-key-for-tests';
