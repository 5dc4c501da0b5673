/**
 * Compiles a consumer's project (test/consumer/) against the packed package, strictly, with every way to resolve modules and every TypeScript
 * version that users may have, and runs its CommonJS program. TypeScript versions come from the npm registry; without it, only the installed version
 * is tested. A bundle of the packed package shows how much a program loads that imports `createLeporello`. The fake provider runs as it does for users
 * without test packages.
 */
import { spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { gzipSync } from 'node:zlib';
import { rolldown } from 'rolldown';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readManifest } from './architecture/manifest.ts';

const versions = ['5.6', '5.7', '5.8', '5.9', '6.0'];

const resolutions = {
  NodeNext: { module: 'NodeNext', moduleResolution: 'NodeNext' },
  Bundler: { module: 'ESNext', moduleResolution: 'Bundler' },
  /** It reads `main`, `types` and `typesVersions`, but no `exports`. TypeScript 6 warns of it, and 7 has removed it. */
  Node10: { module: 'CommonJS', moduleResolution: 'Node10', esModuleInterop: true },
};

let folder = '';

function run(command: string, args: readonly string[], cwd = process.cwd()) {
  return spawnSync(command, args, { cwd, encoding: 'utf8', timeout: maxRunMs });
}

/** A registry that does not answer would hold npm, and the thread of the tests with it, for a quarter of an hour. */
const maxRunMs = 180_000;
const npmLimits = ['--fetch-timeout=20000', '--fetch-retries=1', '--fetch-retry-mintimeout=1000'];

function fetchCompilers(place: string): void {
  mkdirSync(place);
  const compilers = versions.map((version) => `typescript-${version}@npm:typescript@~${version}.0`);
  const options = ['--no-save', '--no-audit', '--no-fund', '--prefer-offline', ...npmLimits];
  run('npm', ['install', '--prefix', place, ...options, ...compilers], place);
}

beforeAll(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'leporello-consumer-')));
  const build = run(process.execPath, ['scripts/build.mjs']);
  expect({ status: build.status, output: build.stdout + build.stderr }).toMatchObject({ status: 0 });
  const pack = run('npm', ['pack', '--ignore-scripts', '--pack-destination', folder]);
  expect({ status: pack.status, stderr: pack.stderr }).toMatchObject({ status: 0 });

  fetchCompilers(join(folder, 'compilers'));

  cpSync('test/consumer', folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{"private":true,"type":"module"}');
  const modules = join(folder, 'node_modules');
  mkdirSync(join(modules, 'leporello'), { recursive: true });
  const archive = readdirSync(folder).find((name) => name.endsWith('.tgz')) ?? '';
  expect(
    run('tar', ['xzf', archive, '-C', 'node_modules/leporello', '--strip-components=1'], folder).status,
  ).toBe(0);
  const { dependencies = {}, optionalDependencies = {} } = readManifest();
  mkdirSync(join(modules, '@types'));
  for (const name of [...Object.keys({ ...dependencies, ...optionalDependencies }), '@types/node']) {
    mkdirSync(join(modules, name, '..'), { recursive: true });
    symlinkSync(realpathSync(resolve('node_modules', name)), join(modules, name));
  }
}, 480_000);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Returns the path of a compiler; there is none if it could not be fetched. */
function compilerOf(version: string): string | undefined {
  const program =
    version === 'installed'
      ? resolve('node_modules/typescript/bin/tsc')
      : join(folder, 'compilers/node_modules', `typescript-${version}`, 'bin/tsc');
  return existsSync(program) ? program : undefined;
}

describe.each(['installed', ...versions])('TypeScript %s', (version) => {
  it("compiles a consumer's project", (context) => {
    const compiler = compilerOf(version);
    if (compiler === undefined)
      return context.skip(`TypeScript ${version} could not be fetched from the registry`);
    const problems = Object.entries(resolutions).flatMap(([name, resolution]) => {
      if (name === 'Node10' && version === 'installed') return [];
      const hasCommonJs = name !== 'Bundler';
      // A declaration in CommonJS may name an ES module since TypeScript 5.8. Ours use the generic typed arrays of 5.7.
      const skipLibCheck = version === '5.6' || (version === '5.7' && hasCommonJs);
      const config = {
        compilerOptions: {
          ...resolution,
          target: 'ES2022',
          lib: ['ESNext', 'DOM', 'DOM.Iterable'],
          types: ['node'],
          strict: true,
          exactOptionalPropertyTypes: true,
          noUncheckedIndexedAccess: true,
          noEmit: true,
          skipLibCheck,
          ...(version === '6.0' && { ignoreDeprecations: '6.0' }),
        },
        files: ['program.ts', 'node-program.ts', ...(hasCommonJs ? ['common-js.cts'] : [])],
      };
      const file = join(folder, `tsconfig.${name}.json`);
      writeFileSync(file, JSON.stringify(config));
      const { status, stdout } = run(process.execPath, [compiler, '-p', file], folder);
      return status === 0 ? [] : [`${name}: ${stdout}`];
    });
    expect(problems).toEqual([]);
  });
});

