import { expect, it } from 'vitest';
import { changedNames } from './subject-words.ts';

const names = (before: string, after: string, path = 'src/a.ts') =>
  changedNames({ file_path: path, old_string: before, new_string: after }, path).join(', ');

it('an edit is told by what it defines, removes, renames or changes, and quotes no line', () => {
  const scan = 'export function scan(text: string) {\n  const at = 0;\n  return text;\n}';
  expect([
    names(scan, `${scan}\n\nexport async function scanAll() {\n  await scan();\n}`),
    names(`${scan}\n\nclass Cache {}`, scan),
    names(scan, scan.replaceAll('scan', 'readTokens')),
    names(scan, scan.replace('const at = 0;', 'const at = nextLine(text);')),
    names('  return text;', '  return trimmedText;\n  // done'),
    names(
      'func (s *Store) Close() error {\n\treturn nil\n}',
      'func (s *Store) Close() error {\n\ts.flushAll()\n\treturn nil\n}',
    ),
    names("go = '1.25.5'", "go = '1.25.6'", 'mise.toml'),
    names('fmt.Println("\\nStderr")', 'fmt.Println("\\nStdout is empty")'),
    names('a\nb', 'a\nb\nc'),
  ]).toEqual([
    '+scanAll',
    '-Cache',
    'scan → readTokens',
    'scan',
    '',
    'Close',
    '1.25.5 → 1.25.6',
    'Println',
    '',
  ]);
});

it('an edit without new names is told by what it imports, or by a name that its lines call', () => {
  const test = 'import (\n\t"fmt"\n\t"os"\n)';
  expect([
    names(test, test.replace('\t"os"', '\t"os"\n\t"os/exec"\n\t"time"'), 'a.go'),
    names(test, test.replace('\n\t"os"', ''), 'a.go'),
    names('const x = 1;', "import fs from 'node:fs';\nconst x = 1;"),
    names('  return nil', '  close(file)\n  return nil'),
    names('  if err := save(1, 2)', '  if err := save(2, 3, 4)'),
    names('  // one comment', '  // another comment: here (it is)'),
    names('OLD="order-$(date +%s)"', 'ORDER_ID="$(uuidgen)"\nOLD=""', 'shop.sh'),
  ]).toEqual(['imports +os/exec, +time', 'imports -os', 'imports +node:fs', 'close', 'save', '', 'ORDER_ID']);
});

it('an edit outside of definitions is told by the longest new name, and one of a comment by what it tells a tool', () => {
  expect([
    names(
      '\tsess, err := load(id)',
      '\tsess, err := load(id)\n\tif sess == nil {\n\t\tshowOverview(sess)\n\t}',
      'a.go',
    ),
    names('\trun(a)', '\trun(b)', 'a.go'),
    names('\tsess.ID = 1', '\tsess.ID = 1\n\tsess.At = 2', 'a.go'),
    names('\tcmd := run(a)', '\tcmd := run(a) //nolint:gosec // a is a branch', 'a.go'),
    names('x = load(path)', 'x = load(path)  # type: ignore', 'a.py'),
    names('  load(path);', '  // eslint-disable-next-line no-console\n  load(path);'),
    names('  load(path);', '  // See the manual: chapter two.\n  load(path);'),
  ]).toEqual(['showOverview', 'a → b', '', 'nolint:gosec', 'type: ignore', 'eslint-disable-next-line', '']);
});

it('comments and texts name nothing', () => {
  const open = 'func Open(path string) error {\n\treturn nil\n}';
  const inOpen = (line: string) => open.replace('\treturn nil', `${line}\n\treturn nil`);
  const close = '// Close ends it.\n// See handleClose.\nfunc Close() {}';
  expect([
    names(open, open.replace('nil', '"shop"'), 'a.go'),
    names(open, inOpen('\trequire.NoError(t, err)'), 'a.go'),
    names(open, inOpen('\t// checkOpenFiles handles this, use the cache'), 'a.go'),
    names(inOpen('\t/* func Save() is\n\t   import "cache" */'), open, 'a.go'),
    names(close, close.replace(' See handleClose.', ' It calls closeAll.'), 'a.go'),
    names(open, inOpen('\trunner.SimulateStop(path)'), 'a.go'),
    names(inOpen('\tlogToFile(`\nfunc Fake()\n"os"\n`)'), open, 'a.go'),
    names('x = 1', 'x = """\nimport os\ndef fake():\n"""', 'a.py'),
    names('x = 1', 'from shop.cart import Cart\nx = 1', 'a.py'),
    names('import {\n  a,\n} from "./a.ts";', 'import {\n  a,\n} from "./b.ts";\nconst u = "http://x";'),
    names('mod a;', 'use std::fmt;\nmod a;', 'a.rs'),
    names('x := f(\n\t"a" +\n\t"b")', 'x := f(\n\t"a" +\n\t"c" +\n\t"d"\n)', 'a.go'),
  ]).toEqual([
    'Open',
    'Open',
    '',
    '',
    '',
    'Open',
    'Open',
    '',
    'imports +Cart',
    '+u',
    'imports +std::fmt',
    '',
  ]);
});

it('a text for people is told by its headings, and a whole one by its title', () => {
  const text = '# Plan\n\n## Steps\nFirst this.\n\n## Risks\nNone.';
  expect([
    names(text, `${text}\n\n## Open ends\nMany.`, 'docs/plan.md'),
    names(text, text.replace('First this.', 'First that.'), 'docs/plan.md'),
    names('# is no heading here\nx', '# is none here, too\nx', 'run.sh'),
    changedNames({ content: text }, 'docs/plan.md').join(),
    changedNames({ content: text }, 'plan.ts').join(),
    changedNames({ content: `# ${'a long title '.repeat(8)}` }, 'docs/plan.md').join(),
  ]).toEqual(['+"Open ends"', '"Steps", this → that', '', '"Plan"', '', '']);
});

it('several edits of one call are told together, by two names and a sign for more', () => {
  const edits = ['one', 'two', 'three'].map((name) => ({
    oldText: '}',
    newText: `}\nfunction ${name}() {}`,
  }));
  expect(changedNames({ path: 'a.ts', edits }, 'a.ts')).toEqual(['+one', '+two', '…']);
  expect(changedNames({ path: 'a.ts', edits: edits.slice(0, 2) }, 'a.ts')).toEqual(['+one', '+two']);
  const moved = { old_string: 'function gone() {}', new_string: 'function a() {}\nfunction b() {}' };
  expect(changedNames(moved, 'a.ts')).toEqual(['+a', '-gone', '…']);
  expect(changedNames({ path: 'a.ts', edits: ['x'] }, 'a.ts')).toEqual([]);
  expect(changedNames({ path: 'a.ts' }, 'a.ts')).toEqual([]);
});

it('is bounded for long texts of one line and of many', () => {
  for (const text of ['func('.repeat(100_000), 'a\n'.repeat(100_000), '('.repeat(100_000)])
    expect(names(text, `${text}x`)).toBe('');
});
