/**
 * Finds what generateContent refuses with a 400: the rules that an edited conversation could break, in the provider's words.
 * Neighboring contents of the model are one turn, as its own client sends them, and so are those of the user; `strictRoles`
 * refuses the latter, as older models do, except for words right after results.
 */
import { checksSignatures, fieldOf, objectAt, partsOf, textAt } from './gemini-fields.ts';
import { pairingRefusal, type Turn } from './gemini-pairing.ts';
import { isObject } from './json.ts';
import type { JsonObject, Refusal } from './script.ts';

export type GeminiNeeds = { readonly model: string; readonly strictRoles: boolean };

/** Returns the first broken rule. */
export function geminiRefusal(body: JsonObject, needs: GeminiNeeds): Refusal | undefined {
  const contents = fieldOf(body, 'contents');
  const list = isObject(contents) ? [contents] : contents;
  if (!Array.isArray(list) || list.length === 0)
    return { message: '* GenerateContentRequest.contents: contents is not specified\n' };
  if (textAt(body, 'cachedContent') !== undefined && settings.some((name) => isSet(fieldOf(body, name)))) {
    return {
      message:
        'CachedContent can not be used with GenerateContent request setting system_instruction, tools or tool_config.\n\nProposed fix: move those values to CachedContent from GenerateContent request.',
    };
  }
  for (const [index, content] of (list as readonly unknown[]).entries()) {
    const broken = contentRefusal(content, index);
    if (broken !== undefined) return { message: broken };
  }
  const sound = list as readonly JsonObject[];
  const message =
    orderRefusal(sound, needs.strictRoles) ??
    pairingRefusal(turnsOf(sound)) ??
    (checksSignatures(needs.model) ? unsigned(sound) : undefined);
  return message === undefined ? undefined : { message };
}

const settings = ['systemInstruction', 'tools', 'toolConfig'];

function isSet(value: unknown): boolean {
  return Array.isArray(value) ? value.length > 0 : value !== undefined;
}

function contentRefusal(content: unknown, index: number): string | undefined {
  const at = `contents[${index}]`;
  if (!isObject(content)) return `Invalid value at '${at}' (type.googleapis.com/Content), ${quoted(content)}`;
  const role = fieldOf(content, 'role') ?? '';
  // `function` is the old role of results.
  if (!['', 'user', 'model', 'function'].includes(role as string))
    return 'Please use a valid role: user, model.';
  const parts = fieldOf(content, 'parts');
  if (parts === undefined || (Array.isArray(parts) && parts.length === 0))
    return `* GenerateContentRequest.${at}.parts: contents.parts must not be empty.\n`;
  for (const [n, part] of (Array.isArray(parts) ? (parts as readonly unknown[]) : [parts]).entries()) {
    const broken = partRefusal(part, `${at}.parts[${n}]`);
    if (broken !== undefined) return broken;
  }
  return undefined;
}

function partRefusal(part: unknown, at: string): string | undefined {
  if (!isObject(part)) return `Invalid value at '${at}' (type.googleapis.com/Part), ${quoted(part)}`;
  if (Object.keys(part).length === 0)
    return `* GenerateContentRequest.${at}.data: required oneof field 'data' must have one initialized field\n`;
  const text = fieldOf(part, 'text');
  if (text !== undefined && typeof text !== 'string')
    return `Invalid value at '${at}.text' (TYPE_STRING), ${quoted(text)}`;
  for (const [field, held, inside] of [
    ['functionCall', 'function_call', 'args'],
    ['functionResponse', 'function_response', 'response'],
  ] as const) {
    const value = fieldOf(part, field);
    if (value === undefined) continue;
    const struct = isObject(value) ? fieldOf(value, inside) : undefined;
    if (struct !== undefined && !isObject(struct))
      return `Invalid value at '${at}.${held}.${inside}' (type.googleapis.com/google.protobuf.Struct), ${quoted(struct)}`;
    if (textAt(objectAt(part, field), 'name') === undefined)
      return `* GenerateContentRequest.${at}.${held}.name: Name cannot be empty.\n`;
  }
  return undefined;
}

function quoted(value: unknown): string {
  return JSON.stringify(value) ?? 'nothing';
}

function isModel(content: JsonObject | undefined): boolean {
  return fieldOf(content, 'role') === 'model';
}

function holds(content: JsonObject | undefined, field: string): boolean {
  return content !== undefined && partsOf(content).some((part) => fieldOf(part, field) !== undefined);
}

function orderRefusal(contents: readonly JsonObject[], strictRoles: boolean): string | undefined {
  const [first] = contents;
  if (isModel(first)) {
    return holds(first, 'functionCall')
      ? 'Please ensure that function call turn comes immediately after a user turn or after a function response turn.'
      : 'Please ensure that multiturn requests start with a user turn.';
  }
  const late = contents.some(
    (content, n) => !isModel(content) && !isModel(contents[n - 1]) && holds(content, 'functionResponse'),
  );
  if (late) return 'Please ensure that function response turn comes immediately after a function call turn.';
  const repeated = contents.some((content, n) => {
    const before = contents[n - 1];
    return n > 0 && !isModel(content) && !isModel(before) && !holdsOnlyResults(before);
  });
  return strictRoles && repeated
    ? 'Please ensure that multiturn requests alternate between user and model.'
    : undefined;
}

function holdsOnlyResults(content: JsonObject | undefined): boolean {
  return content !== undefined && partsOf(content).every((part) => isSet(fieldOf(part, 'functionResponse')));
}

function turnsOf(contents: readonly JsonObject[]): readonly Turn[] {
  const turns: { isModel: boolean; parts: JsonObject[] }[] = [];
  for (const content of contents) {
    const last = turns.at(-1);
    if (last?.isModel === isModel(content)) last.parts.push(...partsOf(content));
    else turns.push({ isModel: isModel(content), parts: [...partsOf(content)] });
  }
  return turns;
}

/**
 * In each step of the current turn, which begins with the last words of the user, the first call has its signature. Any text
 * counts as one: `skip_thought_signature_validator` is meant to, and others cannot be checked.
 */
function unsigned(contents: readonly JsonObject[]): string | undefined {
  const start = contents.findLastIndex((content) => !isModel(content) && !holds(content, 'functionResponse'));
  /** True when the first call of this step has been seen. */
  let hasCalled = false;
  for (const [index, content] of contents.entries()) {
    if (!isModel(content)) hasCalled = false;
    const call = partsOf(content).find((part) => fieldOf(part, 'functionCall') !== undefined);
    if (!call || hasCalled) continue;
    hasCalled = true;
    if (index < start || textAt(call, 'thoughtSignature') !== undefined) continue;
    const name = textAt(objectAt(call, 'functionCall'), 'name');
    return `Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call \`default_api:${name}\` , position ${index + 1}. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details.`;
  }
  return undefined;
}
