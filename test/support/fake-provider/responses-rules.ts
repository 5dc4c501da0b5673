/** Finds what Responses refuses: the rules that an edited request could break, in the provider's words. */
import { isObject } from './json.ts';
import { historyRefusal } from './responses-history-rules.ts';
import { itemRefusal } from './responses-item-rules.ts';
import { inputItems } from './responses-memory.ts';
import type { KeptResponses } from './responses-memory.ts';
import { invalidType, missing } from './responses-wordings.ts';
import type { JsonObject, Refusal } from './script.ts';

/** Returns the first broken rule. Without `kept`, ids of earlier responses and their items are accepted unchecked. */
export function responsesRefusal(body: JsonObject, kept?: KeptResponses): Refusal | undefined {
  const refused = topLevelRefusal(body);
  if (refused) return refused;
  for (const [index, item] of listOf(body['input']).entries()) {
    const broken = itemRefusal(item, index);
    if (broken) return broken;
  }
  const before = body['previous_response_id'];
  const earlier = typeof before === 'string' ? kept?.historyUpTo(before) : [];
  if (kept && !earlier) {
    return {
      message: `Previous response with id '${String(before)}' not found.`,
      param: 'previous_response_id',
      code: 'previous_response_not_found',
    };
  }
  const resolved = resolve(inputItems(body), body, kept);
  if ('message' in resolved) return resolved;
  const items = [...(earlier ?? []), ...resolved.items];
  const isWhole = earlier !== undefined && resolved.isWhole && !isGiven(body['conversation']);
  return historyRefusal({ items, isWhole, kept });
}

function topLevelRefusal(body: JsonObject): Refusal | undefined {
  const { model, input, stream } = body;
  if (typeof model !== 'string' && !isObject(body['prompt'])) return missing('model');
  if (input !== undefined && input !== null && typeof input !== 'string' && !Array.isArray(input)) {
    return invalidType('input', 'one of a string or array of objects', input);
  }
  const isEmpty = input === undefined || input === null || (Array.isArray(input) && input.length === 0);
  if (isEmpty && !['previous_response_id', 'conversation', 'prompt'].some((name) => isGiven(body[name]))) {
    return {
      message:
        'One of "input" or "previous_response_id" or \'prompt\' or \'conversation_id\' must be provided.',
      param: 'input',
      code: 'missing_required_parameter',
    };
  }
  if (isGiven(body['stream_options']) && stream !== true) {
    return {
      message: "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
      param: 'stream_options',
    };
  }
  return undefined;
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '';
}

function listOf(input: unknown): readonly unknown[] {
  return Array.isArray(input) ? (input as readonly unknown[]) : [];
}

type Resolved = { readonly items: readonly JsonObject[]; readonly isWhole: boolean };

/** Replaces references by the items they name. Reasoning without its encrypted content is a reference too. */
function resolve(
  items: readonly JsonObject[],
  { store }: JsonObject,
  kept: KeptResponses | undefined,
): Resolved | Refusal {
  const found: JsonObject[] = [];
  for (const item of items) {
    const id = item['id'];
    const isReference = isItemReference(item) || (item['type'] === 'reasoning' && isBare(item));
    const original = isReference && typeof id === 'string' ? kept?.item(id) : undefined;
    if (isReference && kept && !original) {
      const why =
        store === false
          ? ' Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input.'
          : '';
      return { message: `Item with id '${String(id)}' not found.${why}`, param: 'input', status: 404 };
    }
    found.push(original ?? item);
  }
  return { items: found, isWhole: !found.some(isItemReference) };
}

/** References may omit their type. */
function isItemReference({ type, role }: JsonObject): boolean {
  return type === 'item_reference' || ((type === undefined || type === null) && role === undefined);
}

function isBare({ encrypted_content: sealed, content }: JsonObject): boolean {
  return typeof sealed !== 'string' && !Array.isArray(content);
}
