import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Conversation } from '../../conversation/conversation.ts';
import type { Edit } from '../../conversation/edit.ts';
import { dropFailedCalls, dropOldest } from '../../strategies/drop-messages.ts';
import type { Strategy } from '../../strategies/strategy.ts';
import { requests } from '../../../test/support/codec-suite/arbitrary.ts';
import { bytes } from '../../../test/support/codec-suite/openai-responses/bodies.ts';
import { responsesFixture } from '../../../test/support/codec-suite/openai-responses/fixture.ts';
import { outline } from '../../../test/support/codec-suite/outline.ts';
import { view } from '../../../test/support/codec-suite/views.ts';
import { drop, dropPart, insert, replace } from '../../../test/support/edits.ts';
import { foldView } from '../../../test/support/strategy-suite.ts';
import { openaiResponses } from './index.ts';

const { rules, write } = openaiResponses;
const recorded = (name: string) => view(openaiResponses, responsesFixture.recorded[name]!);
const conversationOf = (...input: readonly unknown[]) => view(openaiResponses, bytes({ model: 'm', input }));

/** Returns the messages for which the edit is allowed. */
const allowed = (conversation: Conversation, edit: (message: number) => Edit) =>
  conversation.messages.map(({ index }) => index).filter((index) => rules.mayEdit(conversation, edit(index)));
const brokenBy = (conversation: Conversation, edits: readonly Edit[]) =>
  rules.problems(view(openaiResponses, write(conversation, edits))).map(({ rule }) => rule);

const user = { role: 'user', content: 'u' };
const said = { type: 'message', role: 'assistant', content: 'a' };
const thought = { type: 'reasoning', id: 'rs', summary: [], encrypted_content: 'x' };
const call = (id: string, name = 'run') => ({ type: 'function_call', call_id: id, name, arguments: '{}' });
const output = (id: string, text = 'r') => ({ type: 'function_call_output', call_id: id, output: text });
const compaction = { type: 'compaction', encrypted_content: 'x' };
const reference = { type: 'item_reference', id: 'fc_1' };

