import { describe, expect, it } from 'vitest';
import { chatBody, readChat } from '../../test/support/chat-conversation.ts';
import { foldView, strategySuite } from '../../test/support/strategy-suite.ts';
import { offloadResults } from './offload.ts';

strategySuite(offloadResults());

const file = 'const x = 1;\n'.repeat(100);

describe('offload-results', () => {
  it('leaves a stub that says what it was, how big, and how to read it again', () => {
    const conversation = readChat(
      chatBody([
        { user: 'Go' },
        { calls: [{ name: 'read_file', input: '{"path":"src/app.ts"}', result: file }] },
      ]),
    );
    const view = foldView(conversation, { idOf: () => 'mem_0123456789abcdef' });
    expect(offloadResults().propose(view)).toEqual([
      {
        kind: 'replace-text',
        at: { message: 2, part: 0, text: 0 },
        memory: 'mem_0123456789abcdef',
        stub:
          '[Folded tool result: 1300 characters, 101 lines. It begins "const x = 1;". ' +
          'To read it again call read_memory with {"id":"mem_0123456789abcdef"}.]',
      },
    ]);
  });

  it('does not mention a tool that the request cannot offer', () => {
    const conversation = readChat(chatBody([{ calls: [{ name: 'run', result: 'x'.repeat(2_000) }] }]));
    const [edit] = offloadResults().propose(
      foldView(conversation, { recallTool: undefined, idOf: () => 'mem_1' }),
    );
    expect(edit).toMatchObject({
      stub: `[Folded tool result: 2000 characters. It begins "${'x'.repeat(60)}…". It is kept as mem_1.]`,
    });
  });

  it('replaces the oldest first and stops when enough is saved', () => {
    const calls = { calls: [{ name: 'run', result: file }] };
    const conversation = readChat(chatBody([{ user: 'Go' }, calls, calls, calls]));
    const edits = offloadResults().propose(
      foldView(conversation, { excess: { unit: 'tokens', amount: 400 } }),
    );
    expect(edits.map((edit) => edit.kind === 'replace-text' && edit.at.message)).toEqual([2, 4]);
  });

  it('keeps results below the threshold in UTF-8 bytes', () => {
    const results = ['é'.repeat(499), 'é'.repeat(500)].map((result) => ({ name: 'run', result }));
    const conversation = readChat(chatBody([{ calls: results }]));
    const edits = offloadResults().propose(foldView(conversation));
    expect(edits.map((edit) => edit.kind === 'replace-text' && edit.at.message)).toEqual([2]);
  });

  it('proposes nothing against too many messages', () => {
    const conversation = readChat(chatBody([{ calls: [{ name: 'run', result: file }] }]));
    expect(
      offloadResults().propose(foldView(conversation, { excess: { unit: 'messages', amount: 5 } })),
    ).toEqual([]);
  });
});
