import { describe, expect, it } from 'vitest';
import { pairCalls } from '../../conversation/turns.ts';
import { geminiFixture } from '../../../test/support/codec-suite/gemini/fixture.ts';
import { outline } from '../../../test/support/codec-suite/outline.ts';
import { newReading, view } from '../../../test/support/codec-suite/views.ts';
import { gemini, geminiFor } from './index.ts';

const read = (body: Uint8Array | string) => view(gemini, body);
const recorded = (name: string) => read(geminiFixture.recorded[name]!);
const part = (json: string) => read(`{"contents":[{"role":"model","parts":[${json}]}]}`);
const response = (json: string) =>
  read(`{"contents":[{"parts":[{"functionResponse":{"name":"f","response":${json}}}]}]}`);

describe('the URL', () => {
  it('names the model and whether the reply streams', () => {
    const body = new TextEncoder().encode('{"contents":[]}');
    const { model, streaming } = geminiFor({ model: 'gemini-3-pro', streaming: true }).read(
      body,
      newReading(),
    );
    expect([model, streaming]).toEqual(['gemini-3-pro', true]);
    expect([read(body).model, read(body).streaming]).toEqual([undefined, false]);
  });
});

describe('a tool loop of the SDK', () => {
  it('is read with thoughts, signatures, parallel calls and an error', () => {
    const conversation = recorded('sdk-tool-loop');
    expect(outline(conversation)).toEqual([
      'beside: tool weather',
      'beside: "Use the tools."',
      'user: "Weather in Paris and Rome?"',
      'assistant: reasoning "I need both.", call fc_1 weather({"city":"Paris"}), call fc_2 weather({"city":"Rome"})',
      'tool: result fc_1 ["18 °C"], result fc_2 error ["no such station"]',
      'assistant: "Paris 18; Rome is unknown.", ""',
      'user: "Thanks. And Oslo?"',
    ]);
    const { replies, maxOutputTokens, toolNames } = conversation;
    expect({ replies, maxOutputTokens, toolNames }).toEqual({
      replies: 1,
      maxOutputTokens: 2048,
      toolNames: ['weather'],
    });
  });
});

describe('calls without ids', () => {
  it('are identified by their names, and answered by name and order', () => {
    const conversation = recorded('coding-agent');
    expect(outline(conversation).slice(3, 6)).toEqual([
      'assistant: "Understood."',
      'user: "Why does the basket test fail?"',
      'assistant: call #read_file read_file({"file_path":"basket.test.ts"}), call #read_file read_file({"file_path":"basket.ts"}), call #run_shell_command run_shell_command({"command":"npm test -- basket"})',
    ]);
    const { pairs, orphans } = pairCalls(conversation);
    expect([pairs.map(({ call, result }) => [call.part, result?.part]), orphans]).toEqual([
      [
        [0, 0],
        [1, 1],
        [2, 2],
      ],
      [],
    ]);
    expect(conversation.toolNames).toEqual(['read_file', 'run_shell_command']);
  });

  it('may have ids that their responses lack', () => {
    expect(outline(recorded('results-then-words')).slice(2, 4)).toEqual([
      'assistant: call c1 query({"sql":"select 1"}), call c2 query({"sql":"select 2"})',
      'tool: result c1 ["two" other()], result c2 ["a long text in a nested object, which is most of it" image("AAAA")]',
    ]);
  });
});

describe('names spelled with underscores', () => {
  it('mean the same, and a part may be given without brackets', () => {
    const conversation = recorded('snake-case');
    expect(outline(conversation)).toEqual([
      'beside: tool zoom, tool undefined',
      'beside: "Answer in one word."',
      'user: "What is in this picture?", image("iVBORw0KGgo=")',
      'assistant: call #zoom zoom({})',
      'tool: result #zoom ["A cat." image("AAAA")]',
      'assistant: "Cat."',
      'user: document("https://example.com/a.pdf"), "And here?"',
    ]);
    expect([conversation.replies, conversation.maxOutputTokens]).toEqual([2, 64]);
  });
});

