import { describe, expect, it } from 'vitest';
import { chatBody, readChat, type Step } from '../../test/support/chat-conversation.ts';
import { foldView, strategySuite } from '../../test/support/strategy-suite.ts';
import { offloadResults } from './offload.ts';
import { placesEdited } from './lib/editable-texts.ts';

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
          '[Folded result: 101 lines of the file as it was then. ' +
          'read_memory {"id":"mem_0123456789abcdef"} shows it]',
      },
    ]);
  });

  it('does not mention a tool that the request cannot offer', () => {
    const conversation = readChat(chatBody([{ calls: [{ name: 'run', result: 'x'.repeat(2_000) }] }]));
    const [edit] = offloadResults().propose(
      foldView(conversation, { recallTool: undefined, idOf: () => 'mem_1' }),
    );
    expect(edit).toMatchObject({
      stub: '[Folded result: 2000 characters. Kept as mem_1]',
    });
  });

  it('does not count an edit that failed or that the user refused', () => {
    const call = (name: string, path: string, result: string): Step => ({
      calls: [{ name, input: JSON.stringify({ file_path: path, old_string: 'a', new_string: 'b' }), result }],
    });
    const refused =
      "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the new_string was NOT written to the file).";
    const conversation = readChat(
      chatBody([
        { user: 'Go' },
        ...['a.ts', 'b.ts', 'c.ts'].map((path) => call('Read', path, file)),
        call('Edit', 'a.ts', refused),
        call('Edit', 'b.ts', 'Error: String to replace not found in file.'),
        call('Edit', 'c.ts', 'The file c.ts has been updated.'),
      ]),
    );
    const stubs = offloadResults()
      .propose(foldView(conversation, { idOf: () => 'mem_1' }))
      .map((edit) => (edit.kind === 'replace-text' ? edit.stub.replace(/ read_memory .*/, '') : ''));
    expect(stubs).toEqual([
      '[Folded result: 101 lines of the file as it was then.',
      '[Folded result: 101 lines of the file as it was then.',
      '[Folded result: 101 lines of the file as it was then (edited since).',
    ]);
  });

  it('says which lines were read and whether the file was edited since, what failed, and what a command ended with', () => {
    const call = (name: string, input: unknown, result: string): Step => ({
      calls: [{ name, input: JSON.stringify(input), result }],
    });
    const numbered = Array.from({ length: 60 }, (_, at) => `${at + 300}→const value${at} = ${at};`).join(
      '\n',
    );
    const noise = Array.from({ length: 90 }, (_, at) => `test ${at} passes`).join('\n');
    const conversation = readChat(
      chatBody([
        { user: 'Go' },
        call('Read', { file_path: 'a.ts', offset: 300 }, `${numbered}\n\n 12 more: read on.`),
        call('Read', { file_path: 'b.ts', offset: 300 }, numbered),
        call('Edit', { file_path: 'b.ts', old_string: '1', new_string: '2' }, 'Updated.'),
        call('Read', { file_path: 'b.ts', offset: 300 }, numbered),
        call(
          'Bash',
          { command: 'npm test' },
          `${noise}\nFAIL parse.test.ts > adds\n${noise}\n1 failed, 120 passed`,
        ),
        call('Bash', { command: 'npm test' }, `${noise}\n121 passed`),
        call('search_web', { query: 'lessons' }, `package news\n\n{\nLessons of March\n${noise}`),
        call('get_order', { id: '12' }, JSON.stringify({ status: 'delivered', notes: noise })),
      ]),
    );
    const stubs = offloadResults()
      .propose(foldView(conversation, { idOf: () => 'mem_1' }))
      .map((edit) => (edit.kind === 'replace-text' ? edit.stub.replace(/ read_memory .*/, '') : ''));
    expect(stubs).toEqual([
      '[Folded result: lines 300-359 of the file as it was then.',
      '[Folded result: lines 300-359 of the file as it was then (edited since).',
      '[Folded result: lines 300-359 of the file as it was then.',
      '[Folded result: 182 lines; 1 failed, "FAIL parse.test.ts > adds".',
      '[Folded result: 91 lines; at its end "121 passed".',
      '[Folded result: 94 lines; it begins "Lessons of March".',
      `[Folded result: ${JSON.stringify({ status: 'delivered', notes: noise }).length} characters; status "delivered".`,
    ]);
  });

  it('says that a command or a patch edited a file since, and that a result is only the beginning of another', () => {
    const call = (name: string, input: unknown, result: string): Step => ({
      calls: [{ name, input: JSON.stringify(input), result }],
    });
    const code = Array.from({ length: 60 }, (_, at) => `${at + 1}→const value${at} = ${at};`).join('\n');
    const read = (path: string) => call('Read', { file_path: `/repo/src/${path}` }, code);
    const shell = (command: string) => call('Bash', { command }, 'ok');
    const conversation = readChat(
      chatBody([
        { user: 'Go' },
        ...['a.ts', 'b.ts', 'c.ts', 'd.ts', 'e.ts', 'f.ts'].map(read),
        shell("cd /repo && sed -i 's/1/2/' src/a.ts"),
        shell('cat > /repo/src/b.ts <<EOF\nrm src/f.ts > src/f.ts\nEOF'),
        call(
          'apply_patch',
          { input: '*** Begin Patch\n*** Update File: src/c.ts\n@@\n-1\n+2\n*** End Patch' },
          'ok',
        ),
        shell('git checkout main -- src/d.ts'),
        shell('grep -n "1 > 2" src/e.ts'),
        call(
          'Grep',
          { pattern: 'value' },
          `<persisted-output>\nOutput too large (31.6KB). Full output saved to: /home/me/out.txt\n\nPreview (first 2KB):\n${Array.from({ length: 14 }, (_, at) => `src/a${at % 2}.ts:${at}:${'value '.repeat(12)}`).join('\n')}\n...\n</persisted-output>`,
        ),
      ]),
    );
    const stubs = offloadResults()
      .propose(foldView(conversation, { idOf: () => 'mem_1' }))
      .map((edit) => (edit.kind === 'replace-text' ? edit.stub.replace(/ read_memory .*/, '') : ''));
    expect(stubs).toEqual([
      ...Array.from(
        { length: 4 },
        () => '[Folded result: lines 1-60 of the file as it was then (edited since).',
      ),
      ...Array.from({ length: 2 }, () => '[Folded result: lines 1-60 of the file as it was then.'),
      '[Folded result: only the beginning of 31.6KB was shown, 14 hits in 2 files of src: a0.ts:0,2,4,6,8,10,12; a1.ts:1,3,5,7,9,11,13.',
    ]);
  });

  it('takes a command that only prints a file for a read of it, and output of a pipe for none', () => {
    const shell = (command: string, result: string): Step => ({
      calls: [{ name: 'Bash', input: JSON.stringify({ command }), result }],
    });
    const code = Array.from({ length: 60 }, (_, at) => `const value${at} = ${at};`);
    const edit = JSON.stringify({ file_path: 'src/b.ts', old_string: '1', new_string: '2' });
    const conversation = readChat(
      chatBody([
        { user: 'Go' },
        shell('cd /repo && cat src/a.ts', code.join('\n')),
        shell('nl -ba src/b.ts', code.map((line, at) => `${at + 1}\t${line}`).join('\n')),
        { calls: [{ name: 'Edit', input: edit, result: 'Updated.' }] },
        shell('cat src/a.ts | grep value', code.join('\n')),
      ]),
    );
    const stubs = offloadResults()
      .propose(foldView(conversation, { idOf: () => 'mem_1' }))
      .map((one) => (one.kind === 'replace-text' ? one.stub.replace(/ read_memory .*/, '') : ''));
    expect(stubs).toEqual([
      '[Folded result: 60 lines of the file as it was then.',
      '[Folded result: lines 1-60 of the file as it was then (edited since).',
      '[Folded result: 60 lines; it begins "const value0 = 0;".',
    ]);
  });

  it('replaces the oldest first and stops when enough is saved', () => {
    const calls = { calls: [{ name: 'run', result: file }] };
    const conversation = readChat(chatBody([{ user: 'Go' }, calls, calls, calls]));
    const edits = offloadResults().propose(
      foldView(conversation, { excess: { unit: 'tokens', amount: 400 } }),
    );
    expect(edits.map((edit) => edit.kind === 'replace-text' && edit.at.message)).toEqual([2, 4]);
  });

  const found = Array.from(
    { length: 60 },
    (_, at) => `src/dir${at % 3}/a.ts:${at + 1}:export const foo = 1;`,
  );

  it('folds a search down to its places, joined by path, and says how many it leaves out', () => {
    const conversation = readChat(
      chatBody([
        { user: 'Go' },
        { calls: [{ name: 'Grep', input: '{"pattern":"foo"}', result: found.slice(0, 40).join('\n') }] },
        { calls: [{ name: 'Bash', input: '{"command":"rg -n foo"}', result: found.join('\n') }] },
        {
          calls: [
            { name: 'Glob', input: '{"pattern":"*"}', result: `error: ${'no such folder '.repeat(90)}` },
          ],
        },
      ]),
    );
    const stubs = offloadResults()
      .propose(foldView(conversation, { idOf: () => 'mem_1' }))
      .map((edit) => (edit.kind === 'replace-text' ? edit.stub.replace(/ read_memory .*/, '') : ''));
    expect(stubs[0]).toBe(
      '[Folded result: 40 hits in 3 files of src: dir0/a.ts:1,4,7; dir1/a.ts:2,5,8; dir2/a.ts:3,6,9; 31 hits left out.',
    );
    expect(stubs[1]).toMatch(
      /^\[Folded result: 60 hits in 3 files of src: dir0\/a\.ts:1,4,.*; 51 hits left out\.$/,
    );
    expect(stubs[2]).toMatch(/^\[Folded result: 1357 characters; failed, "error: no such folder no such /);
  });

  it('takes searches after the other results of the same reply, but before those of later ones', () => {
    const grep = { name: 'Grep', input: '{"pattern":"foo"}', result: found.join('\n') };
    const read = { name: 'Read', input: '{"file_path":"a.ts"}', result: file };
    const conversation = readChat(chatBody([{ user: 'Go' }, { calls: [grep, read] }, { calls: [read] }]));
    const folded = (amount: number) =>
      offloadResults()
        .propose(foldView(conversation, { excess: { unit: 'tokens', amount } }))
        .map((edit) => (edit.kind === 'replace-text' ? edit.at.message : -1));
    expect(folded(1)).toEqual([3]);
    expect(folded(600)).toEqual([3, 2]);
    expect(folded(Number.POSITIVE_INFINITY)).toEqual([3, 2, 5]);
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

describe('the edited places', () => {
  it('are one object for all requests without edits, because each keeps its own in memory', () => {
    expect(placesEdited([])).toBe(placesEdited([]));
  });
});
