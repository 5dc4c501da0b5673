import { describe, expect, it } from 'vitest';
import { messagesFixture } from '../../../test/support/codec-suite/anthropic-messages/fixture.ts';
import { outline } from '../../../test/support/codec-suite/outline.ts';
import { view } from '../../../test/support/codec-suite/views.ts';
import { anthropicMessages } from './index.ts';

const read = (body: Uint8Array | string) => view(anthropicMessages, body);
const recorded = (name: string) => read(messagesFixture.recorded[name]!);

/** One user message with this content. */
function user(content: string): string {
  return `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":${content}}]}`;
}

describe('a coding agent over Anthropic Messages', () => {
  it('is read with system messages, signed thinking, errors, and results next to text', () => {
    const conversation = recorded('coding-agent');
    expect(outline(conversation)).toEqual([
      'beside: tool Read, tool Bash, tool Edit',
      'beside: "You are a coding agent in a terminal.", "Rules of this repository: tabs, no semicolons.", "Environment: /srv/shop"',
      'user: "<reminder>The file list may be old.</reminder>", "Why does the basket test fail?"',
      'system: "Tool search is available."',
      'assistant: signed reasoning "", "I will look at it.", call toolu_01A Read({"file_path":"/srv/shop/basket.test.ts"}), call toolu_01B Bash({"command":"npm test -- basket","timeout":120000})',
      'user: result toolu_01A fine ["     1→import { total } from \'./basket\'\\n     2→test(\'adds up\', () => {"], result toolu_01B error ["Exit code 1\\nExpected: 0.3\\nReceived: 0.30000000000000004"], "<reminder>Mind the tabs.</reminder>"',
      'assistant: signed reasoning "Floats.", call toolu_01C Edit({"file_path":"/srv/shop/basket.ts","old_string":"return sum","new_string":"return Math.round(sum * 100) / 100","replace_all":false})',
      'tool: result toolu_01C fine ["Edited /srv/shop/basket.ts"]',
    ]);
    const { model, streaming, replies, maxOutputTokens, toolNames } = conversation;
    expect({ model, streaming, replies, maxOutputTokens, toolNames }).toEqual({
      model: 'claude-sonnet-5-5',
      streaming: true,
      replies: 1,
      maxOutputTokens: 32_000,
      toolNames: ['Read', 'Bash', 'Edit'],
    });
  });
});

describe('images, documents and results with blocks', () => {
  it('are read as media, separate from the texts', () => {
    expect(outline(recorded('images-and-documents'))).toEqual([
      'beside: tool shot',
      'user: image("iVBORw0KGgo="), image("https://example.com/cat.png"), document("Chapter one."), document(), opaque search_result, "What is this?"',
      'assistant: signed reasoning , signed reasoning "A cat, perhaps.", opaque text, call toolu_1 shot({}), call toolu_2 shot({ "n": 2 }), call toolu_3 shot({ "n": 3 })',
      'tool: result toolu_1 fine ["Before." "After." image("AAAA") other()], result toolu_2 fine [], result toolu_3 error []',
    ]);
  });

  it('read null as a result without content', () => {
    const body = user('[{"type":"tool_result","tool_use_id":"a","content":null}]');
    expect(outline(read(body))).toEqual(['tool: result a fine []']);
  });
});

describe('tools that the server ran itself', () => {
  it('are opaque, and so are cited texts', () => {
    expect(outline(recorded('server-tools'))).toEqual([
      'beside: tool web_search',
      'user: "Who won?"',
      'assistant: "I will search.", opaque server_tool_use, opaque web_search_tool_result, opaque text, opaque mcp_tool_use, opaque mcp_tool_result',
      'user: opaque container_upload, "By how much?"',
    ]);
  });

  it('may include a compaction of the beginning', () => {
    expect(outline(recorded('compacted'))).toEqual([
      'beside: ',
      'assistant: opaque compaction',
      'user: "Go on."',
      'assistant: signed reasoning "Where was I?", "At the basket."',
      'user: "Yes."',
    ]);
  });
});

describe('odd blocks', () => {
  it.each([
    ['"citations":null', '"a"'],
    ['"citations":[]', '"a"'],
    ['"citations":[{"cited_text":"a"}]', 'opaque text'],
    ['"citations":{}', 'opaque text'],
  ])('a text with %s is read as %s', (citations, part) => {
    expect(outline(read(user(`[{"type":"text","text":"a",${citations}}]`)))).toEqual([`user: ${part}`]);
  });

  it.each([
    ['{"type":"text","text":5}', 'opaque text'],
    ['{"type":"text"}', 'opaque text'],
    ['{"type":5}', 'opaque unknown'],
    ['{}', 'opaque unknown'],
    ['{"type":"thinking","thinking":null,"signature":"s"}', 'signed reasoning '],
    ['{"type":"image"}', 'image()'],
    ['{"type":"image","source":5}', 'image()'],
    [
      '{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":5}]}',
      'result a fine [other()]',
    ],
    ['{"type":"tool_result","tool_use_id":"a","is_error":null}', 'result a fine []'],
  ])('%s is read as opaque: %s', (block, part) => {
    expect(outline(read(user(`[${block},{"type":"text","text":"b"}]`)))).toEqual([`user: ${part}, "b"`]);
  });

  it.each([
    '[5]',
    '["a"]',
    '[{"type":"tool_use","id":"a","name":"b"}]',
    '[{"type":"tool_use","id":5,"name":"b","input":{}}]',
    '[{"type":"tool_result"}]',
    '[{"type":"tool_result","tool_use_id":"a","content":5}]',
    'null',
    '5',
    '{}',
  ])('content %s is refused', (content) => {
    const refused = expect.objectContaining({ code: 'not-this-format' });
    expect(() => read(user(content))).toThrow(refused);
  });
});

describe('fields other than the messages', () => {
  it('may be null, and system may be a string', () => {
    const body = '{"tools":null,"system":null,"stream":null,"model":null,"max_tokens":null,"messages":[]}';
    const { model, streaming, maxOutputTokens, preamble } = read(body);
    expect([model, streaming, maxOutputTokens, preamble]).toEqual([undefined, false, undefined, []]);
    expect(outline(read('{"system":"Be brief.","messages":[]}'))).toEqual(['beside: "Be brief."']);
  });
});
