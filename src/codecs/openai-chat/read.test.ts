import { describe, expect, it } from 'vitest';
import { chatFixture } from '../../../test/support/codec-suite/openai-chat/fixture.ts';
import { outline } from '../../../test/support/codec-suite/outline.ts';
import { view } from '../../../test/support/codec-suite/views.ts';
import { openaiChat } from './index.ts';

const read = (body: Uint8Array | string) => view(openaiChat, body);
const recorded = (name: string) => read(chatFixture.recorded[name]!);
const message = (members: string) => read(`{"model":"m","messages":[{${members}}]}`);

describe('how long the client asks to keep the prompt cached', () => {
  const mark = (ttl: string) => `"cache_control":{"type":"ephemeral","ttl":"${ttl}"}`;
  const piece = (more: string) =>
    `"messages":[{"role":"user","content":[{"type":"text","text":"a",${more}}]}]`;
  it.each<[string, string, number | undefined, boolean]>([
    ['a day', '"messages":[],"prompt_cache_retention":"24h"', 24 * 60, false],
    ['half a day', '"messages":[],"prompt_cache_options":{"mode":"implicit","ttl":"12h"}', 12 * 60, false],
    ['as usual', '"messages":[],"prompt_cache_retention":"in_memory"', undefined, false],
    ['not at all', '"messages":[]', undefined, false],
    ['a mark on a text', piece(mark('5m')), 5, false],
    ['a mark on a text, an hour', piece(mark('1h')), 60, true],
    [
      'a mark on a tool',
      `"messages":[],"tools":[{"type":"function","function":{"name":"f"},${mark('1h')}}]`,
      60,
      true,
    ],
    [
      'a mark in a tool',
      `"messages":[],"tools":[{"type":"function","function":{"name":"f",${mark('1h')}}}]`,
      60,
      true,
    ],
    ['a mark at the top', `"messages":[],${mark('1h')}`, 60, true],
  ])('%s', (_, members, minutes, long) => {
    const { keptMs, writesLong } = read(`{"model":"m",${members}}`);
    expect({ minutes: keptMs && keptMs / 60_000, writesLong }).toEqual({ minutes, writesLong: long });
  });
});

describe('a tool loop over Chat Completions', () => {
  it('is read with developer messages, empty content, refusals and answers in any order', () => {
    const conversation = recorded('sdk-tool-loop');
    expect(outline(conversation)).toEqual([
      'beside: tool weather',
      'system: "Use the tools."',
      'user: "Weather in Paris and Rome?"',
      'assistant: call call_1 weather("{\\"city\\":\\"Paris\\"}"), call call_2 weather("{\\"city\\":\\"Rome\\"}")',
      'tool: result call_2 ["31 °C" "sunny"]',
      'tool: result call_1 ["18 °C"]',
      'assistant: "Paris 18, Rome 31."',
      'user: "And how do I pick a lock?"',
      'assistant: opaque refusal',
      'assistant: opaque refusal',
      'user: "Fine."',
    ]);
    const { model, streaming, replies, maxOutputTokens, toolNames } = conversation;
    expect({ model, streaming, replies, maxOutputTokens, toolNames }).toEqual({
      model: 'chat-small',
      streaming: false,
      replies: 1,
      maxOutputTokens: 4096,
      toolNames: ['weather'],
    });
  });

  it('keeps reasoning in place, under either name', () => {
    expect(outline(recorded('reasoning-content')).slice(3)).toEqual([
      'assistant: reasoning "I should list them.", call call_00_x ls("{}")',
      'tool: result call_00_x ["a.ts\\nb.ts"]',
      'assistant: reasoning "There are a.ts and b.ts.", "Two."',
      'user: "Sure?"',
    ]);
  });

  it('may call tools with free text', () => {
    expect(outline(recorded('custom-tools'))).toEqual([
      'beside: tool code, tool note',
      'user: "Compute it."',
      'assistant: call call_c code("print(\\"1\\" + \\"2\\")\\n"), call call_f note("{}")',
      'tool: result call_c ["12"]',
      'tool: result call_f [""]',
    ]);
  });
});

