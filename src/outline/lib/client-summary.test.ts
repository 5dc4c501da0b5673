import { expect, it } from 'vitest';
import { summaryLines } from './client-summary.ts';

function told(sections: readonly (readonly [string, string])[]): readonly string[] {
  const text = sections.map(([title, body], at) => `${at + 1}. ${title}:\n${body}`).join('\n\n');
  const summary = `This session is being continued from a previous conversation.\nSummary:\n${text}`;
  return summaryLines(summary).map(({ text: line, isState }) => (isState ? '(then) ' : '') + line);
}

const steps = Array.from({ length: 9 }, (_, at) => `   - Changed the reader of table ${at + 1}`).join('\n');

it('tells the end of a section, where it stands what came of it, and the last words of an error', () => {
  expect(
    told([
      ['Goal', '   - Move the readers to the new store'],
      ['Concepts', '   - Stores'],
      [
        'Errors and fixes',
        '   - **Wrong count of rows**: I said first that I would not mend the count, because the old store has the same count and nobody reads it. Mended in 7f010c5.\n   - **Missing import**:\n     - The build stopped.\n     - Added it.\n   - **Test that wants "Rows: 3", but now gets the rows of all of the tables of the old store and of the new one, which are six**',
      ],
      ['Solved', `${steps}\n   - All nine readers are pushed`],
      ['User messages', '   - "move them all"'],
      ['Pending Tasks', '   - None: all of it is merged'],
      ['Current Work', `   The readers were moved:\n${steps}\n\n   All of them are merged as 09bd59e.`],
      ['Next Step', '   - Wait'],
    ]),
  ).toEqual([
    'Goal: Move the readers to the new store',
    'Errors and fixes: Wrong count of rows: … Mended in 7f010c5. Missing import: The build stopped. Added it.',
    'Solved: Changed the reader of table 1; Changed the reader of table 2; Changed the reader of table 3; Changed the reader of table 4 … All nine readers are pushed',
    'User messages: "move them all"',
    '(then) Pending Tasks: None: all of it is merged',
    '(then) Current Work: The readers were moved: Changed the reader of table 1 … All of them are merged as 09bd59e.',
  ]);
});

it('tells files by their headings, and takes no name in code for a file', () => {
  const part =
    '\n   **Why:** it was wrong\n   **Key code:**\n   ```ts\n   const a = 1;\n   ```\n   **Content:**';
  const rest: readonly (readonly [string, string])[] = [
    ['Solved', '   - Moved'],
    ['User messages', '   - "move them all"'],
    ['Pending', '   - Docs'],
    ['Work', '   - Docs'],
    ['Next', '   - Docs'],
  ];
  const files = ['src/store.ts', 'src/read.ts'].map((path) => `   ### \`${path}\`${part}`).join('\n');
  const [, listed] = told([
    ['Goal', '   - Move them'],
    ['Concepts', '   - Stores'],
    ['Files', files],
    ...rest,
  ]);
  expect(listed).toBe('Files: store.ts, read.ts');
  const named =
    '   - `src/store.ts`\n   - **Store.Open** and `Store.Close`\n   - `docs/store.md`\n   - `LICENSE.MIT`';
  const [, names] = told([
    ['Goal', '   - Move them'],
    ['Concepts', '   - Stores'],
    ['Files', named],
    ...rest,
  ]);
  expect(names).toBe('Files: store.ts, store.md, LICENSE.MIT');
});
