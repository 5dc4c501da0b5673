import { describe, expect, it } from 'vitest';
import type { Edit } from '../../conversation/edit.ts';
import { chatFixture } from '../../../test/support/codec-suite/openai-chat/fixture.ts';
import { shown, view } from '../../../test/support/codec-suite/views.ts';
import { drop, dropPart, replace } from '../../../test/support/edits.ts';
import { openaiChat } from './index.ts';

const { rules } = openaiChat;
const recorded = (name: string) => view(openaiChat, chatFixture.recorded[name]!);

describe('what may be edited', () => {
  it('includes texts and results, except in system and developer messages', () => {
    const conversation = recorded('sdk-tool-loop');
    const may = (edit: Edit) => rules.mayEdit(conversation, edit);
    expect([replace(1), replace(3, 0, 1), replace(4), replace(5)].map(may)).toEqual(Array(4).fill(true));
    expect([drop(1), drop(2), drop(3), dropPart(2, 0), dropPart(3, 0)].map(may)).toEqual(Array(5).fill(true));
    expect([replace(0), drop(0), dropPart(0, 0)].map(may)).toEqual([false, false, false]);
    expect(may({ kind: 'insert-message', before: 0, role: 'user', text: 'a' })).toBe(true);
  });

  it('excludes removing texts: content may be missing only with calls', () => {
    expect(rules.mayEdit(recorded('coding-agent'), dropPart(1, 0))).toBe(false);
  });

  it('excludes reasoning, images, refusals and sounds, and includes calls and results of the legacy function form', () => {
    const thinking = recorded('reasoning-content');
    expect([replace(2, 0), dropPart(2, 0)].map((edit) => rules.mayEdit(thinking, edit))).toEqual([
      false,
      false,
    ]);
    expect(rules.mayEdit(thinking, dropPart(2, 1))).toBe(true);
    const images = recorded('images-audio-files');
    expect(
      [dropPart(0, 1), dropPart(0, 6), drop(0), drop(1)].map((edit) => rules.mayEdit(images, edit)),
    ).toEqual(Array(4).fill(false));
    const functions = recorded('functions-before-tools');
    expect(
      [drop(2), drop(3), dropPart(2, 0), dropPart(3, 0)].map((edit) => rules.mayEdit(functions, edit)),
    ).toEqual(Array(4).fill(true));
    expect(rules.mayEdit(functions, replace(3))).toBe(true);
    expect(rules.mayEdit(recorded('sdk-tool-loop'), drop(7))).toBe(false);
  });

  it('includes the arguments of functions, not the free text of a custom tool', () => {
    const calls = [
      { id: 'c1', type: 'function', function: { name: 'run', arguments: '{"a":1}' } },
      { id: 'c2', type: 'custom', custom: { name: 'patch', input: '{"a":1}' } },
    ];
    const conversation = view(
      openaiChat,
      JSON.stringify({ messages: [{ role: 'assistant', content: 'a', tool_calls: calls }] }),
    );
    const replaceInput = (part: number): Edit => ({
      kind: 'replace-input',
      message: 0,
      part,
      input: '{}',
      memory: 'm',
    });
    const may = [0, 1, 2].map((part) => rules.mayEdit(conversation, replaceInput(part)));
    expect(may).toEqual([false, true, false]);
  });

  it('needs no further edits', () => {
    const edits = [drop(2), drop(3), drop(4)];
    expect(rules.complete(recorded('sdk-tool-loop'), edits)).toEqual({ status: 'ok', edits });
  });
});

describe('dropping calls', () => {
  const write = (name: string, edits: readonly Edit[]) => {
    const conversation = recorded(name);
    return shown(openaiChat.write(conversation, edits));
  };
  const assistantOf = (body: string, index: number) =>
    (JSON.parse(body) as { messages: object[] }).messages[index];

  it('removes them from the list, and the list itself with the last of them', () => {
    expect(assistantOf(write('sdk-tool-loop', [dropPart(2, 0), drop(4)]), 2)).toMatchObject({
      content: '',
      tool_calls: [{ id: 'call_2' }],
    });
    const spoken = assistantOf(write('coding-agent', [dropPart(5, 1), drop(6)]), 5);
    expect(spoken).toEqual({ role: 'assistant', content: 'Two floats are compared exactly. I will round.' });
  });

  it('removes the message too when it held nothing else', () => {
    const left = JSON.parse(write('sdk-tool-loop', [dropPart(2, 0), dropPart(2, 1), drop(3), drop(4)])) as {
      messages: object[];
    };
    expect(left.messages).toHaveLength(7);
    expect(rules.problems(view(openaiChat, JSON.stringify(left)))).toEqual([]);
  });

  it('breaks a rule when only reasoning is left', () => {
    const body = write('reasoning-content', [dropPart(2, 1), drop(3)]);
    expect(rules.problems(view(openaiChat, body))).toEqual([
      {
        rule: 'content-not-empty',
        message: 2,
        detail: 'the assistant message has neither content nor tool calls',
      },
    ]);
  });
});
