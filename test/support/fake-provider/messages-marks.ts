/** Checks where, and how often, the Messages API accepts `cache_control`, in the provider's words. */
import { isObject, objectsIn } from './json.ts';
import type { JsonObject, Refusal } from './script.ts';

type Placed = { readonly at: string; readonly block: JsonObject };

export function marksRefusal(body: JsonObject): Refusal | undefined {
  const marked = markedIn(body);
  for (const { at, block } of marked) {
    const message = placeRefusal(at, block);
    if (message !== undefined) return { message };
  }
  if (marked.length <= 4) return undefined;
  return { message: `A maximum of 4 blocks with cache_control may be provided. Found ${marked.length}.` };
}

function markedIn(body: JsonObject): readonly Placed[] {
  const messages = objectsIn(body['messages']).flatMap(({ content }, index) =>
    placed(`messages.${index}.content`, content),
  );
  const inResults = messages.flatMap(({ at, block }) => placed(`${at}.content`, block['content']));
  return [
    ...placed('tools', body['tools']),
    ...placed('system', body['system']),
    ...messages,
    ...inResults,
  ].filter(({ block }) => isObject(block['cache_control']));
}

function placed(at: string, list: unknown): readonly Placed[] {
  return objectsIn(list).map((block, index) => ({ at: `${at}.${index}`, block }));
}

function placeRefusal(at: string, { type, text, name, defer_loading }: JsonObject): string | undefined {
  if (type === 'thinking' || type === 'redacted_thinking')
    return `${at}.${type}.cache_control: Extra inputs are not permitted`;
  if (type === 'text' && text === '') return `${at}.text: cache_control cannot be set for empty text blocks`;
  if (defer_loading === true)
    return `Tool '${String(name)}' cannot have both defer_loading=true and cache_control set.`;
  return undefined;
}
