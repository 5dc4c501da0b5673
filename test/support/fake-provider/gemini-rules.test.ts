import { describe, expect, it } from 'vitest';
import { geminiRefusal } from './gemini-rules.ts';
import type { JsonObject } from './script.ts';

const words = { text: 'x' };
const tell = (...parts: unknown[]): JsonObject => ({ role: 'user', parts });
const say = (...parts: unknown[]): JsonObject => ({ role: 'model', parts });
const use = (name: string, more: JsonObject = {}, thoughtSignature?: string): JsonObject => ({
  functionCall: { name, args: {}, ...more },
  ...(thoughtSignature === undefined ? {} : { thoughtSignature }),
});
const answer = (name: string, more: JsonObject = {}): JsonObject => ({
  functionResponse: { name, response: { output: 'r' }, ...more },
});
const refusalOf = (body: JsonObject, model = 'gemini-2.5-pro', strictRoles = false): string | undefined =>
  geminiRefusal(body, { model, strictRoles })?.message;
const refusal = (...contents: unknown[]): string | undefined => refusalOf({ contents });

const responseTurn =
  'Please ensure that function response turn comes immediately after a function call turn.';
const responseCount =
  'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.';

describe('generateContent refuses', () => {
  it.each<[string, unknown[], string]>([
    ['no contents', [], '* GenerateContentRequest.contents: contents is not specified\n'],
    ['an unknown role', [{ role: 'assistant', parts: [words] }], 'Please use a valid role: user, model.'],
    [
      'a content without parts',
      [tell(words), say()],
      '* GenerateContentRequest.contents[1].parts: contents.parts must not be empty.\n',
    ],
    [
      'an empty part',
      [tell({})],
      "* GenerateContentRequest.contents[0].parts[0].data: required oneof field 'data' must have one initialized field\n",
    ],
    [
      'a text that is none',
      [tell({ text: 7 })],
      "Invalid value at 'contents[0].parts[0].text' (TYPE_STRING), 7",
    ],
    [
      'a response that is no object',
      [tell(words), say(use('f')), tell(answer('f', { response: 'r' }))],
      `Invalid value at 'contents[2].parts[0].function_response.response' (type.googleapis.com/google.protobuf.Struct), "r"`,
    ],
    [
      'a response without a name',
      [tell(words), say(use('f')), tell(answer(''))],
      '* GenerateContentRequest.contents[2].parts[0].function_response.name: Name cannot be empty.\n',
    ],
    [
      'calls at the beginning',
      [say(use('f')), tell(answer('f'))],
      'Please ensure that function call turn comes immediately after a user turn or after a function response turn.',
    ],
    [
      'the model at the beginning',
      [say(words), tell(words)],
      'Please ensure that multiturn requests start with a user turn.',
    ],
    ['a response without a call', [tell(words), say(words), tell(answer('f'))], responseTurn],
    ['a response after words', [tell(words), say(use('f')), tell(words), tell(answer('f'))], responseTurn],
    [
      'responses in two contents',
      [tell(words), say(use('f'), use('g')), tell(answer('f')), tell(answer('g'))],
      responseTurn,
    ],
    ['a call without its response', [tell(words), say(use('f'), use('g')), tell(answer('f'))], responseCount],
    ['a call that words follow', [tell(words), say(use('f')), tell(words)], responseCount],
    ['a call at the end', [tell(words), say(use('f'))], responseCount],
    ['a response too many', [tell(words), say(use('f')), tell(answer('f'), answer('f'))], responseCount],
    [
      'a response with another id',
      [tell(words), say(use('f', { id: '1' })), tell(answer('f', { id: '2' }))],
      'The function response `f` with id `2` does not match any function call of the function call turn.',
    ],
    [
      'a response with another name',
      [tell(words), say(use('f', { id: '1' })), tell(answer('g', { id: '1' }))],
      'The function response `g` with id `1` does not match any function call of the function call turn.',
    ],
    [
      'responses without ids in another order',
      [tell(words), say(use('f'), use('g')), tell(answer('g'), answer('f'))],
      'Function responses without ids must be in the order of their function calls.',
    ],
  ])('%s', (_, contents, message) => {
    expect(refusal(...contents)).toBe(message);
  });

  it('settings next to a cache that has its own', () => {
    const cached = { contents: [tell(words)], cachedContent: 'cachedContents/a' };
    expect(refusalOf(cached)).toBeUndefined();
    expect(refusalOf({ ...cached, tools: [{ functionDeclarations: [{ name: 'f' }] }] })).toBe(
      'CachedContent can not be used with GenerateContent request setting system_instruction, tools or tool_config.\n\nProposed fix: move those values to CachedContent from GenerateContent request.',
    );
  });

  it('neighbors of one side only when it is strict, and then not words after results', () => {
    const contents = [tell(words), tell(words), say(words)];
    expect(refusalOf({ contents })).toBeUndefined();
    expect(refusalOf({ contents }, 'gemini-1.0-pro', true)).toBe(
      'Please ensure that multiturn requests alternate between user and model.',
    );
    const behind = [tell(words), say(words), say(use('f')), tell(answer('f')), tell(words)];
    expect(refusalOf({ contents: behind }, 'gemini-1.0-pro', true)).toBeUndefined();
  });

  it('nothing of a valid conversation, in either spelling', () => {
    expect(
      refusal(
        { parts: { text: 'x' } },
        say({ text: 'hm', thought: true }, words, use('f', { id: '1' }), use('f', { id: '2' })),
        tell(answer('f', { id: '2' }), answer('f', { id: '1' }), words),
        say(use('f', { id: '3' })),
        tell(answer('f')),
        { role: 'model', parts: [{ function_call: { name: 'g' } }] },
        { role: 'function', parts: [{ function_response: { name: 'g', response: {} } }] },
        say(words),
      ),
    ).toBeUndefined();
  });
});

describe('models that check signatures refuse', () => {
  const of = (contents: readonly unknown[], model = 'gemini-3-pro-preview'): string | undefined =>
    refusalOf({ contents }, model);
  const missing = (name: string, position: number): string =>
    `Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call \`default_api:${name}\` , position ${position}. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details.`;
  const step = (name: string, signature?: string): readonly unknown[] => [
    say(words),
    say(use(name, {}, signature), use('other')),
    tell(answer(name), answer('other')),
  ];

  it('a step of the current turn whose first call has no signature', () => {
    expect(of([tell(words), ...step('f', 's'), ...step('g')])).toBe(missing('g', 6));
    expect(of([tell(words), ...step('f'), ...step('g', 's')])).toBe(missing('f', 3));
    expect(of([tell(words), ...step('f')], 'gemini-3.1-flash')).toBe(missing('f', 3));
  });

  it('no other call', () => {
    const sentinel = 'skip_thought_signature_validator';
    expect(of([tell(words), ...step('f', 's'), ...step('g', sentinel)])).toBeUndefined();
    expect(of([tell(words), ...step('f'), say(words), tell(words), ...step('g', 's')])).toBeUndefined();
    expect(of([tell(words), ...step('f')], 'gemini-2.5-pro')).toBeUndefined();
  });
});
