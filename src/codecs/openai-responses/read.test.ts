import { describe, expect, it } from 'vitest';
import { pairCalls } from '../../conversation/turns.ts';
import { responsesFixture } from '../../../test/support/codec-suite/openai-responses/fixture.ts';
import { outline } from '../../../test/support/codec-suite/outline.ts';
import { view } from '../../../test/support/codec-suite/views.ts';
import { openaiResponses } from './index.ts';

const read = (body: Uint8Array | string) => view(openaiResponses, body);
const recorded = (name: string) => read(responsesFixture.recorded[name]!);
const item = (members: string) => read(`{"model":"m","input":[{${members}}]}`);
const refused = expect.objectContaining({ name: 'LeporelloError', code: 'not-this-format' });

it('reads how long the client asks to keep the prompt cached', () => {
  const asking = (more: string) => read(`{"model":"m","input":[]${more}}`).keptMs;
  expect(asking(',"prompt_cache_retention":"24h"')).toBe(24 * 60 * 60_000);
  expect(asking(',"prompt_cache_options":{"ttl":"12h"}')).toBe(12 * 60 * 60_000);
  expect(asking('')).toBeUndefined();
});

describe('a tool loop over Responses', () => {
  it('is read item by item, reasoning and each call a message of its own', () => {
    const conversation = recorded('sdk-tool-loop');
    expect(outline(conversation)).toEqual([
      'beside: tool weather, tool undefined',
      'beside: "Use the tools."',
      'user: "Weather in Paris and Rome?"',
      'assistant: signed reasoning "Two cities, two calls."',
      'assistant: call call_1 weather("{\\"city\\":\\"Paris\\"}")',
      'assistant: call call_2 weather("{\\"city\\":\\"Rome\\"}")',
      'tool: result call_2 ["31 °C"]',
      'tool: result call_1 ["18 °C" "rain"]',
      'assistant: "Paris 18, Rome 31."',
      'user: "And how do I pick a lock?"',
      'assistant: opaque refusal',
      'user: "Fine."',
    ]);
    const { model, streaming, replies, maxOutputTokens, toolNames } = conversation;
    expect({ model, streaming, replies, maxOutputTokens, toolNames }).toEqual({
      model: 'responses-large',
      streaming: false,
      replies: 1,
      maxOutputTokens: 4096,
      toolNames: ['weather'],
    });
    expect(pairCalls(conversation).pairs.map(({ call, result }) => [call.message, result?.message])).toEqual([
      [2, 5],
      [3, 4],
    ]);
  });

  it('offers the tools of its namespaces too', () => {
    expect(recorded('coding-agent').toolNames).toEqual([
      'exec_command',
      'list_notes',
      'write_note',
      'apply_patch',
    ]);
  });

  it('may send its tools in an item, call them with free text, and hold unknown items', () => {
    const conversation = recorded('tools-in-items');
    expect(outline(conversation)).toEqual([
      'beside: ""',
      'system: opaque additional_tools',
      'system: opaque configuration_update',
      'user: "List the files."',
      'assistant: signed reasoning ',
      'assistant: call call_e1 exec("text(await tools.exec_command({cmd: \\"ls\\"}));\\n")',
      'tool: result call_e1 ["Script completed\\n" "a.ts\\nb.ts\\n" image("data:image/png;base64,AAAA")]',
      'system: opaque ghost_snapshot',
      'assistant: "Two."',
      'user: "Thanks."',
    ]);
    expect(conversation.toolNames).toEqual(['exec', 'open_page']);
  });
});

describe('tools that the provider runs itself', () => {
  it('are opaque, and so is a text with citations', () => {
    const conversation = recorded('server-tools');
    expect(outline(conversation).slice(1)).toEqual([
      'user: "Who makes the best bread, and why?"',
      'assistant: opaque mcp_list_tools',
      'assistant: signed reasoning ',
      'assistant: opaque web_search_call',
      'assistant: signed reasoning ',
      'assistant: opaque mcp_approval_request',
      'tool: opaque mcp_approval_response',
      'assistant: opaque mcp_call',
      'assistant: opaque file_search_call',
      'assistant: opaque code_interpreter_call',
      'assistant: opaque image_generation_call',
      'assistant: opaque tool_search_call',
      'tool: opaque tool_search_output',
      'assistant: opaque program',
      'assistant: call call_1 look_up("{}")',
      'tool: result call_1 ["42"]',
      'assistant: opaque program_output',
      'assistant: opaque output_text',
      'user: "Thanks."',
    ]);
    expect(conversation.toolNames).toEqual(['found_later', 'look_up']);
  });

  it('may be a shell, a patch or a screen of the client', () => {
    expect(outline(recorded('shells-and-screens')).slice(2)).toEqual([
      'assistant: call call_1 shell({ "commands": ["ls", "pwd"], "timeout_ms": 1000 })',
      'tool: result call_1 ["a.ts\\n" "" "" "no such command"]',
      'assistant: call call_2 apply_patch({ "type": "delete_file", "path": "a.ts" })',
      'tool: result call_2 error ["a.ts is not there"]',
      'assistant: call call_3 apply_patch({ "type": "delete_file", "path": "b.ts" })',
      'tool: result call_3 fine []',
      'assistant: call call_4 local_shell({ "type": "exec", "command": ["ls"], "env": {} })',
      'tool: result call_4 ["{\\"output\\":\\"b.ts\\"}"]',
      'assistant: call call_5 computer([{ "type": "screenshot" }])',
      'tool: result call_5 [image("data:image/png;base64,BBBB")]',
    ]);
  });

  it('may include a history: then no tool can be added', () => {
    for (const field of [
      '"previous_response_id":"resp_1"',
      '"conversation":{"id":"conv_1"}',
      '"background":true',
    ])
      expect(read(`{${field},"input":[],"tools":[{"type":"function","name":"f"}]}`).toolNames).toEqual([]);
    const none = '"previous_response_id":null,"conversation":null,"background":false';
    expect(read(`{${none},"input":[],"tools":[{"type":"function","name":"f"}]}`).toolNames).toEqual(['f']);
    expect(outline(recorded('references')).slice(3, 6)).toEqual([
      'assistant: opaque item_reference',
      'assistant: opaque item_reference',
      'tool: result call_1 ["1 line"]',
    ]);
  });
});