describe('what may be edited', () => {
  const conversation = recorded('sdk-tool-loop');
  //  0 user, 1 reasoning, 2 + 3 calls, 4 + 5 outputs, 6 answer, 7 user, 8 refusal, 9 user
  it('includes texts and outputs, never encrypted reasoning, calls or refusals', () => {
    expect(allowed(conversation, (message) => replace(message))).toEqual([0, 4, 5, 6, 7, 9]);
    expect(rules.mayEdit(conversation, replace(5, 0, 1))).toBe(true);
    expect(rules.mayEdit(conversation, replace(5, 0, 2))).toBe(false);
  });

  it('includes the arguments of functions, not those of custom tools, shells or programs', () => {
    const calls = conversationOf(
      user,
      call('c1'),
      { type: 'custom_tool_call', call_id: 'c2', name: 'patch', input: '{}' },
      { type: 'local_shell_call', call_id: 'c3', action: { type: 'exec', command: ['ls'] } },
      { ...call('c4'), caller: { type: 'program', caller_id: 'p' } },
    );
    const replaceInput = (message: number): Edit => ({
      kind: 'replace-input',
      message,
      part: 0,
      input: '{}',
      memory: 'm',
    });
    expect(allowed(calls, replaceInput)).toEqual([1]);
  });

  it('may be removed as a whole unless it is opaque', () => {
    expect(allowed(conversation, drop)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 9]);
  });

  it('may be removed alone only if no reasoning loses one of several followers', () => {
    expect(allowed(conversation, (message) => dropPart(message))).toEqual([4, 5]);
    const single = conversationOf(user, thought, call('1'), output('1'), call('2'), output('2'));
    expect(allowed(single, (message) => dropPart(message))).toEqual([2, 3, 4, 5]);
  });

  it('allows nothing between reasoning, what it led to, and the answers', () => {
    expect(allowed(conversation, insert)).toEqual([0, 1, 6, 7, 8, 9]);
  });

  it('excludes system messages, tools and unknown items', () => {
    const items = recorded('tools-in-items');
    expect(allowed(items, (message) => replace(message))).toEqual([2, 5, 7, 8]);
    expect(allowed(items, drop)).toEqual([2, 3, 4, 5, 7, 8]);
  });

  it('excludes calls that a program of the model waits for, and outputs whose call we do not see', () => {
    const program = recorded('server-tools');
    // A call that the provider ran goes with the reasoning that led to it.
    expect(allowed(program, drop)).toEqual([0, 2, 3, 4, 8, 9, 18]);
    expect(allowed(program, (message) => replace(message))).toEqual([0, 15, 18]);
    expect(allowed(recorded('references'), drop)).toEqual([1, 6]);
    expect(allowed(recorded('references'), (message) => replace(message))).toEqual([1, 4, 6]);
  });

  it('includes everything before the newest compaction except unknown items', () => {
    const compacted = conversationOf(
      user,
      compaction,
      reference,
      call('1'),
      output('1'),
      compaction,
      user,
      compaction,
    );
    expect(allowed(compacted, drop)).toEqual([0, 1, 3, 4, 5, 6]);
  });

  it('excludes everything in a history that the provider keeps', () => {
    for (const field of [
      { previous_response_id: 'resp_1' },
      { conversation: 'conv_1' },
      { conversation: { id: 'c' } },
    ]) {
      const continued = view(openaiResponses, bytes({ ...field, input: [output('1', 'long'), user] }));
      for (const edit of [drop, dropPart, replace, insert])
        expect(allowed(continued, (at) => edit(at))).toEqual([]);
      expect(rules.problems(continued)).toEqual([]);
      expect(rules.complete(continued, [replace(0)])).toEqual({
        status: 'refused',
        reason: 'The provider keeps the history of this request.',
      });
      expect(rules.complete(continued, [])).toEqual({ status: 'ok', edits: [] });
    }
  });

  it('includes only replacement when the input is one text', () => {
    const text = view(openaiResponses, '{"input":"a"}');
    expect([drop(0), dropPart(0), insert(0), replace(0)].map((edit) => rules.mayEdit(text, edit))).toEqual([
      false,
      false,
      false,
      true,
    ]);
  });
});

describe('edits that must go together', () => {
  const conversation = conversationOf(
    user,
    thought,
    call('1'),
    output('1'),
    user,
    thought,
    said,
    call('2'),
    output('2'),
  );

  it('include reasoning with its only follower', () => {
    const edits = [dropPart(2), dropPart(3)];
    const completed = rules.complete(conversation, edits);
    expect(completed).toEqual({
      status: 'ok',
      edits: [...edits, { kind: 'drop-message', message: 1, memory: undefined }],
    });
    expect(brokenBy(conversation, edits)).toEqual(['reasoning-is-followed']);
    expect(completed.status === 'ok' && brokenBy(conversation, completed.edits)).toEqual([]);
  });

  it('include all of a group or nothing', () => {
    const reason = 'Reasoning and the items after it go together or not at all.';
    expect(rules.complete(conversation, [drop(5)])).toEqual({ status: 'refused', reason });
    expect(rules.complete(conversation, [drop(6)])).toEqual({ status: 'refused', reason });
    expect(rules.complete(conversation, [drop(7), drop(8)])).toEqual({ status: 'refused', reason });
    const whole = [drop(5), drop(6), drop(7), drop(8)];
    expect(rules.complete(conversation, whole)).toEqual({ status: 'ok', edits: whole });
  });

  it('ignore what the client sent broken', () => {
    const loose = conversationOf(user, thought, user, said);
    expect(rules.complete(loose, [drop(0)])).toEqual({ status: 'ok', edits: [drop(0)] });
    expect(rules.complete(loose, [drop(1)])).toEqual({ status: 'ok', edits: [drop(1)] });
  });

  it('move messages inserted before a compaction after it', () => {
    const compacted = conversationOf(user, said, compaction, user, said);
    expect(rules.complete(compacted, [insert(0), drop(0), drop(1)])).toEqual({
      status: 'ok',
      edits: [insert(3), drop(0), drop(1)],
    });
    expect(rules.complete(compacted, [insert(4)])).toEqual({ status: 'ok', edits: [insert(4)] });
    expect(rules.complete(conversationOf(user, said, compaction), [insert(0), drop(0)])).toEqual({
      status: 'refused',
      reason: 'Nothing may be added before the compaction that ends this request.',
    });
  });
});