describe('tools that the provider ran itself, and a cache', () => {
  it('are opaque, and no tool is offered with a cache', () => {
    const conversation = recorded('provider-tools');
    expect(outline(conversation)[1]).toBe(
      'assistant: opaque executableCode, opaque codeExecutionResult, opaque toolCall, opaque toolResponse, "5117."',
    );
    const cached =
      '{"contents":[],"cached_content":"cachedContents/1","tools":[{"functionDeclarations":[{"name":"f"}]}]}';
    expect([read(cached).toolNames, read(cached.replace('cached_content', 'other')).toolNames]).toEqual([
      [],
      ['f'],
    ]);
  });

  it('nor with arguments that stream in pieces', () => {
    const body =
      '{"contents":[],"tools":{"functionDeclarations":[{"name":"f"}]},"toolConfig":{"functionCallingConfig":{"streamFunctionCallArguments":STREAMED}}}';
    expect(read(body.replace('STREAMED', 'true')).toolNames).toEqual([]);
    expect(read(body.replace('STREAMED', 'false')).toolNames).toEqual(['f']);
  });
});

describe('odd parts', () => {
  it.each([
    ['{"thoughtSignature":"s"}', 'signed reasoning '],
    ['{"thought":true}', 'reasoning '],
    ['{"text":"a","thought":true,"thought_signature":"s"}', 'signed reasoning "a"'],
    ['{"text":"a","thought":false,"inlineData":null}', '"a"'],
    ['{"text":5}', 'opaque text'],
    ['{}', 'opaque unknown'],
    ['{"sculpture":{}}', 'opaque sculpture'],
    ['{"functionCall":{"name":"f"},"function_call":{"name":"g"}}', 'call #g g()'],
    ['{"functionCall":{"name":"f"}}', 'call #f f()'],
    ['{"functionCall":{"name":"f","id":"","args":null}}', 'call #f f()'],
    ['{"inlineData":{"mimeType":"video/mp4","data":"AA"}}', 'other("AA")'],
    ['{"fileData":{"mimeType":"audio/wav"}}', 'audio()'],
    ['{"functionCall":{}}', undefined],
    ['{"functionCall":"f"}', undefined],
    ['{"functionCall":{"name":"f","args":"{}"}}', undefined],
    ['{"functionResponse":{"response":{}}}', undefined],
    ['"text"', undefined],
  ])('%s is read as %s', (json, line) => {
    if (line !== undefined) expect(outline(part(json))).toEqual([`assistant: ${line}`]);
    else expect(() => part(json)).toThrow(expect.objectContaining({ code: 'not-this-format' }));
  });
});

describe('the texts of a result', () => {
  it.each([
    ['{"output":"a"}', 'tool: result #f ["a"]'],
    ['{"result":"a","exit":0}', 'tool: result #f ["a"]'],
    ['{"error":"a"}', 'tool: result #f error ["a"]'],
    ['{"error":"","output":"a"}', 'tool: result #f ["" "a"]'],
    [
      '{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"isError":true}',
      'tool: result #f error ["a" "b"]',
    ],
    [
      '{"content":["some lines of text","and some more"]}',
      'tool: result #f ["some lines of text" "and some more"]',
    ],
    ['{"rows":[1,2,3]}', 'tool: result #f [other()]'],
    ['{"1":{"2":{"3":{"4":{"5":{"6":{"7":{"8":{"9":{"10":"a"}}}}}}}}}}', 'tool: result #f [other()]'],
    ['{"lists":[[1,2],[3,4]],"none":[]}', 'tool: result #f [other()]'],
    ['{"rows":[{"a":"b"}],"in":{"side":"c"}}', 'tool: result #f ["c" other()]'],
    ['{"content":[{"type":"resource"},{"type":"text","text":"a"}]}', 'tool: result #f ["a" other()]'],
    ['{}', 'tool: result #f []'],
    ['"a"', 'tool: result #f [other()]'],
    ['["a"]', 'tool: result #f [other()]'],
  ])('in %s', (json, line) => {
    expect(outline(response(json))).toEqual([line]);
  });
});

describe('what is refused', () => {
  it.each([
    '{"contents":{"parts":[{"text":"a"}]}}',
    '{"contents":"a"}',
    '{"contents":["a"]}',
    '{"contents":[{"role":"system","parts":[]}]}',
    '{"contents":[{"role":5,"parts":[]}]}',
    '{"contents":[{"parts":"a"}]}',
    '{"contents":[],"systemInstruction":5}',
    '{"contents":[],"tools":"f"}',
    '{"contents":[],"tools":["f"]}',
    '{"generateContentRequest":{"model":"models/m","contents":[]}}',
  ])('%s', (body) => {
    expect(() => read(body)).toThrow(expect.objectContaining({ code: 'not-this-format' }));
  });
});
