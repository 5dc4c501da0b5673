/** Adds a sentence to a provider's error. Every format here spells it `{"error": {"message": …}}`; all else stays as it came. */
import { parseSpan, ScanError } from '../conversation/json-scan.ts';
import { jsonBytes } from '../conversation/splice.ts';
import { memberBytes, setMembers } from './event-json.ts';

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
