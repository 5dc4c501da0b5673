/**
 * What the provider of Responses keeps: whole responses, unless `store` is false, and of every item it ever gave the reasoning it
 * came from. Lives as long as the provider.
 */
import { objectsIn } from './json.ts';
import type { JsonObject } from './script.ts';

export interface KeptResponses {
  /** The response as it was given. */
  response(id: string): JsonObject | undefined;
  /** All items up to the end of a response: those it went on from, its input, its output. */
  historyUpTo(id: string): readonly JsonObject[] | undefined;
  /** A kept item by its own id. */
  item(id: string): JsonObject | undefined;
  /** Id of the reasoning that an item came from; undefined for items that are not ours or came from none. */
  reasoningOf(itemId: string): string | undefined;
  /** True for an item that was given here, kept or not. */
  isOurs(itemId: string): boolean;
  /** `body` asked for the response. */
  keep(body: JsonObject, response: JsonObject): void;
  /** False when there was nothing to forget. */
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

/** The input as a list: a text stands for one message of the user. */
export function inputItems({ input }: JsonObject): readonly JsonObject[] {
  return typeof input === 'string'
    ? [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: input }] }]
    : objectsIn(input);
}