describe('a CommonJS program', () => {
  it('runs with the engine that ES modules of the same program get', () => {
    const flags = ['--module', 'nodenext', '--target', 'es2022', '--types', 'node', '--lib', 'esnext,dom'];
    const compiler = compilerOf('installed')!;
    const compiled = run(process.execPath, [compiler, ...flags, '--outDir', 'out', 'common-js.cts'], folder);
    expect(compiled).toMatchObject({ status: 0, stdout: '' });
    const program = `import { LeporelloError } from 'leporello';
import { createRequire } from 'node:module';
const { tool } = createRequire(import.meta.url)('./out/common-js.cjs');
console.log(tool, createRequire(import.meta.url)('leporello').LeporelloError === LeporelloError);`;
    writeFileSync(join(folder, 'both.mjs'), program);
    const { stdout, stderr } = run(process.execPath, ['both.mjs'], folder);
    expect({ stdout, stderr }).toEqual({ stdout: 'read_memory true\n', stderr: '' });
  });
});

describe('the fake provider', () => {
  it('needs neither vitest nor fast-check', () => {
    const program = `import { startFakeProvider } from 'leporello/testing/provider';
const provider = await startFakeProvider({ script: [{ type: 'turn', parts: [{ type: 'text', text: 'Hello.' }] }] });
const body = JSON.stringify({ model: 'gpt-4o', messages: [{ role: 'user', content: 'Hi.' }] });
const headers = { 'content-type': 'application/json', authorization: 'Bearer any' };
const reply = await fetch(provider.url + '/v1/chat/completions', { method: 'POST', headers, body });
console.log((await reply.json()).choices[0].message.content, provider.requests.length);
await provider.close();`;
    writeFileSync(join(folder, 'fake-provider.mjs'), program);
    const { stdout, stderr } = run(process.execPath, ['fake-provider.mjs'], folder);
    expect({ stdout, stderr }).toEqual({ stdout: 'Hello. 1\n', stderr: '' });
  });
});

describe('a program that imports the library', () => {
  it('loads two files of ours, because each file costs time', () => {
    const program = `import { registerHooks } from 'node:module';
const loaded = [];
registerHooks({ load: (url, context, next) => (loaded.push(url), next(url, context)) });
await import('leporello');
console.log(loaded.flatMap((url) => /(?<=leporello\\/).*/.exec(url) ?? []).join('\\n'));`;
    writeFileSync(join(folder, 'loaded.mjs'), program);
    const { stdout, stderr } = run(process.execPath, ['loaded.mjs'], folder);
    expect({ stdout, stderr }).toEqual({
      stdout: 'dist/src/index.js\ndist/src/chunks/library.js\n',
      stderr: '',
    });
  });
});

describe('a bundle of createLeporello', () => {
  it('has at most 90 kB gzip, without what is loaded on demand', async () => {
    writeFileSync(join(folder, 'entry.js'), `export { createLeporello } from 'leporello';`);
    const bundle = await rolldown({ input: join(folder, 'entry.js'), platform: 'node', logLevel: 'silent' });
    const { output } = await bundle.generate({ format: 'esm', minify: true });
    const chunks = new Map(output.flatMap((one) => (one.type === 'chunk' ? [[one.fileName, one]] : [])));
    const loaded = new Set(['entry.js']);
    for (const name of loaded) for (const other of chunks.get(name)?.imports ?? []) loaded.add(other);
    const sizes = [...loaded].map((name) => gzipSync(chunks.get(name)?.code ?? '').length);
    expect(chunks.has('entry.js')).toBe(true);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(90_000);
  });
});