describe('rules that hold', () => {
  it.each([
    ['outputs in any order, after other words', [call('1'), call('2'), said, output('2'), user, output('1')]],
    ['an id that repeats once it is answered', [call('1'), output('1'), call('1'), output('1')]],
    ['outputs of calls that stand as references', [reference, output('1')]],
    [
      'approvals of requests that stand as references',
      [reference, { type: 'mcp_approval_response', approval_request_id: 'a' }],
    ],
    [
      'reasoning before a call of the provider',
      [thought, { type: 'web_search_call', id: 'ws' }, thought, said],
    ],
    ['a trigger at the end', [user, { type: 'compaction_trigger' }]],
  ])('%s', (_, input) => {
    expect(rules.problems(conversationOf(...input))).toEqual([]);
  });

  it.each([
    ['at the end', [user, thought], 1],
    ['before a user', [user, thought, user], 1],
    ['before an output', [user, call('1'), thought, output('1')], 2],
    ['before a tool list', [thought, { type: 'additional_tools', tools: [] }, said], 0],
  ])('and reasoning that nothing follows breaks one: %s', (_, input, at) => {
    expect(rules.problems(conversationOf(...input))).toEqual([
      { rule: 'reasoning-is-followed', message: at, detail: 'no item of the model follows the reasoning' },
    ]);
  });
});

describe('strategies on items', () => {
  const folded = (conversation: Conversation, strategy: Strategy, amount = 1_000_000) => {
    const mayEdit = (edit: Edit) => rules.mayEdit(conversation, edit);
    return strategy.propose(foldView(conversation, { mayEdit, excess: { unit: 'tokens', amount } }));
  };

  it('drop reasoning, calls and outputs together, however little is asked for', () => {
    fc.assert(
      fc.property(requests(), fc.nat(400), (request, amount) => {
        const conversation = view(openaiResponses, responsesFixture.body(request));
        const completed = rules.complete(conversation, folded(conversation, dropOldest(), amount));
        expect(completed.status).toBe('ok');
        if (completed.status === 'ok') expect(brokenBy(conversation, completed.edits)).toEqual([]);
      }),
      { numRuns: 300 },
    );
  });

  it('drop a failed call with the reasoning that led to it', () => {
    const failed = [thought, call('1', 'nope'), output('1', 'unknown tool: nope')];
    const both = [thought, call('2', 'nope'), call('3'), output('2', 'unknown tool: nope'), output('3')];
    const tools = [{ type: 'function', name: 'run' }];
    const conversation = view(openaiResponses, bytes({ tools, input: [user, ...failed, ...both, user] }));
    const edits = folded(conversation, dropFailedCalls());
    expect(edits.map((edit) => edit.kind === 'drop-part' && edit.message)).toEqual([2, 3]);
    const completed = rules.complete(conversation, edits);
    const after = view(
      openaiResponses,
      write(conversation, completed.status === 'ok' ? completed.edits : []),
    );
    expect(outline(after).slice(1)).toEqual([
      'user: "u"',
      'assistant: signed reasoning ',
      'assistant: call 2 nope("{}")',
      'assistant: call 3 run("{}")',
      'tool: result 2 ["unknown tool: nope"]',
      'tool: result 3 ["r"]',
      'user: "u"',
    ]);
  });
});
