/** Counts how often a request changed messages that had already been sent. Pure. */
import type { RecordedRequest } from '../support/fake-provider/fake-provider.ts';
import { isObject, objectsIn, parseJson } from '../support/fake-provider/json.ts';
import type { JsonObject } from '../support/fake-provider/script.ts';
import { offeredTools } from './offered-tools.ts';

/** Counts the rewrites among the requests that offer tools, in order. Each loses the provider's cache, so a fold must explain it. */
export function rewrites(sent: readonly RecordedRequest[]): number {
  const conversations = sent.flatMap(({ body }) => {
    const parsed = parseJson(body);
    // A request with only the recall tool is not an agent's.
    if (!isObject(parsed) || offeredTools(parsed).length < 2) return [];
    return [prefixOf(parsed).map((part) => JSON.stringify(part, normalized) ?? '')];
  });
  return conversations.filter((now, at) => {
    const before = conversations[at - 1] ?? [];
    return before.some((message, index) => message !== now[index]);
  }).length;
}

/** Returns the parts of a prompt in the order in which a provider caches them. */
function prefixOf(body: JsonObject): readonly unknown[] {
  const { system, instructions, systemInstruction } = body;
  // A deferred definition is not in the prompt before a result refers to it.
  const tools = objectsIn(body['tools']).filter((tool) => tool['defer_loading'] !== true);
  const messages = objectsIn(body['messages'] ?? body['input'] ?? body['contents']);
  return [tools, system, instructions, systemInstruction, ...messages];
}

/** Removes cache breakpoints, which move, and writes string contents as the block that a breakpoint needs. */
function normalized(key: string, value: unknown): unknown {
  if (key === 'cache_control') return undefined;
  return key === 'content' && typeof value === 'string' ? [{ type: 'text', text: value }] : value;
}
