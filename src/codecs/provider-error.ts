/**
 * Reads the body of a provider's error, so that it can be told again inside a stream. All formats here spell it `{"error": {"message": …}}`;
 * some servers send the inner object alone, others put it in a list.
 */
import { isRecord } from '../conversation/arguments.ts';
import { concatBytes, jsonBytes } from '../conversation/splice.ts';
import { stringIn } from './event-json.ts';

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { fatal: true });

export type ProviderError = {
  /** `{"error": {…}}` with all that the provider put beside it, in the provider's own bytes, on one line. */
  readonly whole: Uint8Array;
  /** The same as a value. */
  readonly error: Readonly<Record<string, unknown>>;
};

/** Undefined where the body is no such error: a page of a proxy, say. */
export function providerError(body: Uint8Array | undefined): ProviderError | undefined {
  try {
    // A line break of JSON stands between its words only, so a space does as well.
    const text = decoder
      .decode(body)
      .replaceAll(/[\r\n]+/g, ' ')
      .trim();
    const [, listed] = /^\[(.*)\]$/.exec(text) ?? [];
    const spelled = listed ?? text;
    const value: unknown = JSON.parse(spelled);
    if (!isRecord(value)) return undefined;
    const whole = encoder.encode(spelled);
    if (isRecord(value['error'])) return { whole, error: value['error'] };
    if (typeof value['error'] === 'string')
      return wrapped(jsonBytes({ message: value['error'] }), { message: value['error'] });
    return stringIn(value, 'message') === undefined ? undefined : wrapped(whole, value);
  } catch {
    return undefined;
  }
}

function wrapped(bytes: Uint8Array, error: Readonly<Record<string, unknown>>): ProviderError {
  return { whole: concatBytes([encoder.encode('{"error":'), bytes, encoder.encode('}')]), error };
}
