import { describe, expect, it } from 'vitest';
import type { Edit } from '../../conversation/edit.ts';
import { view } from '../../../test/support/codec-suite/views.ts';
import { anthropicMessages } from './index.ts';

const { rules } = anthropicMessages;
const call = (id: string) => ({ type: 'tool_use', id, name: 'run', input: { a: 1 } });
const result = (id: string) => ({ type: 'tool_result', tool_use_id: id, content: 'r' });
const thought = { type: 'thinking', thinking: 't', signature: 's' };
const replaceInput = (message: number, part: number): Edit => ({
  kind: 'replace-input',
  message,
  part,
  input: '{}',
  memory: 'm',
});

function conversation(model: string) {
  const messages = [
    { role: 'user', content: 'one' },
    {
      role: 'assistant',
      content: [thought, call('c1'), { type: 'server_tool_use', id: 's1', name: 'web', input: {} }],
    },
    { role: 'user', content: [result('c1')] },
    { role: 'assistant', content: [thought, call('c2')] },
    { role: 'user', content: [result('c2')] },
  ];
  return view(anthropicMessages, JSON.stringify({ model, max_tokens: 1, messages }));
}

describe('arguments', () => {
  it('may be replaced, except in the newest assistant message and in calls that the provider runs', () => {
    const places = [replaceInput(1, 1), replaceInput(1, 0), replaceInput(1, 2), replaceInput(3, 1)];
    const now = conversation('claude-opus-4-6');
    expect(places.map((edit) => rules.mayEdit(now, edit))).toEqual([true, false, false, false]);
  });

  it('are replaced together with thinking that is bound to them', () => {
    const edits = [replaceInput(1, 1)];
    expect(rules.complete(conversation('claude-opus-4-6'), edits)).toEqual({ status: 'ok', edits });
    const bound = conversation('claude-opus-5-5');
    expect(rules.complete(bound, edits).status).toBe('refused');
    const dropped = [1, 3].map((message) => ({ kind: 'drop-part', message, part: 0, memory: undefined }));
    expect(rules.complete(bound, edits, true)).toEqual({ status: 'ok', edits: [...edits, ...dropped] });
  });
});
