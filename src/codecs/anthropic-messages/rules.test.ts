import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Edit } from '../../conversation/edit.ts';
import { messagesFixture } from '../../../test/support/codec-suite/anthropic-messages/fixture.ts';
import { editSeeds, editsFrom, requests } from '../../../test/support/codec-suite/arbitrary.ts';
import { shown, view } from '../../../test/support/codec-suite/views.ts';
import { drop, dropPart, insert, replace } from '../../../test/support/edits.ts';
import { anthropicMessages } from './index.ts';

const { rules } = anthropicMessages;
const read = (body: unknown) => view(anthropicMessages, JSON.stringify(body));

const user = (text: string) => ({ role: 'user', content: text });
const thought = (thinking: string) => ({ type: 'thinking', thinking, signature: 's' });
const said = (text: string) => ({ type: 'text', text });
const call = (id: string) => ({ type: 'tool_use', id, name: 'run', input: {} });
const assistant = (...content: readonly unknown[]) => ({ role: 'assistant', content });
const results = (...ids: readonly string[]) => ({
  role: 'user',
  content: ids.map((id) => ({ type: 'tool_result', tool_use_id: id, content: 'r' })),
});

/** A finished turn and a running one; every assistant message holds thinking. */
function conversation(model: string) {
  return read({
    model,
    max_tokens: 1,
    messages: [
      user('one'),
      assistant(thought('t1'), said('a1'), call('c1')),
      results('c1'),
      assistant(thought('t2'), said('a2')),
      user('two'),
      { role: 'system', content: 'Mind the time.' },
      assistant(thought('t3'), call('c2')),
      results('c2'),
      assistant(thought('t4'), call('c3'), call('c4')),
      results('c3', 'c4'),
    ],
  });
}

describe('what may be edited', () => {
  const now = conversation('claude-opus-4-6');
  const may = (edit: Edit) => rules.mayEdit(now, edit);

  it('includes texts and results, but not the newest assistant message', () => {
    expect([replace(0), replace(1, 1), replace(2), replace(4), replace(9, 1)].map(may)).toEqual(
      Array(5).fill(true),
    );
    expect([drop(1), drop(2), dropPart(1, 2), dropPart(2, 0)].map(may)).toEqual(Array(4).fill(true));
    expect([drop(8), dropPart(8, 1)].map(may)).toEqual([false, false]);
  });

  it('excludes system messages and the text of signed thinking', () => {
    expect([replace(5), drop(5), dropPart(5, 0), replace(1, 0)].map(may)).toEqual(Array(4).fill(false));
  });

  it('includes whole thinking of finished turns, but none of the running turn', () => {
    expect([dropPart(1, 0), dropPart(3, 0)].map(may)).toEqual([true, true]);
    expect([dropPart(6, 0), dropPart(8, 0)].map(may)).toEqual([false, false]);
  });

  it('counts a user message with results as the same turn, whatever text it holds', () => {
    const mixed = read({
      model: 'm',
      messages: [
        user('one'),
        assistant(thought('t1'), call('c1')),
        results('c1'),
        user('<reminder>'),
        assistant(thought('t2'), said('a')),
        user('two'),
      ],
    });
    expect(rules.mayEdit(mixed, dropPart(1, 0))).toBe(true);
    const running = { ...mixed, messages: mixed.messages.slice(0, 4) };
    expect(rules.mayEdit(running, dropPart(1, 0))).toBe(false);
  });

  it('excludes images, documents, unknown blocks, and messages with a compaction or before it', () => {
    const images = view(anthropicMessages, messagesFixture.recorded['images-and-documents']!);
    expect([0, 1, 2, 3, 4].map((part) => rules.mayEdit(images, dropPart(0, part)))).toEqual(
      Array(5).fill(false),
    );
    // It holds a reference to a tool, whose definition the model gets only from there.
    expect(rules.mayEdit(images, replace(2))).toBe(false);
    const compacted = view(anthropicMessages, messagesFixture.recorded['compacted']!);
    expect([drop(0), dropPart(0, 0), insert(0)].map((edit) => rules.mayEdit(compacted, edit))).toEqual([
      false,
      false,
      false,
    ]);
    expect([insert(1), drop(1)].map((edit) => rules.mayEdit(compacted, edit))).toEqual([true, true]);
    const server = view(anthropicMessages, messagesFixture.recorded['server-tools']!);
    expect([1, 2, 3, 4, 5].map((part) => rules.mayEdit(server, dropPart(1, part)))).toEqual(
      Array(5).fill(false),
    );
  });
});

