import { describe, expect, it } from 'vitest';
import { anthropicMessages } from '../codecs/anthropic-messages/index.ts';
import type { Codec } from '../codecs/codec.ts';
import { openaiResponses } from '../codecs/openai-responses/index.ts';
import type { Edit } from '../conversation/edit.ts';
import { jsonBytes } from '../conversation/json-scan.ts';
import { chatBody, freshReading, readChat, type Step } from '../../test/support/chat-conversation.ts';
import { foldView, strategySuite, written } from '../../test/support/strategy-suite.ts';
import { dropRecalls } from './drop-messages.ts';
import type { FoldView } from './strategy.ts';

// The conversations of the suite contain calls of a tool with this name.
strategySuite({
  ...dropRecalls(),
  propose: (view) => dropRecalls().propose({ ...view, recallTool: 'run' }),
});

const recall = (result: string) => ({ name: 'read_memory', input: '{"id":"mem_a"}', result });
const read = { name: 'read_file', result: 'ok' };

/** Writes the edits: `4` for a message, `4.1` for a part of one. */
const places = (edits: readonly Edit[]) =>
  edits.map((edit) =>
    edit.kind === 'drop-part'
      ? `${edit.message}.${edit.part}`
      : 'message' in edit
        ? `${edit.message}`
        : edit.kind,
  );

const proposed = (steps: readonly Step[], change: Partial<FoldView> = {}) =>
  places(dropRecalls().propose(foldView(readChat(chatBody(steps)), change)));

