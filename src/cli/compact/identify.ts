/** Identifies a record: its id, and the wire format of its body. */
import {
  type BodyMembers,
  type FormatName,
  type WireFormat,
  formatOf,
  membersOf,
  wireFormats,
} from '../../library/formats.ts';
import { isRecord } from '../../conversation/json-scan.ts';
import type { Format } from '../flags.ts';

/** An identified record, or the reason why it cannot be used. */
export type IdentifiedRecord =
  | {
      readonly status: 'ok';
      readonly id: string | undefined;
      readonly format: FormatName;
      readonly body: Readonly<Record<string, unknown>>;
    }
  | { readonly status: 'bad'; readonly reason: string };

/** Identifies a record by its bytes. */
export function identify(bytes: Uint8Array, format: Format, maxBytes: number): IdentifiedRecord {
  if (bytes.length > maxBytes) {
    const reason = `it has ${bytes.length} bytes, more than limits.maxBodyBytes (${maxBytes})`;
    return { status: 'bad', reason };
  }
  let body: unknown;
  try {
    body = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (error) {
    return {
      status: 'bad',
      reason: error instanceof SyntaxError ? `not JSON: ${error.message}` : 'not UTF-8',
    };
  }
  if (!isRecord(body)) return { status: 'bad', reason: 'not a JSON object' };
  const found = format === 'auto' ? formatOf(bytes, membersOf(bytes) ?? noMembers) : format;
  if (found === undefined || !holdsMessages(body, wireFormats[found])) {
    const wanted = format === 'auto' ? listsOfAll : `'${wireFormats[format].list}'`;
    return { status: 'bad', reason: `it has no list ${wanted}` };
  }
  const { id } = body;
  return { status: 'ok', id: typeof id === 'string' && id !== '' ? id : undefined, format: found, body };
}

const noMembers: BodyMembers = new Map();

const lists = new Set(Object.values(wireFormats).map(({ list }) => `'${list}'`));
const listsOfAll = [...lists].join(', ').replace(/, ([^,]*)$/, ' or $1');

function holdsMessages(
  body: Readonly<Record<string, unknown>>,
  { list, mayBeText }: Pick<WireFormat, 'list' | 'mayBeText'>,
): boolean {
  return Array.isArray(body[list]) || (mayBeText && typeof body[list] === 'string');
}
