/**
 * Checks the code in the README and the docs: each TypeScript block compiles as it is printed, each shell block is valid shell and names
 * only scripts, commands and files that exist, each link leads to a file and a heading, each flag and variable of Leporello exists. docs-commands.laws.test.ts runs the shell blocks.
 */
import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { expect, it } from 'vitest';
import { commandNames } from '../src/cli/command-args.ts';
import { options } from '../src/cli/config/options.ts';
import { helpText } from '../src/cli/help/help.ts';
import { readManifest, sourceOf, subpathsOf } from './architecture/manifest.ts';
import { codeBlocks, documents } from './support/code-blocks.ts';

const manifest = readManifest();

it('TypeScript blocks compile as they are printed, against the package', () => {
  const folder = mkdtempSync(join(tmpdir(), 'leporello-docs-'));
  try {
    const paths = subpathsOf(manifest).map(({ subpath, default: target }) => [
      subpath.replace('.', 'leporello'),
      [resolve(sourceOf(target))],
    ]);
    const compilerOptions = {
      paths: Object.fromEntries(paths) as object,
      typeRoots: [resolve('node_modules/@types')],
    };
    const config = { extends: resolve('tsconfig.json'), compilerOptions, include: ['**/*.ts'] };
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config));
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
    // A reader's program has the SDKs of the page.
    symlinkSync(resolve('node_modules'), join(folder, 'node_modules'));
    const blocks = codeBlocks('ts');
    expect(blocks.length).toBeGreaterThan(4);
    for (const { path, line, code } of blocks) {
      const file = join(folder, dirname(path), `${path.split('/').at(-1)}-line-${line}.ts`);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, `${code}\nexport {};\n`);
    }
    const tsc = [resolve('node_modules/typescript/bin/tsc'), '-p', folder, '--noUnusedLocals', 'false'];
    const { stdout, status } = spawnSync(process.execPath, tsc, { cwd: folder, encoding: 'utf8' });
    expect({ stdout, status }).toEqual({ stdout: '', status: 0 });
  } finally {
    rmSync(folder, { recursive: true });
  }
});

it('shell blocks are valid shell', () => {
  const problems = codeBlocks('sh').flatMap(({ path, line, code }) => {
    const { status, stderr } = spawnSync('sh', ['-n'], {
      input: withoutPlaceholders(code),
      encoding: 'utf8',
    });
    return status === 0 ? [] : [`${path}:${line}: ${stderr}`];
  });
  expect(problems).toEqual([]);
});

it('npm scripts and files that documents name exist', () => {
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as {
    readonly scripts: Readonly<Record<string, string>>;
  };
  const problems = documents().flatMap(({ path, text: whole }) => {
    // Other blocks than shell blocks are examples of an agent's work.
    const text = whole.replaceAll(/^```(?!sh\n).*?^```/gms, '');
    const named = [...text.matchAll(/`npm (?:run )?([a-z:]+)/g)].map(([, name]) => name!);
    const builtIn = ['install', 'ci', 'pack', 'run'];
    const noScript = named.filter((name) => !(name in scripts) && !builtIn.includes(name));
    const files = [
      ...text.matchAll(/(?<![\w./])(?:src|test|bench|scripts|examples)\/[\w./-]+\.(?:ts|mjs)\b/g),
    ].map(([file]) => file);
    const links = [...text.matchAll(/\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)/g)].map(([, to]) =>
      join(dirname(path), to!),
    );
    return [
      ...noScript.map((name) => `${path}: there is no script ${name}`),
      ...[...files, ...links]
        .filter((file) => !existsSync(file))
        .map((file) => `${path}: ${file} is missing`),
    ];
  });
  expect(problems).toEqual([]);
});

it('links to a heading lead to one', () => {
  const problems = documents().flatMap(({ path, text }) =>
    [...text.matchAll(/\]\((?!https?:)([^)#]*)#([^)]+)\)/g)].flatMap(([, file = '', anchor = '']) => {
      const to = file === '' ? path : join(dirname(path), file);
      return anchorsOf(readFileSync(to, 'utf8')).has(anchor)
        ? []
        : [`${path}: ${to} has no heading #${anchor}`];
    }),
  );
  expect(problems).toEqual([]);
});

/** Returns the anchors that GitHub gives to the headings of a page. */
function anchorsOf(page: string): ReadonlySet<string> {
  const headings = page.replaceAll(/^```.*?^```/gms, '').matchAll(/^#{1,6} (.+)$/gm);
  return new Set(
    [...headings].map(([, heading = '']) =>
      heading
        .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N}_ -]/gu, '')
        .replaceAll(' ', '-'),
    ),
  );
}