describe('edits that must go together', () => {
  const bound = conversation('claude-sonnet-5-5');

  it('add nothing when thinking is not bound to its prefix', () => {
    const edits = [replace(0), drop(2)];
    expect(rules.complete(conversation('claude-opus-4-6'), edits)).toEqual({ status: 'ok', edits });
    expect(rules.complete(bound, [])).toEqual({ status: 'ok', edits: [] });
  });

  it.each([
    'claude-fable-5-1',
    'claude-mythos-5-2',
    'claude-opus-5-5-20261001',
    'eu.anthropic.claude-haiku-5-5-v1:0',
    'anthropic/claude-sonnet-5.5',
  ])('are refused for %s while the running turn holds thinking', (model) => {
    const { status } = rules.complete(conversation(model), [replace(2)]);
    expect(status).toBe('refused');
  });

  it('add nothing for an edit after all thinking', () => {
    const edits = [replace(9, 0), replace(9, 1)];
    expect(rules.complete(bound, edits)).toEqual({ status: 'ok', edits });
  });

  it('remove all thinking when a new turn has begun without any', () => {
    const fresh = { ...bound, messages: bound.messages.slice(0, 6) };
    expect(rules.complete(fresh, [replace(2)])).toEqual({
      status: 'ok',
      edits: [replace(2), dropPart(1, 0), dropPart(3, 0)],
    });
    // An edit after the last thinking keeps it; one in the same message but ahead of it does not.
    expect(rules.complete(fresh, [replace(3, 1), insert(5)])).toEqual({
      status: 'ok',
      edits: [replace(3, 1), insert(5)],
    });
    expect(rules.complete(fresh, [insert(3)])).toEqual({
      status: 'ok',
      edits: [insert(3), dropPart(1, 0), dropPart(3, 0)],
    });
  });

  it('remove all thinking, even of the running turn, when the request would not fit otherwise', () => {
    const thinking = bound.messages.flatMap(({ index, parts }) =>
      parts.flatMap(({ type }, part) => (type === 'reasoning' ? [dropPart(index, part)] : [])),
    );
    expect(thinking.length).toBeGreaterThan(2);
    expect(rules.complete(bound, [replace(2)], true)).toEqual({
      status: 'ok',
      edits: [replace(2), ...thinking],
    });
  });

  it('do not repeat thinking that is removed anyway', () => {
    const fresh = { ...bound, messages: bound.messages.slice(0, 6) };
    const edits = [drop(1), drop(2), dropPart(3, 0)];
    expect(rules.complete(fresh, edits)).toEqual({ status: 'ok', edits });
  });

  it('leave a valid body without thinking after a change, and add only allowed edits', () => {
    const bodies = requests().map((request) => {
      const body = JSON.parse(shown(messagesFixture.body(request))) as object;
      return { ...body, model: 'claude-opus-5-5' };
    });
    fc.assert(
      fc.property(bodies, editSeeds(['replace-text', 'drop-message', 'insert-message']), (body, seeds) => {
        const before = read(body);
        const edits = editsFrom(before, seeds).filter((edit) => rules.mayEdit(before, edit));
        const completed = rules.complete(before, edits);
        if (completed.status === 'refused') return;
        expect(completed.edits.slice(0, edits.length)).toEqual(edits);
        expect(completed.edits.slice(edits.length).every((edit) => rules.mayEdit(before, edit))).toBe(true);
        const after = anthropicMessages.write(before, completed.edits);
        // All bytes up to the last remaining thinking are unchanged.
        const { body: bytes, messages } = view(anthropicMessages, after);
        const last = messages.findLast((message) => message.parts.some((part) => part.type === 'reasoning'));
        if (last)
          expect(shown(bytes).slice(0, last.span.start)).toBe(shown(before.body).slice(0, last.span.start));
      }),
      { numRuns: 500 },
    );
  });
});

describe('broken rules', () => {
  it('are found by message and id, without content', () => {
    const problems = rules.problems(
      read({ model: 'm', messages: [user('secret'), assistant(call('c1')), results('c2'), user('')] }),
    );
    expect(problems).toEqual([
      { rule: 'text-not-empty', message: 3, detail: 'part 0 is a text without a character' },
      {
        rule: 'calls-answered-next',
        message: 1,
        detail: 'tool_use c1 has no tool_result in the next message',
      },
      {
        rule: 'results-answer-calls',
        message: 2,
        detail: 'tool_result c2 answers no tool_use of the message before',
      },
    ]);
  });

  it('do not include a last assistant message that begins the reply', () => {
    expect(rules.problems(read({ model: 'm', messages: [user('a'), assistant()] }))).toEqual([]);
    expect(rules.problems(read({ model: 'm', messages: [user('a'), assistant(said(''))] }))).toEqual([]);
  });
});
