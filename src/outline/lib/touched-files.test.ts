import { describe, expect, it } from 'vitest';
import { call } from '../../../test/support/summary-steps.ts';
import { nodeOf } from '../node.ts';
import { readFileLine } from './touched-files.ts';

const root = '/home/me/app';
const edit = (path: string) => call('edit_file', { path: `${root}/${path}`, old: 'a', new: 'b' });
const run = (command: string, result = 'ok') => call('run', { command }, result);

function filesOf(steps: Parameters<typeof nodeOf>[0], earlier: readonly (readonly [string, string])[] = []) {
  const before = earlier.map(([group, text], at) => readFileLine(group, text, -1 - at));
  const lines = nodeOf(steps, { goal: '' }).files(before);
  return lines.map(({ group, text }) => `${group}: ${text.replace(`${root}/`, '')}`);
}

describe('files that a command moves or removes', () => {
  it('are listed where they are now, with their edits', () => {
    expect(filesOf([edit('src/a.ts'), edit('src/a.ts'), run('git mv src/a.ts src/b.ts')])).toEqual([
      'edited: src/b.ts ×2',
    ]);
    expect(filesOf([edit('docs/plan.md'), run(`cd ${root} && mv docs/plan.md notes/`)])).toEqual([
      'edited: notes/plan.md',
    ]);
    expect(filesOf([edit('src/a.ts'), edit('src/lib/c.ts'), run('mv -f src/a.ts src/lib/c.ts old')])).toEqual(
      ['edited: old/a.ts', 'edited: old/c.ts'],
    );
  });

  it('go with their folder', () => {
    expect(filesOf([edit('src/lib/a.ts'), edit('src/lib/deep/b.ts'), run('mv src/lib src/core')])).toEqual([
      'edited: src/core/a.ts',
      'edited: src/core/deep/b.ts',
    ]);
    expect(filesOf([edit('src/lib/a.ts'), edit('src/b.ts'), run('rm -rf src/lib')])).toEqual([
      'removed: src/lib/a.ts',
      'edited: src/b.ts',
    ]);
  });

  it('are told by the name in the command, if no call has named them before', () => {
    expect(filesOf([run('git rm src/old.ts && mv a/x.md b/y.md')])).toEqual([
      'removed: src/old.ts',
      'moved to: b/y.md',
    ]);
  });

  it('stay as they were where the command failed, names none, keeps the file or works elsewhere', () => {
    const untouched = ['edited: src/a.ts'];
    for (const command of [
      'git rm --cached src/a.ts',
      'rm src/*.ts',
      'rm "$FILE"',
      'cd $(mktemp -d) && mv src/a.ts b.ts',
      'npm run rm src/a.ts',
      'cat <<EOF\nrm src/a.ts\nEOF',
    ])
      expect([command, ...filesOf([edit('src/a.ts'), run(command)])]).toEqual([command, ...untouched]);
    const failed = "mv: cannot stat 'src/a.ts': No such file or directory";
    expect(filesOf([edit('src/a.ts'), run('mv src/a.ts src/b.ts', failed)])).toEqual(untouched);
    expect(filesOf([edit('src/a.ts'), edit('lib/a.ts'), run('rm a.ts')])).toEqual([
      'edited: lib/a.ts',
      'edited: src/a.ts',
    ]);
  });

  it('are followed in patches and from earlier summaries', () => {
    const patch =
      '*** Begin Patch\n*** Update File: src/a.ts\n*** Move to: src/z.ts\n-1\n+2\n*** Delete File: src/b.ts\n*** End Patch';
    const earlier = [
      ['edited', `${root}/src/a.ts ×3`],
      ['edited', `${root}/src/b.ts`],
      ['removed', 'src/gone.ts'],
    ] as const;
    expect(filesOf([call('apply_patch', { input: patch })], earlier)).toEqual([
      'edited: src/z.ts ×4',
      'removed: src/b.ts',
      'removed: src/gone.ts',
    ]);
  });
});