describe('images and files', () => {
  it('are media; unknown ones are opaque', () => {
    expect(outline(recorded('images-and-files'))).toEqual([
      'user: "What is on these?", image("data:image/png;base64,iVBORw0KGgo="), image(), document("data:application/pdf;base64,JVBERi0="), document("https://example.com/b.pdf"), audio(), opaque hologram',
    ]);
  });
});

describe('an input that is one text', () => {
  it('is one message of the user', () => {
    const body =
      ' {"model":"m", "input" : "Hel\\nlo" ,"tools":[{"type":"function","name":"f"}],"stream":true}\n';
    const conversation = read(body);
    expect(outline(conversation)).toEqual(['beside: tool f', 'user: "Hel\\nlo"']);
    expect([conversation.streaming, conversation.toolNames]).toEqual([true, ['f']]);
    expect(conversation.messages[0]!.span).toEqual({
      start: body.indexOf('"Hel'),
      end: body.indexOf(' ,"tools'),
    });
    expect(openaiResponses.write(conversation, [])).toBe(conversation.body);
  });

  it.each([
    '{"input":"a","input":"a"}',
    '{"input":"a"} x',
    '{"input":"a","tools":5}',
    '{"input":"a\n"}',
    '{"input":"a","n":tru}',
    '{"input":5}',
    '{"input":["a"]}',
  ])('is refused when the body is malformed: %s', (body) => {
    expect(() => read(body)).toThrow(refused);
  });
});

describe('odd items', () => {
  it.each([
    ['"role":"user","content":""', 'user: ""'],
    ['"role":"assistant","content":[]', 'assistant: '],
    ['"role":"user","content":null', undefined],
    ['"role":"user"', undefined],
    ['"role":"narrator","content":"a"', undefined],
    ['"role":"toString","content":"a"', undefined],
    ['"role":"user","content":["a"]', undefined],
    ['"content":"a"', undefined],
    ['"type":5,"role":"user","content":"a"', undefined],
    ['"type":null,"role":"user","content":"a"', 'user: "a"'],
    ['"type":null,"id":"rs_1"', 'assistant: opaque item_reference'],
    ['"type":"toString"', 'system: opaque toString'],
    ['"type":"toString_output"', 'system: opaque toString_output'],
    ['"role":"user","content":[{"type":"input_text","text":5}]', 'user: opaque input_text'],
    ['"role":"user","content":[{"type":"toString","text":"a"}]', 'user: opaque toString'],
    [
      '"type":"reasoning","summary":[5,{"text":"a"},{"text":null}],"content":null',
      'assistant: signed reasoning "a"',
    ],
    ['"type":"function_call","call_id":"a","name":"b"', undefined],
    ['"type":"function_call","id":"a","name":"b","arguments":"{}"', undefined],
    ['"type":"function_call_output","call_id":null,"output":"a"', 'tool: opaque function_call_output'],
    ['"type":"function_call_output","call_id":"a"', 'tool: result a []'],
    ['"type":"function_call_output","call_id":"a","output":null', 'tool: result a []'],
    ['"type":"function_call_output","call_id":"a","output":[5]', undefined],
    ['"type":"function_call_output","call_id":"a","output":[{"type":"x"}]', 'tool: result a [other()]'],
    ['"type":"compaction_trigger"', 'system: opaque compaction_trigger'],
  ])('{%s} is read as %s', (members, line) => {
    if (line !== undefined) expect(outline(item(members))).toEqual([line]);
    else expect(() => item(members)).toThrow(refused);
  });
});

describe('fields other than the input', () => {
  it.each([
    ['"instructions":null', []],
    ['"instructions":["a"]', ['beside: opaque instructions']],
    ['"tools":null', []],
    ['"tools":[5,{"name":7}]', ['beside: tool undefined, tool undefined']],
  ])('may be odd: %s', (field, lines) => {
    expect(outline(read(`{"input":[],${field}}`))).toEqual(lines);
  });

  it('are refused when they cannot be tools', () => {
    expect(() => read('{"input":[],"tools":{}}')).toThrow(refused);
  });
});