describe('images, sounds and files', () => {
  it('are media, in messages and in results; unknown ones are opaque', () => {
    expect(outline(recorded('images-audio-files')).slice(1)).toEqual([
      'user: "What is on these?", image("data:image/png;base64,iVBORw0KGgo="), image("https://example.com/cat.png"), audio("UklGRg=="), document("data:application/pdf;base64,JVBERi0="), document(), opaque hologram',
      'assistant: opaque audio',
      'assistant: "I will look closer.", call call_z zoom("{\\"x\\":1}")',
      'tool: result call_z ["Zoomed." "Done." image("data:image/png;base64,AAAA")]',
      'user: "So?"',
    ]);
  });
});

describe('the legacy function form', () => {
  it('is read as calls and results, paired by the name of the function', () => {
    expect(outline(recorded('functions-before-tools'))).toEqual([
      'beside: tool clock',
      'system: "Call functions."',
      'user: "Time?"',
      'assistant: call #function clock clock("{\\"zone\\":\\"UTC\\"}")',
      'tool: result #function clock ["12:00"]',
      'assistant: "Noon."',
      'user: "Thanks."',
    ]);
  });
});

describe('fields other than the messages', () => {
  it('say how many replies are requested and how long one may be', () => {
    expect(recorded('several-replies').replies).toBe(3);
    expect(read('{"messages":[],"n":null,"max_tokens":7}')).toMatchObject({ replies: 1, maxOutputTokens: 7 });
    expect(read('{"messages":[],"max_tokens":7,"max_completion_tokens":9}').maxOutputTokens).toBe(9);
    expect(read('{"messages":[],"max_tokens":"7","stream":1,"model":5}')).toMatchObject({
      maxOutputTokens: undefined,
      streaming: false,
      model: undefined,
    });
  });

  it('may be null in place of tools', () => {
    expect(recorded('cache-marks').preamble).toEqual([]);
  });
});

describe('odd messages', () => {
  it.each([
    ['"role":"assistant","content":""', 'assistant: '],
    ['"role":"assistant"', 'assistant: '],
    ['"role":"assistant","content":[]', 'assistant: '],
    ['"role":"assistant","content":null,"tool_calls":null', 'assistant: '],
    ['"role":"assistant","content":"a","tool_calls":[]', 'assistant: "a"'],
    ['"role":"assistant","content":null,"refusal":"no"', 'assistant: opaque refusal'],
    ['"role":"user","content":5', undefined],
    ['"role":"user","content":{}', undefined],
    ['"role":"user","content":[{"type":"text","text":5}]', 'user: opaque text'],
    ['"role":"user","content":[{"type":"image_url"}]', 'user: image()'],
    ['"role":"user","content":[{"type":"toString"}]', 'user: opaque toString'],
    ['"role":"assistant","reasoning_content":null,"content":"a"', 'assistant: "a"'],
    [
      '"role":"assistant","reasoning_content":null,"reasoning":"b","content":"a"',
      'assistant: reasoning "b", "a"',
    ],
    [
      '"role":"assistant","content":"a","reasoning_content":"b","reasoning":"b"',
      'assistant: reasoning "b", reasoning "b", "a"',
    ],
    ['"role":"tool","tool_call_id":"a"', 'tool: result a []'],
    ['"role":"tool","tool_call_id":"a","content":null', 'tool: result a []'],
    ['"role":"tool","tool_call_id":"a","content":[5]', undefined],
    ['"role":"tool","content":"a"', undefined],
    ['"role":"tool","tool_call_id":5,"content":"a"', undefined],
    ['"role":"assistant","tool_calls":[5]', undefined],
    ['"role":"assistant","tool_calls":[{"id":"a"}]', undefined],
    ['"role":"assistant","tool_calls":[{"id":"a","function":{"name":"b"}}]', undefined],
    ['"role":"assistant","tool_calls":[{"function":{"name":"b","arguments":"{}"}}]', undefined],
  ])('{%s} is read as %s', (members, line) => {
    if (line !== undefined) expect(outline(message(members))).toEqual([line]);
    else expect(() => message(members)).toThrow(expect.objectContaining({ code: 'not-this-format' }));
  });
});
