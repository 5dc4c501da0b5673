import { describe, expect, it } from 'vitest';
import { saysTextNotFound, textNotFound } from '../../outline/outcome.ts';
import { runSteps } from '../../conversation/steps.ts';
import { chatBody, readChat, type Step } from '../../../test/support/chat-conversation.ts';
import { quotedTexts, repairsOf } from './failed-edits.ts';

/** The words of clients, and the files of their sources that hold them. */
const wordings: readonly (readonly [client: string, source: string, words: string])[] = [
  ['Claude Code', 'recorded sessions', 'String to replace not found in file.\nString: const a = 1;'],
  ['Codex', 'codex-rs/apply-patch/src/lib.rs', 'Failed to find expected lines in src/a.ts:\nconst a = 1;'],
  ['Codex', 'codex-rs/apply-patch/src/lib.rs', "Failed to find context 'class A' in src/a.ts"],
  ['opencode', 'packages/opencode/src/tool/edit.ts', 'Error: oldString not found in content'],
  [
    'opencode',
    'packages/opencode/src/tool/edit.ts',
    'Could not find oldString in the file. It must match exactly, including whitespace, indentation, and line endings.',
  ],
  [
    'Gemini CLI',
    'packages/core/src/tools/edit.ts',
    'Failed to edit, 0 occurrences found for old_string in src/a.ts. Use read_file tool to verify.',
  ],
  [
    'Qwen Code',
    'packages/core/src/tools/edit.ts',
    'Failed to edit, 0 occurrences found for old_string in src/a.ts. No edits made.',
  ],
  [
    'aider',
    'aider/coders/editblock_coder.py',
    '# 1 SEARCH/REPLACE block failed to match!\n\n## SearchReplaceNoExactMatch: This SEARCH block failed to exactly match lines in src/a.ts',
  ],
  [
    'pi',
    'packages/coding-agent/src/core/tools/edit-diff.ts',
    'Could not find the exact text in src/a.ts. The old text must match exactly including all whitespace and newlines.',
  ],
  [
    "Anthropic's editor tool",
    'its reference implementation',
    'No replacement was performed, old_str `const a = 1;` did not appear verbatim in src/a.ts.',
  ],
];

describe('a report that the text of an edit was not found', () => {
  it.each(wordings)('is recognized in the words of %s (%s)', (_client, _source, words) => {
    expect(saysTextNotFound(words)).toBe(true);
  });

  it('has no wording that no client uses, and is no other answer', () => {
    const unused = textNotFound.filter((said) => !wordings.some(([, , words]) => said.test(words)));
    expect(unused).toEqual([]);
    const others = ['The file was updated.', 'Found 2 matches of the string to replace', 'File not found'];
    expect(others.filter(saysTextNotFound)).toEqual([]);
  });
});

describe('the texts that an edit must match', () => {
  it.each<readonly [string, string, readonly object[]]>([
    [
      'one text',
      '{"file_path":"a.ts","old_string":"one","new_string":"two"}',
      [{ path: 'a.ts', text: 'one' }],
    ],
    [
      'a list of edits',
      '{"path":"a.ts","edits":[{"oldText":"one","newText":"1"},{"oldText":"two","newText":"2"}]}',
      [
        { path: 'a.ts', text: 'one' },
        { path: 'a.ts', text: 'two' },
      ],
    ],
    [
      'a patch',
      JSON.stringify({
        input:
          '*** Begin Patch\n*** Update File: a.ts\n@@ class A\n one\n-two\n+2\n@@\n-three\n*** Update File: b.ts\n-four\n+4\n*** End Patch',
      }),
      [
        { path: 'a.ts', text: 'one\ntwo' },
        { path: 'a.ts', text: 'three' },
        { path: 'b.ts', text: 'four' },
      ],
    ],
    [
      'a command with a patch',
      JSON.stringify({
        command: ['apply_patch', '*** Begin Patch\n*** Update File: a.ts\n-one\n+1\n*** End Patch'],
      }),
      [{ path: 'a.ts', text: 'one' }],
    ],
    [
      'blocks',
      JSON.stringify({ path: 'a.ts', diff: '<<<<<<< SEARCH\none\n=======\n1\n>>>>>>> REPLACE' }),
      [{ path: 'a.ts', text: 'one' }],
    ],
    ['nothing of a call that is no edit', '{"file_path":"a.ts"}', []],
  ])('are %s', (_name, input, texts) => {
    expect(quotedTexts(input)).toEqual(texts);
  });
});

