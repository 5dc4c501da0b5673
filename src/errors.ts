/**
 * The one error class of Leporello and the union of its codes.
 * Soft problems (a rule of the wire format, a refused fold) are data, not errors: see `Problem` in codecs/codec.ts.
 */

/** What went wrong, as a word a program can switch on. */
export type ErrorCode =
  /** The body is not a request of the wire format it was sent to; it passes through untouched. */
  | 'not-this-format'
  /** An edit set names a place that does not exist, or touches one place twice. */
  | 'bad-edit'
  /** A store could not read or write. */
  | 'store-failed'
  /** A configuration value is not allowed; the message names the key and the allowed values. */
  | 'bad-config'
  /** Command-line arguments are not understood. */
  | 'bad-usage'
  /** An upstream could not be reached or broke off. */
  | 'upstream-failed'
  /** A response or stream of the provider could not be read. */
  | 'bad-response'
  /** The request body is larger than the gateway takes. */
  | 'body-too-large'
  /** A summarizer gave no summary that can be used; an extract stands in for it. */
  | 'summary-failed'
  /** Something took longer than its deadline. */
  | 'deadline';

const marker = Symbol.for('leporello.error');

/** An error says what happened, with which value, and what to do now. `cause` keeps what was caught. */
export class LeporelloError extends Error {
  override readonly name = 'LeporelloError';
  readonly code: ErrorCode;
  readonly [marker] = true;

  constructor(code: ErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.code = code;
  }

  /** True for errors of any copy of this package, where `instanceof` is not. */
  static isInstance(value: unknown): value is LeporelloError {
    return typeof value === 'object' && value !== null && marker in value;
  }
}

/** An error in words that hold no content: our own messages; of other errors only the kind. */
export function reasonOf(error: unknown): string {
  if (LeporelloError.isInstance(error)) return error.message;
  return error instanceof Error ? error.name : 'unexpected error';
}
