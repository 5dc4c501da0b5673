/** Reads single fields of a body, to decide whether it may be sent again for a comparison. */
import {
  type JsonRecord,
  objectsOf,
  parseSpan,
  scanObject,
  skipSpace,
  wordAt,
} from '../conversation/json-scan.ts';

/** Parses top-level fields, and nothing else of the body. Throws for a body that is not an object. */
export function parseFields(body: Uint8Array, names: ReadonlySet<string>): JsonRecord {
  const { members } = scanObject(body, skipSpace(body, 0));
  const wanted = members.filter(({ key }) => names.has(key));
  return Object.fromEntries(wanted.map(({ key, value }) => [key, parseSpan(body, value)]));
}

/** Names the first tool that is not run by the client; undefined when there is none. `isOwn` says it of a tool's type. */
export function providerTool(tools: unknown, isOwn: (type: string) => boolean): string | undefined {
  const types = objectsOf(tools).map((tool) => wordAt(tool, 'type') ?? '');
  const found = types.find((type) => !isOwn(type));
  return found && `the tool ${found} of the provider`;
}

/** Returns a number above 0; undefined for anything else. */
export function positiveNumberIn(value: unknown): number | undefined {
  return typeof value === 'number' && value > 0 ? value : undefined;
}
