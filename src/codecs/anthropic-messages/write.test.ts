import { describe, expect, it } from 'vitest';
import type { Edit } from '../../conversation/edit.ts';
import { messagesFixture } from '../../../test/support/codec-suite/anthropic-messages/fixture.ts';
import { shown, view } from '../../../test/support/codec-suite/views.ts';
import { anthropicMessages } from './index.ts';

const encoder = new TextEncoder();
const written = (body: string, edits: readonly Edit[]) =>
  shown(anthropicMessages.write(view(anthropicMessages, body), edits));

describe('edits of Anthropic Messages', () => {
  it('change nothing but the text: cache marks, error flags and images stay where they are', () => {
    const body =
      '{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","is_error":true,"content":[{"type":"text","text":"long","cache_control":{"type":"ephemeral"}},{"type":"image","source":{"type":"url","url":"u"}},{"type":"text","text":"more"}],"cache_control":{"type":"ephemeral"}},{"type":"text","text":"go"}]}]}';
    const edit = (text: number): Edit => ({
      kind: 'replace-text',
      at: { message: 0, part: 0, text },
      stub: 'é"',
      memory: 'm',
    });
    expect(written(body, [edit(0)])).toBe(body.replace('"long"', '"é\\""'));
    expect(written(body, [edit(1)])).toBe(body.replace('"more"', '"é\\""'));
    const marks = (text: string) => text.split('cache_control').length - 1;
    expect(marks(written(body, [edit(0), edit(1)]))).toBe(2);
  });

  it('drop blocks with their comma', () => {
    const body =
      '{"messages":[{"role":"user","content":[ {"type":"text","text":"a"} , {"type":"text","text":"b"}\n]}]}';
    const drop = (part: number): Edit => ({ kind: 'drop-part', message: 0, part, memory: undefined });
    expect(written(body, [drop(0)])).toBe(
      '{"messages":[{"role":"user","content":[ {"type":"text","text":"b"}\n]}]}',
    );
    expect(written(body, [drop(1)])).toBe(
      '{"messages":[{"role":"user","content":[ {"type":"text","text":"a"}\n]}]}',
    );
    expect(written(body, [drop(0), drop(1)])).toBe('{"messages":[]}');
  });

  it('insert a message in front of another', () => {
    const body = '{"messages":[{"role":"user","content":"a"}, {"role":"user","content":"b"}]}';
    const insert = (before: number, text: string): Edit => ({
      kind: 'insert-message',
      before,
      role: 'user',
      text,
    });
    expect(written(body, [insert(1, 'x'), insert(0, 'y'), insert(1, 'z')])).toBe(
      '{"messages":[{"role":"user","content":"y"},{"role":"user","content":"a"},{"role":"user","content":"x"},{"role":"user","content":"z"}, {"role":"user","content":"b"}]}',
    );
  });

  it('add the recall tool after the last tool, whatever mark that has', () => {
    const body = messagesFixture.recorded['sdk-tool-loop']!;
    const recallTool = { name: 'read_memory', description: 'Reads.', parameters: { type: 'object' } };
    const result = shown(anthropicMessages.write(view(anthropicMessages, body), [], { recallTool }));
    const definition = '{"name":"read_memory","description":"Reads.","input_schema":{"type":"object"}}';
    expect(result).toBe(shown(body).replace('"ephemeral" } }\n  ]', `"ephemeral" } },${definition}\n  ]`));
  });
});

describe('a continuation of Anthropic Messages', () => {
  const body = encoder.encode('{"messages":[{"role":"user","content":"a"} ],"max_tokens":1}');
  const reply = (content: string) =>
    anthropicMessages.readResponse(
      encoder.encode(`{"content":${content},"stop_reason":"tool_use"}`),
      new Set(['read_memory']),
    );
  const recall = '{"type":"tool_use","id":"r","name":"read_memory","input":{"id":"m"}}';
  const answered =
    '{"role":"user","content":[{"type":"tool_result","tool_use_id":"r","content":"the original"}]}';

  it('sends the turn verbatim and one user message with the answers', () => {
    const content = `[{"type":"thinking","thinking":"","signature":"s"}, ${recall}]`;
    const asked = reply(content);
    const next = anthropicMessages.continueWith(body, asked, [
      { call: asked.recalls[0]!, text: 'the original' },
    ]);
    expect(shown(next)).toBe(
      `{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":${content}},${answered} ],"max_tokens":1}`,
    );
  });

  it('drops empty texts, which no request may hold', () => {
    const asked = reply(`[{"type":"text","text":""},${recall},{"type":"text","text":" "}]`);
    const next = anthropicMessages.continueWith(body, asked, [
      { call: asked.recalls[0]!, text: 'the original' },
    ]);
    expect(shown(next)).toContain(
      `{"role":"assistant","content":[${recall},{"type":"text","text":" "}]},${answered}`,
    );
  });
});
