import { describe, expect, it } from 'vitest';
import { keptResponses } from './responses-memory.ts';
import { responsesRefusal } from './responses-rules.ts';
import type { JsonObject, Refusal } from './script.ts';

const user = { role: 'user', content: 'go' };
const said = { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'x' }] };
const call = (id: string, more: JsonObject = {}): JsonObject => ({
  type: 'function_call',
  call_id: id,
  name: 'f',
  arguments: '{}',
  ...more,
});
const output = (id: string, type = 'function_call'): JsonObject => ({
  type: `${type}_output`,
  call_id: id,
  output: 'r',
});
const thought = (id: string): JsonObject => ({ type: 'reasoning', id, summary: [], encrypted_content: 'e' });
const refusal = (...input: unknown[]): string | undefined =>
  responsesRefusal({ model: 'm', input }, keptResponses())?.message;

describe('Responses refuses', () => {
  it.each<[string, JsonObject, Refusal]>([
    [
      'no model',
      { input: 'go' },
      {
        message: "Missing required parameter: 'model'.",
        param: 'model',
        code: 'missing_required_parameter',
      },
    ],
    [
      'nothing to answer',
      { model: 'm', input: [] },
      {
        message:
          'One of "input" or "previous_response_id" or \'prompt\' or \'conversation_id\' must be provided.',
        param: 'input',
        code: 'missing_required_parameter',
      },
    ],
    [
      'an input that is neither text nor list',
      { model: 'm', input: {} },
      {
        message:
          "Invalid type for 'input': expected one of a string or array of objects, but got an object instead.",
        param: 'input',
        code: 'invalid_type',
      },
    ],
    [
      'stream options without a stream',
      { model: 'm', input: 'go', stream_options: {} },
      {
        message: "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
        param: 'stream_options',
      },
    ],
    [
      'an unknown response to go on from',
      { model: 'm', input: 'go', previous_response_id: 'resp_9' },
      {
        message: "Previous response with id 'resp_9' not found.",
        param: 'previous_response_id',
        code: 'previous_response_not_found',
      },
    ],
    [
      'a reference to an unknown item',
      { model: 'm', input: [{ type: 'item_reference', id: 'rs_9' }] },
      { message: "Item with id 'rs_9' not found.", param: 'input', status: 404 },
    ],
    [
      'reasoning without its seal that was not kept',
      { model: 'm', input: [{ type: 'reasoning', id: 'rs_9', summary: [] }, said], store: false },
      {
        message:
          "Item with id 'rs_9' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input.",
        param: 'input',
        status: 404,
      },
    ],
  ])('%s', (_, body, expected) => {
    expect(responsesRefusal(body, keptResponses())).toEqual(expected);
  });

  it.each<[string, unknown, string]>([
    ['what is no object', 'go', "Invalid type for 'input[0]': expected an object, but got a string instead."],
    [
      'an unknown role',
      { role: 'tool', content: 'x' },
      "Invalid value: 'tool'. Supported values are: 'assistant', 'system', 'developer', and 'user'.",
    ],
    ['no content', { role: 'user' }, "Missing required parameter: 'input[0].content'."],
    [
      'words of the user from the model',
      { role: 'assistant', content: [{ type: 'input_text', text: 'x' }] },
      "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'.",
    ],
    [
      'no text',
      { role: 'user', content: [{ type: 'input_text' }] },
      "Missing required parameter: 'input[0].content[0].text'.",
    ],
    [
      'no call id',
      { type: 'function_call', name: 'f', arguments: '{}' },
      "Missing required parameter: 'input[0].call_id'.",
    ],
    [
      'arguments that are no text',
      call('a', { arguments: {} }),
      "Invalid type for 'input[0].arguments': expected a string, but got an object instead.",
    ],
    [
      'an output that is an object',
      { ...output('a'), output: { x: 1 } },
      "Invalid type for 'input[0].output': expected a string or an array, but got an object instead.",
    ],
    [
      'an id of another kind',
      call('a', { id: 'call_a' }),
      "Invalid 'input[0].id': 'call_a'. Expected an ID that begins with 'fc'.",
    ],
  ])('an item with %s', (_, item, message) => {
    expect(refusal(item)).toBe(message);
  });

  it.each<[string, unknown[], string]>([
    [
      'a call without its output',
      [user, call('a'), call('b'), output('a'), user],
      'No tool output found for function call b.',
    ],
    [
      'an output without its call',
      [user, output('a')],
      'No tool call found for function call output with call_id a.',
    ],
    [
      'an output before its call',
      [user, output('a'), call('a')],
      'No tool call found for function call output with call_id a.',
    ],
    [
      'an output of another kind',
      [user, call('a'), output('a', 'custom_tool_call')],
      'No tool call found for custom tool call output with call_id a.',
    ],
    [
      'two outputs of one call',
      [user, call('a'), output('a'), output('a')],
      'Duplicate output found for function call with call_id a. Remove duplicate outputs from your input and try again.',
    ],
    [
      'one call twice',
      [user, call('a'), call('a'), output('a')],
      'Duplicate function call found with call_id a before its output was given.',
    ],
    [
      'a shell call without its output',
      [user, { type: 'local_shell_call', call_id: 'a', action: {} }],
      'No tool output found for local shell call a.',
    ],
    [
      'reasoning at the end',
      [user, thought('rs_1')],
      "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
    ],
    [
      'reasoning before reasoning',
      [user, thought('rs_1'), thought('rs_2'), said],
      "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
    ],
    [
      'reasoning whose call is gone',
      [user, thought('rs_1'), user],
      "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
    ],
    [
      'an approval of nothing',
      [user, { type: 'mcp_approval_response', approval_request_id: 'mcpr_1', approve: true }],
      "Approval response references unknown approval request 'mcpr_1'.",
    ],
    [
      'a compaction trigger that is not last',
      [user, { type: 'compaction_trigger' }, user],
      'A compaction_trigger item must be the last item of the input.',
    ],
  ])('%s', (_, input, message) => {
    expect(refusal(...input)).toBe(message);
  });

  it('nothing of a valid conversation, and nothing unknown', () => {
    expect(
      refusal(
        { type: 'additional_tools', role: 'developer', tools: [] },
        { type: 'configuration_update', reasoning: {} },
        { role: 'developer', content: 's' },
        user,
        thought('rs_1'),
        call('a', { id: 'fc_1' }),
        { type: 'custom_tool_call', call_id: 'b', name: 'g', input: 'x' },
        output('b', 'custom_tool_call'),
        output('a'),
        { type: 'local_shell_call', call_id: 'c', action: {} },
        { type: 'local_shell_call_output', id: 'c', output: '{}' },
        call('a'),
        { type: 'dream', of: 'sheep' },
        output('a'),
        said,
        user,
        { type: 'compaction', encrypted_content: 'e' },
        { type: 'compaction_trigger' },
      ),
    ).toBeUndefined();
  });
});

