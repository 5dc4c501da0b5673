/**
 * Reads the errors of providers: refusals of requests that are too long (each wire format brings the wordings of its providers),
 * and error bodies that are passed on to the client. Pure.
 */
import { ScanError, concatBytes, isRecord, jsonBytes, parseSpan } from '../conversation/json-scan.ts';
import { memberBytes, setMembers, stringIn } from './shared-json.ts';
import type { Overflow } from './codec.ts';

/**
 * A wording of such a refusal. The groups `limit` and `prompt` capture the numbers, in tokens; the pattern of a limit in bytes
 * has `unit: 'bytes'`. More specific wordings come first in a list.
 */
export type OverflowWording = RegExp | { readonly unit: 'bytes'; readonly says: RegExp };

/** The statuses with which providers refuse the content of a request. FastAPI, Mistral and several proxies use 422. */
export const refusalStatuses: ReadonlySet<number> = new Set([400, 413, 422]);

/** Returns the overflow that a response reports; undefined for every other response. */
export function readOverflow(
  status: number,
  body: string,
  wordings: readonly OverflowWording[],
): Overflow | undefined {
  if (!refusalStatuses.has(status)) return undefined;
  for (const wording of wordings) {
    if (!(wording instanceof RegExp)) {
      if (wording.says.test(body)) return { unit: 'bytes' };
      continue;
    }
    const match = wording.exec(body);
    if (match)
      return {
        unit: 'tokens',
        limit: numberOf(match.groups?.['limit']),
        prompt: numberOf(match.groups?.['prompt']),
      };
  }
  return undefined;
}

/** Reads a number with or without commas. Zero and anything that is no number are not limits. */
function numberOf(text: string | undefined): number | undefined {
  const number = Number(text?.replaceAll(',', ''));
  return Number.isSafeInteger(number) && number > 0 ? number : undefined;
}

/** Wordings that several wire formats share. */
export const contextLengthWordings: readonly OverflowWording[] = [
  // "This model's maximum context length is 65536 tokens. However, you requested 70000 tokens (66000 in the messages, 4000 in the
  // completion)." and "… requested about 140000 tokens (138000 of text input, 2000 in the output)."
  /maximum context length is (?<limit>[\d,]+) tokens.{0,80}\((?<prompt>[\d,]+) (?:in the messages|of text input|in your prompt)/i,
  // "This model's maximum context length is 128000 tokens. However, your messages resulted in 150000 tokens."
  /maximum context length is (?<limit>[\d,]+) tokens.{0,80}(?:messages resulted in|you passed|request has) (?<prompt>[\d,]+)/i,
  /maximum context length is(?: (?<limit>[\d,]+))?/i,
  // "Your input exceeds the context window of this model. Please adjust your input and try again."
  /exceeds the context window/i,
  // "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300000 tokens."
  /input tokens exceed the configured limit(?: of (?<limit>[\d,]+) tokens(?:.{0,40}resulted in (?<prompt>[\d,]+))?)?/i,
];

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { fatal: true });

type ProviderError = {
  /** The whole body, `{"error": {…}}`, in the provider's own bytes, on one line. */
  readonly whole: Uint8Array;
  /** The same as a value. */
  readonly error: Readonly<Record<string, unknown>>;
};

/**
 * Reads the body of a provider's error, so that it can be sent on inside a stream. All formats here spell it `{"error":
 * {"message": …}}`; some servers send the inner object alone, others put it in a list. Undefined for any other body: a page of a
 * proxy, for example.
 */
export function providerError(body: Uint8Array | undefined): ProviderError | undefined {
  try {
    // Raw line breaks in JSON are only between its tokens, so a space does as well.
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

export function explainError(body: Uint8Array, sentence: string): Uint8Array {
  try {
    const error = memberBytes(body, 'error');
    const message = error && memberBytes(error, 'message');
    const text = message && parseSpan(message, { start: 0, end: message.length });
    if (!error || typeof text !== 'string') return body;
    return setMembers(body, { error: setMembers(error, { message: jsonBytes(`${text} ${sentence}`) }) });
  } catch (problem) {
    if (problem instanceof ScanError) return body;
    throw problem;
  }
}
