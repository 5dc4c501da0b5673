/**
 * Defines the only error class of Leporello, and its codes.
 * Expected problems (a rule of the wire format, a refused fold) are data, not errors: see `Problem` in codecs/codec.ts.
 */

/** The kind of an error, for programs. */
export type ErrorCode =
  /** The body is not a request of the expected wire format. It is passed through unchanged. */
  | 'not-this-format'
  /** An edit set names a place that does not exist, or changes one place twice. */
  | 'bad-edit'
  /** A store could not read or write. */
  | 'store-failed'
  /** A configuration value is not allowed. The message names the key and the allowed values. */
  | 'bad-config'
  /** The command-line arguments are invalid. */
  | 'bad-usage'
  /** An upstream could not be reached, or the connection broke. */
  | 'upstream-failed'
  /** A response or stream of the provider could not be read. */
  | 'bad-response'
  /** A body is larger than its limit. */
  | 'body-too-large'
  /** A summarizer returned no usable text. An extract is used instead. */
  | 'summary-failed'
  /** An operation took longer than its deadline. */
  | 'deadline';

const marker = Symbol.for('leporello.error');

/** An error of Leporello. Its message says what happened, with which value, and what to do. `cause` is the original error. */
export class LeporelloError extends Error {
  override readonly name = 'LeporelloError';
  readonly code: ErrorCode;
  readonly [marker] = true;

  constructor(code: ErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.code = code;
  }

  /** True for errors of any copy of this package; `instanceof` is true only for errors of the same copy. */
  static isInstance(value: unknown): value is LeporelloError {
    return typeof value === 'object' && value !== null && marker in value;
  }
}

/** Describes an error without revealing content: with the message of a LeporelloError, and with only the kind of any other error. */
export function reasonOf(error: unknown): string {
  if (LeporelloError.isInstance(error)) return error.message;
  return error instanceof Error ? error.name : 'unexpected error';
}

/** Marks an error that leaves open whether a store carried out the call. */
export const unanswered = Symbol('unanswered');

/** True for the error of a call that was not answered in time, so that nobody knows whether it wrote. */
export function isUnanswered(error: unknown): boolean {
  if (!LeporelloError.isInstance(error)) return false;
  return error.code === 'deadline' || error.cause === unanswered;
}