describe('with kept responses, Responses refuses', () => {
  const kept = keptResponses();
  const body = { model: 'm', input: 'go' };
  const given = [
    thought('rs_0'),
    { ...said, id: 'msg_0' },
    { ...call('a'), id: 'fc_0' },
    { ...call('b'), id: 'fc_1' },
  ];
  const refused = (input: unknown, more: JsonObject = {}): string | undefined =>
    responsesRefusal({ model: 'm', input, ...more }, kept)?.message;
  kept.keep(body, { id: 'resp_0', output: given });
  kept.keep(
    { ...body, store: false },
    { id: 'resp_1', output: [thought('rs_8'), { ...call('c'), id: 'fc_8' }] },
  );
  const before = { previous_response_id: 'resp_0' };

  it('an answer to half of its calls', () => {
    expect(refused([output('a')], before)).toBe('No tool output found for function call b.');
    expect(refused([output('a'), output('b'), output('c')], before)).toBe(
      'No tool call found for function call output with call_id c.',
    );
    expect(refused([output('b'), output('a')], before)).toBeUndefined();
  });

  it('an item without the reasoning that led to it, as long as it has its id', () => {
    const answered = (item: JsonObject): unknown[] => [user, item, output('c')];
    expect(refused(answered({ ...call('c'), id: 'fc_8' }))).toBe(
      "Item 'fc_8' of type 'function_call' was provided without its required 'reasoning' item: 'rs_8'.",
    );
    expect(refused(answered(call('c')))).toBeUndefined();
    expect(refused([user, thought('rs_8'), { ...call('c'), id: 'fc_8' }, output('c')])).toBeUndefined();
  });

  it('one of its items twice', () => {
    expect(refused([given[1], output('a'), output('b')], before)).toBe(
      'Duplicate item found with id msg_0. Remove duplicate items from your input and try again.',
    );
  });

  it('items that follow from referenced items', () => {
    const references = given.map(({ id }) => ({ type: 'item_reference', id }));
    expect(refused([user, ...references, output('a'), output('b')])).toBeUndefined();
    expect(refused([user, ...references, output('a')])).toBe('No tool output found for function call b.');
    expect(refused([user, { id: 'rs_0', type: 'reasoning', summary: [] }, said])).toBeUndefined();
    expect(refused([user, { id: 'fc_8' }])).toBe("Item with id 'fc_8' not found.");
  });
});
