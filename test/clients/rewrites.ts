/** How often a conversation was not just continued: what had been sent stood there in other words. Pure. */
import type { RecordedRequest } from '../support/fake-provider/fake-provider.ts';
import { isObject, objectsIn, parseJson } from '../support/fake-provider/json.ts';
import type { JsonObject } from '../support/fake-provider/script.ts';
import { offeredTools } from './offered-tools.ts';

/** Over the requests that offer tools, in the order they were sent; each costs the provider's cache, so each wants a reason. */
export function rewrites(sent: readonly RecordedRequest[]): number {
  const conversations = sent.flatMap(({ body }) => {
    const parsed = parseJson(body);
    // The recall tool alone is no agent's request.
    if (!isObject(parsed) || offeredTools(parsed).length < 2) return [];
    return [prefixOf(parsed).map((part) => JSON.stringify(part, said) ?? '')];
  });
  return conversations.filter((now, at) => {
    const before = conversations[at - 1] ?? [];
    return before.some((message, index) => message !== now[index]);
  }).length;
}

/** In the order a provider reads and caches it. */
function prefixOf(body: JsonObject): readonly unknown[] {
  const { system, instructions, systemInstruction } = body;
  // A deferred definition is no part of the prompt before a result refers to it.
  const tools = objectsIn(body['tools']).filter((tool) => tool['defer_loading'] !== true);
  const messages = objectsIn(body['messages'] ?? body['input'] ?? body['contents']);
  return [tools, system, instructions, systemInstruction, ...messages];
}

/** Marks for the cache move on by themselves, and a text that no longer bears one may be spelled as a string again. */
function said(key: string, value: unknown): unknown {
  if (key === 'cache_control') return undefined;
  return key === 'content' && typeof value === 'string' ? [{ type: 'text', text: value }] : value;
}
