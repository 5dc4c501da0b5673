/** Finds what Responses refuses in one input item, whatever surrounds it. Items of unknown types are accepted. */
import { isObject } from './json.ts';
import { invalidType, invalidValue, missing } from './responses-wordings.ts';
import type { JsonObject, Refusal } from './script.ts';

export function itemRefusal(item: unknown, index: number): Refusal | undefined {
  const at = `input[${index}]`;
  if (!isObject(item)) return invalidType(at, 'an object', item);
  const type = item['type'] ?? (item['role'] === undefined ? 'item_reference' : 'message');
  if (typeof type !== 'string') return invalidType(`${at}.type`, 'a string', type);
  const id = item['id'];
  const prefix = Object.hasOwn(prefixes, type) ? prefixes[type] : undefined;
  if (typeof id === 'string' && prefix !== undefined && !id.startsWith(prefix)) {
    return {
      message: `Invalid '${at}.id': '${id}'. Expected an ID that begins with '${prefix}'.`,
      param: `${at}.id`,
      code: 'invalid_value',
    };
  }
  if (type === 'message') return messageRefusal(item, at);
  const fields = Object.hasOwn(required, type) ? required[type]! : {};
  for (const [field, types] of Object.entries(fields)) {
    const value = item[field];
    if (value === undefined || value === null) return missing(`${at}.${field}`);
    if (!types.some((one) => isOf(one, value))) {
      return invalidType(`${at}.${field}`, types.map((one) => articles[one]).join(' or '), value);
    }
  }
  return undefined;
}

/** Ids are the provider's own; it recognizes them by their prefix. */
const prefixes: Readonly<Record<string, string>> = {
  message: 'msg',
  reasoning: 'rs',
  function_call: 'fc',
  custom_tool_call: 'ctc',
};

type Kind = 'string' | 'array' | 'object';

const required: Readonly<Record<string, Readonly<Record<string, readonly Kind[]>>>> = {
  item_reference: { id: ['string'] },
  reasoning: { summary: ['array'] },
  function_call: { call_id: ['string'], name: ['string'], arguments: ['string'] },
  function_call_output: { call_id: ['string'], output: ['string', 'array'] },
  custom_tool_call: { call_id: ['string'], name: ['string'], input: ['string'] },
  custom_tool_call_output: { call_id: ['string'], output: ['string', 'array'] },
  compaction: { encrypted_content: ['string'] },
};

const articles: Readonly<Record<Kind, string>> = {
  string: 'a string',
  array: 'an array',
  object: 'an object',
};

function isOf(kind: Kind, value: unknown): boolean {
  return (Array.isArray(value) ? 'array' : typeof value) === kind;
}

/** The content that each side may send. Unknown kinds of content are accepted. */
const contentOf: Readonly<Record<string, { readonly never: readonly string[]; readonly supported: string }>> =
  {
    assistant: {
      never: ['input_text', 'input_image', 'input_file'],
      supported: "'output_text' and 'refusal'",
    },
    user: {
      never: ['output_text', 'refusal'],
      supported: "'input_text', 'input_image', 'output_text', 'refusal', 'input_file'",
    },
  };

function messageRefusal(item: JsonObject, at: string): Refusal | undefined {
  const { role, content } = item;
  if (role === undefined) return missing(`${at}.role`);
  if (!['assistant', 'system', 'developer', 'user'].includes(role as string)) {
    return invalidValue(`${at}.role`, role, "'assistant', 'system', 'developer', and 'user'");
  }
  if (content === undefined || content === null) return missing(`${at}.content`);
  if (typeof content === 'string') return undefined;
  if (!Array.isArray(content)) return invalidType(`${at}.content`, 'a string or an array', content);
  const { never, supported } = contentOf[role === 'assistant' ? 'assistant' : 'user']!;
  for (const [n, part] of (content as readonly unknown[]).entries()) {
    const place = `${at}.content[${n}]`;
    if (!isObject(part)) return invalidType(place, 'an object', part);
    if (typeof part['type'] !== 'string') return missing(`${place}.type`);
    if (never.includes(part['type'])) return invalidValue(`${place}.type`, part['type'], supported);
    if (part['type'].endsWith('_text') && typeof part['text'] !== 'string') return missing(`${place}.text`);
  }
  return undefined;
}