describe('the lines that are added to a failed edit', () => {
  const lines = Array.from({ length: 30 }, (_, at) => `const value${at} = compute(${at * 31});`);
  const read = (path: string, text: string): Step => ({
    calls: [{ name: 'Read', input: JSON.stringify({ file_path: path }), result: text }],
  });
  const edit = (old: string): Step => ({
    calls: [
      {
        name: 'Edit',
        input: JSON.stringify({ file_path: '/home/me/a.ts', old_string: old, new_string: '' }),
        result: 'String to replace not found in file.',
      },
    ],
  });
  /** Returns what is added if the first steps are dropped. */
  const addedTo = (steps: readonly Step[], dropped = 1) => {
    const conversation = readChat(chatBody(steps));
    const edits = Array.from(
      { length: 2 * dropped },
      (_, message) => ({ kind: 'drop-message', message, memory: 'm' }) as const,
    );
    const sent = readChat(chatBody(steps.slice(dropped)));
    const at = { message: 2 * steps.length - 1, part: 0, text: 0 };
    const report = 'String to replace not found in file.';
    return runSteps(repairsOf(conversation, { edits, sent }, [{ at, report }])).map((one) =>
      one.kind === 'replace-text' ? one.stub : '',
    );
  };
  const listing = lines.map((line, at) => `${at + 11}→${line}`).join('\n');

  it('are those of the folded file that are most like the text, three before them, and those behind them', () => {
    expect(
      addedTo([read('a.ts', listing), edit('const value9 = compute(0);\nconst value10 = run();')]),
    ).toEqual([
      `String to replace not found in file.\n\n[Lines 17-40 of a.ts as last shown. They were folded when the edit was made:\n${lines.slice(6).join('\n')}\n]`,
    ]);
  });

  it('are at most 10,000 characters behind those of the text', () => {
    const long = Array.from({ length: 2_000 }, (_, at) => `const value${at} = compute(${at});`).join('\n');
    const [added] = addedTo([read('a.ts', long), edit('const value9 = compute(9);')]);
    expect(added!.length).toBeGreaterThan(9_000);
    expect(added!.length).toBeLessThan(10_500);
  });

  it('are those of an older text if it holds more of the words, or if the request shows those of the newer one', () => {
    const quoted = 'const value9 = compute(279); // the ninth of many values';
    const like = 'const value9 = compute(279); // the ninth';
    const older = 'const value9 = compute(279); // the ninth of many values';
    const steps = [read('a.ts', `first line\n${older}`), read('a.ts', `other line\n${like}`), edit(quoted)];
    expect(addedTo(steps, 2)).toEqual([expect.stringContaining(`first line\n${older}`)]);
    const shown = [...steps.slice(0, 2), read('a.ts', `other line\n${like}`), edit(quoted)];
    expect(addedTo(shown, 2)).toEqual([expect.stringContaining(`first line\n${older}`)]);
  });

  it('are none if the request shows them, if another file was folded, or if no line is like the text', () => {
    const quoted = 'const value9 = compute(0);';
    expect(addedTo([read('a.ts', listing), read('a.ts', listing), edit(quoted)])).toEqual([]);
    expect(addedTo([read('b.ts', listing), edit(quoted)])).toEqual([]);
    expect(addedTo([read('a.ts', listing), edit('function unlike() { return nothing }')])).toEqual([]);
  });
});
