/** Parses what an upstream answered: the one place that says so when it is not JSON. */
import { parseSpan, ScanError } from '../conversation/json-scan.ts';
import { LeporelloError } from '../errors.ts';

/** Throws `bad-response`. */
export function parseResponse(body: Uint8Array): unknown {
  try {
    return parseSpan(body, { start: 0, end: body.length });
  } catch (cause) {
    if (!(cause instanceof ScanError)) throw cause;
    throw new LeporelloError('bad-response', 'The upstream response is not JSON.', { cause });
  }
}