describe('drop-recalls', () => {
  const three: readonly Step[] = [
    { user: 'Go' },
    { calls: [recall('x'.repeat(4_000))] },
    { calls: [read] },
    { calls: [recall('y'.repeat(4_000))] },
    { calls: [recall('z'.repeat(4_000))] },
    { assistant: 'Done.' },
  ];

  it('drops the oldest first, call and answer together, and stops when enough is saved', () => {
    expect(proposed(three, { excess: { unit: 'tokens', amount: 900 } })).toEqual(['1', '2']);
    expect(proposed(three, { excess: { unit: 'tokens', amount: 1_100 } })).toEqual(['1', '2', '5', '6']);
    expect(proposed(three)).toEqual(['1', '2', '5', '6', '7', '8']);
  });

  it('counts messages if there are too many of them', () => {
    expect(proposed(three, { excess: { unit: 'messages', amount: 2 } })).toEqual(['1', '2']);
    expect(proposed(three, { excess: { unit: 'messages', amount: 3 } })).toEqual(['1', '2', '5', '6']);
  });

  it('drops several recalls of one message with all their answers', () => {
    expect(proposed([{ calls: [recall('a'), recall('b')] }, { user: 'And now?' }])).toEqual(['0', '1', '2']);
  });

  it('drops only calls and answers if the message has other text or calls', () => {
    const conversation = readChat(
      chatBody([{ calls: [recall('a'), read], text: 'Both.' }, { user: 'And now?' }]),
    );
    const edits = dropRecalls().propose(foldView(conversation));
    expect(places(edits)).toEqual(['0.1', '1']);
    const { body } = written(conversation, edits);
    expect((JSON.parse(new TextDecoder().decode(body)) as { messages: unknown }).messages).toEqual([
      {
        role: 'assistant',
        content: 'Both.',
        tool_calls: [{ id: 'call_2', type: 'function', function: { name: 'read_file', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: 'call_2', content: 'ok' },
      { role: 'user', content: 'And now?' },
    ]);
  });

  it.each<[string, readonly Step[], Partial<FoldView>]>([
    ['a call that is not answered yet', [{ calls: [{ name: 'read_memory' }] }], {}],
    ['calls of other tools', [{ calls: [read] }], {}],
    ['recalls where the request cannot offer them', [{ calls: [recall('a')] }], { recallTool: undefined }],
    [
      'a round of which something is protected',
      [{ calls: [recall('a')] }],
      { protects: { message: (index) => index === 1, part: () => false, recalled: () => false } },
    ],
    [
      'a round of which something is pinned',
      [{ calls: [recall('a'), recall('b')] }],
      { protects: { message: () => false, part: (message) => message === 2, recalled: () => false } },
    ],
    [
      'a round of which something is gone',
      [{ calls: [recall('a')] }],
      { edits: [{ kind: 'drop-message', message: 1, memory: 'mem_1' }] },
    ],
    [
      'what the format lets nobody drop',
      [{ calls: [recall('a')] }],
      { mayEdit: (edit) => edit.kind !== 'drop-message' },
    ],
  ])('leaves %s', (_, steps, change) => {
    expect(proposed(steps, change)).toEqual([]);
  });

  it('drops recalled content although nothing else may compress it', () => {
    const protects = { message: () => false, part: () => false, recalled: () => true };
    expect(proposed([{ calls: [recall('a')] }], { protects })).toEqual(['0', '1']);
  });
});

/** Returns the proposed edits, and the resulting body. */
function inFormat(codec: Codec, body: object, amount = 1_000_000) {
  const conversation = codec.read(jsonBytes(body), freshReading());
  const mayEdit = (edit: Edit) => codec.rules.mayEdit(conversation, edit);
  const edits = dropRecalls().propose(
    foldView(conversation, { mayEdit, excess: { unit: 'tokens', amount } }),
  );
  const completed = codec.rules.complete(conversation, edits);
  return completed.status === 'ok' ? places(completed.edits) : completed.reason;
}

describe('drop-recalls with signed reasoning before calls', () => {
  const thinking = { type: 'thinking', thinking: 'Hm.', signature: 'seal' };
  const use = (id: string, name: string) => ({ type: 'tool_use', id, name, input: {} });
  const result = (id: string) => ({ type: 'tool_result', tool_use_id: id, content: 'x' });
  const turns = (content: readonly object[], ...ids: readonly string[]) => ({
    model: 'claude-sonnet-5',
    messages: [
      { role: 'user', content: 'Go' },
      { role: 'assistant', content },
      { role: 'user', content: ids.map(result) },
      { role: 'assistant', content: 'Done.' },
      { role: 'user', content: 'And now?' },
    ],
  });

  it('drops it with the recalls if it led to nothing else', () => {
    const content = [thinking, use('a', 'read_memory'), use('b', 'read_memory')];
    expect(inFormat(anthropicMessages, turns(content, 'a', 'b'))).toEqual(['1', '2']);
  });

  it.each([
    ['a call of the client', [thinking, use('a', 'read_memory'), use('b', 'read_file')], ['a', 'b']],
    ['words', [thinking, { type: 'text', text: 'I look.' }, use('a', 'read_memory')], ['a']],
  ])('keeps recalls with %s of the same reasoning', (_, content, ids) => {
    expect(inFormat(anthropicMessages, turns(content, ...ids))).toEqual([]);
  });
});

describe('drop-recalls if each call is a message of its own', () => {
  const reasoning = (id: string) => ({ type: 'reasoning', id, summary: [], encrypted_content: 'seal' });
  const words = { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'I look.' }] };
  const call = (id: string, name = 'read_memory') => ({
    type: 'function_call',
    call_id: id,
    name,
    arguments: '{}',
  });
  const output = (id: string) => ({ type: 'function_call_output', call_id: id, output: 'x'.repeat(4_000) });
  const user = { role: 'user', content: 'Go' };
  const input = (...items: readonly object[]) => ({ input: [user, ...items, user] });

  it('drops all recalls of one reasoning together with it', () => {
    const body = input(reasoning('rs_1'), call('a'), call('b'), output('a'), output('b'));
    expect(inFormat(openaiResponses, body, 100)).toEqual(['1', '2', '3', '4', '5']);
  });

  it('drops only calls and answers without reasoning', () => {
    const body = input(words, call('a'), call('b', 'read_file'), output('a'), output('b'));
    expect(inFormat(openaiResponses, body)).toEqual(['2', '4']);
  });

  it('keeps recalls with text or calls of the same reasoning, and drops later ones', () => {
    const body = input(
      reasoning('rs_1'),
      words,
      call('a'),
      output('a'),
      reasoning('rs_2'),
      call('b'),
      call('c', 'read_file'),
      output('b'),
      output('c'),
      reasoning('rs_3'),
      call('d'),
      output('d'),
    );
    expect(inFormat(openaiResponses, body)).toEqual(['10', '11', '12']);
  });
});
