/**
 * Describes an agent CLI: its package, and its settings for using the gateway without questions to a user. Data only; the same code runs
 * all clients.
 */

/** One CLI with the wire formats that it can use. */
export type Client = {
  readonly name: string;
  /** `package@version`, pinned so that a failure is due to the gateway and not to a new release. */
  readonly install: string;
  /** The command in `node_modules/.bin`. */
  readonly command: string;
  readonly variants: readonly Variant[];
  /** Why a second run cannot continue the first; undefined if it can. */
  readonly cannotResume?: string;
};

export type Variant = {
  /** The wire format, with a suffix if the client has several variants for it. */
  readonly format: string;
  /** The model's name in the client's requests. */
  readonly model: string;
  /** False for a model that binds its thinking to everything before it, so that nothing could be folded within a turn. */
  readonly thinks?: false;
  /** True if it loads the tools of an MCP server on demand; it then plays the tool search loop instead of the folded one. */
  readonly loadsTools?: true;
  readonly setup: (options: SetupOptions) => Setup;
  /** Returns problems in words that only this variant's runs can have. */
  readonly also?: (
    exchanges: readonly { readonly target: string; readonly status: number }[],
  ) => readonly string[];
};

export type SetupOptions = {
  /** The gateway's base URL, `http://127.0.0.1:PORT`, without a path. */
  readonly url: string;
  readonly model: string;
  readonly task: string;
  /** Whether the client continues its last session in this folder. */
  readonly isResumed: boolean;
  /** The client's working folder. */
  readonly folder: string;
};

export type Setup = {
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** File contents by path in the client's home. */
  readonly files?: Readonly<Record<string, string>>;
};

/** A credential that no provider accepts. */
export const dummyKey = 'dummy-key-for-tests';