it('flags, options and variables of Leporello that documents name exist', () => {
  const variables = new Set([
    ...options.map(({ variable }) => variable),
    ...[undefined, ...commandNames].flatMap((topic) => helpText(topic).match(/LEPORELLO_[A-Z_]+/g) ?? []),
    // Set by bench-ab for the command that it runs.
    'LEPORELLO_AB_TASK',
    'LEPORELLO_AB_NAMESPACE',
  ]);
  const keys = new Set(options.map(({ key }) => key));
  const allHelp = commandNames.map((name) => helpText(name)).join('');
  let calls = 0;
  const problems = documents().flatMap(({ path, text }) => {
    // A call ends at a comment, at a pipe, or where the arguments of another command begin.
    const called = [...text.matchAll(/\bleporello ([a-z-]+)\b([^`\n|#]*?)(?=`| -- |[\n|#])/g)].flatMap(
      ([, name, given = '']) => {
        const command = commandNames.find((one) => one === name);
        if (command === undefined) return [];
        const flags = flagsIn(given);
        calls += flags.length;
        return flags
          .filter((flag) => !flagsIn(helpText(command)).includes(flag))
          .map((flag) => `${name} ${flag}`);
      },
    );
    const alone = [...text.matchAll(/`(--[a-z][a-z-]+)/g)].map(([, flag = '']) => flag);
    const set = [...text.matchAll(/--set ([a-z][\w.]*)=/g)].map(([, key = '']) => key);
    return [
      ...called,
      ...alone.filter((flag) => !flagsIn(allHelp).includes(flag) && !ofOthers.includes(flag)),
      ...set.filter((key) => !keys.has(key)).map((key) => `--set ${key}`),
      ...(text.match(/LEPORELLO_[A-Z_]*[A-Z]/g) ?? []).filter((name) => !variables.has(name)),
    ].map((problem) => `${path}: ${problem}`);
  });
  expect(problems).toEqual([]);
  expect(calls).toBeGreaterThan(10);
});

/** Flags of agents, harnesses and our own benchmarks that documents name by themselves. */
const ofOthers: readonly string[] = [
  '--agent-import-path',
  '--cache-ttl',
  '--dataset',
  '--dataset-path',
  '--items',
  '--no-telemetry',
  '--prefix',
  '--settings',
  '--static-share',
];

function flagsIn(text: string): readonly string[] {
  return text.match(/(?<![\w-])--[a-z][a-z-]*/g) ?? [];
}

it('the page on architecture names every folder of src, and only files that exist', () => {
  const page = readFileSync('docs/architecture.md', 'utf8');
  const named = [...page.matchAll(/`([a-z-]+\/[\w./-]+\.ts)`/g)].map(([, path]) => path!);
  expect(named.filter((path) => !existsSync(path) && !existsSync(join('src', path)))).toEqual([]);
  const folders = [...page.matchAll(/^\| \d+ \| `([a-z]+)\/`/gm)].map(([, folder]) => folder!);
  const onDisk = readdirSync('src', { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? [entry.name] : [],
  );
  expect(folders.toSorted()).toEqual(onDisk.toSorted());
});

function withoutPlaceholders(code: string): string {
  return code.replaceAll(/<[^<>\n]+>/g, 'placeholder');
}

it('the page on architecture names functions in the files that define them', () => {
  const row = /`([\w/-]+\.ts)` \(((?:`\w+`(?:, )?)+)\)/g;
  const named = [...readFileSync('docs/architecture.md', 'utf8').matchAll(row)].flatMap(
    ([, file = '', list = '']) => [...list.matchAll(/\w+/g)].map(([name]) => ({ file, name })),
  );
  expect(named.length).toBeGreaterThan(8);
  const isDefined = ({ file, name }: (typeof named)[number]) =>
    new RegExp(`function\\*? ${name}\\b`).test(readFileSync(join('src', file), 'utf8'));
  expect(named.filter((one) => !isDefined(one))).toEqual([]);
});
