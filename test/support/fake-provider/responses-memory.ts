/**
 * Holds what the provider of Responses keeps: whole responses, unless `store` is false, and the reasoning of every item it ever
 * gave. Lives as long as the provider.
 */
import { objectsIn } from './json.ts';
import type { JsonObject } from './script.ts';

export interface KeptResponses {
  /** Returns the response as it was given. */
  response(id: string): JsonObject | undefined;
  /** Returns all items up to the end of a response: those it continued, its input, its output. */
  historyUpTo(id: string): readonly JsonObject[] | undefined;
  /** Returns a kept item by its own id. */
  item(id: string): JsonObject | undefined;
  /** Returns the id of the reasoning that led to an item; undefined for unknown items and items without reasoning. */
  reasoningOf(itemId: string): string | undefined;
  /** True for an item that was given here, kept or not. */
  isOurs(itemId: string): boolean;
  /** `body` is the request of the response. */
  keep(body: JsonObject, response: JsonObject): void;
  /** False when there was nothing to delete. */
  forget(id: string): boolean;
}

export function keptResponses(): KeptResponses {
  const kept = new Map<string, { readonly response: JsonObject; readonly history: readonly JsonObject[] }>();
  const items = new Map<string, JsonObject>();
  /** Reasoning by the id of the item it led to. */
  const given = new Map<string, string | undefined>();

  function note(output: readonly JsonObject[]): void {
    let reasoning: string | undefined;
    for (const item of output) {
      const id = String(item['id']);
      if (item['type'] === 'reasoning') reasoning = id;
      given.set(id, item['type'] === 'reasoning' ? undefined : reasoning);
    }
  }

  function historyUpTo(id: string): readonly JsonObject[] | undefined {
    return kept.get(id)?.history;
  }

  return {
    response: (id) => kept.get(id)?.response,
    historyUpTo,
    item: (id) => items.get(id),
    reasoningOf: (id) => given.get(id),
    isOurs: (id) => given.has(id),
    keep(body, response) {
      const output = objectsIn(response['output']);
      note(output);
      if (body['store'] === false) return;
      const earlier = historyUpTo(String(body['previous_response_id'])) ?? [];
      kept.set(String(response['id']), { response, history: [...earlier, ...inputItems(body), ...output] });
      for (const item of output) items.set(String(item['id']), item);
    },
    forget: (id) => kept.delete(id),
  };
}

/** Returns the input as a list: a text means one message of the user. */
export function inputItems({ input }: JsonObject): readonly JsonObject[] {
  return typeof input === 'string'
    ? [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: input }] }]
    : objectsIn(input);
}
