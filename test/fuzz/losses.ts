/** Checks that a fold loses no loaded tool, no original and no answer to a recall. Each check returns the losses in words. */
import { scanArray } from '../../src/conversation/json-scan.ts';
import type { EncryptedStore } from '../../src/store/encrypted-store.ts';
import { isObject } from '../support/fake-provider/json.ts';
import type { JsonObject } from '../support/fake-provider/script.ts';
import type { SentBody } from './strict-upstream.ts';

/** Returns the references to loaded tools that the sent body lacks. */
export function lostReferences(bytes: Uint8Array, sent: JsonObject): readonly string[] {
  let own: unknown;
  try {
    own = JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return [];
  }
  const wanted = referencesIn(own);
  if (wanted.length === 0) return [];
  const present = referencesIn(sent);
  return wanted
    .filter((one) => !present.includes(one))
    .map((one) => `a loaded tool is missing: ${one.slice(0, 80)}`);
}

const loading: ReadonlySet<unknown> = new Set(['tool_reference', 'tool_search_call', 'tool_search_output']);

function referencesIn(body: unknown): readonly string[] {
  const found: string[] = [];
  const walk = (value: unknown): void => {
    if (Array.isArray(value)) for (const one of value) walk(one);
    else if (typeof value === 'object' && value !== null) {
      if ('type' in value && loading.has(value.type)) found.push(JSON.stringify(value));
      for (const one of Object.values(value)) walk(one);
    }
  };
  walk(body);
  return found;
}

/** Checks that the store has the exact bytes of a client for every id in the sent body. */
export async function lostOriginals(
  { bytes }: SentBody,
  encryptedStore: EncryptedStore,
  seen: readonly string[],
  isOwn: boolean,
): Promise<readonly string[]> {
  const text = textOf(bytes);
  const failures: string[] = [];
  for (const id of new Set(text.match(/mem_[a-z0-9]{16}/g) ?? [])) {
    const stored = await encryptedStore.recall('fuzz', id);
    if (stored.status !== 'found') {
      failures.push(`${id} is ${stored.status}`);
      continue;
    }
    const original = textOf(stored.original);
    const isThere =
      seen.some((body) => body.includes(original)) ||
      (original.startsWith('[') && elementsArePresent(stored.original, seen));
    if (!isThere && isOwn)
      failures.push(`${id} is stored with bytes that no client sent: ${original.slice(0, 200)}`);
  }
  return failures;
}

/** Checks each element: messages are stored as a list of their bytes, and only the commas in between are ours. */
function elementsArePresent(list: Uint8Array, seen: readonly string[]): boolean {
  return scanArray(list, 0).elements.every(({ start, end }) => {
    const element = textOf(list.subarray(start, end));
    return seen.some((body) => body.includes(element));
  });
}

/** Returns the recalls that the next request answers with an unknown id. */
export function missedRecalls(
  recalled: readonly { readonly id: string; readonly callId: string }[],
  sent: readonly SentBody[],
): readonly string[] {
  return recalled.flatMap(({ id, callId }) => {
    const answer = sent
      .map(({ body }) => (body ? JSON.stringify(body) : ''))
      .find((text) => text.includes(`"${callId}"`));
    const isMissed =
      answer !== undefined && /No memory with id/.test(answer.slice(answer.lastIndexOf(callId)));
    return isMissed ? [`the recall of ${id} is not answered`] : [];
  });
}

export function textOf(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}

/** Counts legacy function calls without a result directly after them, and such results without a call. */
export function unpairedFunctions(body: JsonObject | undefined): number {
  const { messages } = body ?? {};
  if (!Array.isArray(messages)) return 0;
  return messages.filter((message: unknown, at) => {
    if (named(message, 'role') === 'function') return calledBy(messages[at - 1]) !== named(message, 'name');
    const called = calledBy(message);
    return called !== undefined && named(messages[at + 1], 'name') !== called;
  }).length;
}

function calledBy(message: unknown): unknown {
  return named(named(message, 'function_call'), 'name');
}

function named(value: unknown, key: string): unknown {
  return isObject(value) ? value[key] : undefined;
}
