/**
 * This file checks the rules that no linter knows. Each rule is a pure function over files (test/architecture/). It is tested on
 * a violation, then applied to the whole repository.
 */
import { describe, expect, it } from 'vitest';
import { machineLike, namedOnPurpose } from './architecture/exceptions.ts';
import { cycleProblems, layerProblems, platformProblems } from './architecture/layers.ts';
import { reachableFrom } from './architecture/imports.ts';
import { publishedSources, readManifest } from './architecture/manifest.ts';
import { cacheProblems, packageProblems } from './architecture/packages.ts';
import {
  folderProblems,
  lengthProblems,
  medianProblems,
  nameProblems,
  smallFileProblems,
} from './architecture/sizes.ts';
import { repositoryFiles, type SourceFile, sourceFiles } from './architecture/source-file.ts';
import { typeNameProblems } from './architecture/type-names.ts';
import {
  clauseProblems,
  functionProblems,
  headerProblems,
  machineProblems,
  providerProblems,
  wordProblems,
} from './architecture/wording.ts';

const all = repositoryFiles();
const sources = sourceFiles(all);
const withTests = sourceFiles(all, { tests: true });
const code = all.filter(({ path }) => /^(src|test|bench|scripts|examples)\/.*\.m?[jt]s$/.test(path));
const support = all.filter(({ path }) => /^test\/support\/.*\.ts$/.test(path));

const file = (path: string, text: string): SourceFile => ({ path, text });
const lines = (count: number): string => 'x\n'.repeat(count);

describe('layers', () => {
  it('allows imports of lower layers only', () => {
    expect(
      layerProblems([
        file('src/store/a.ts', `import type { Edit } from '../conversation/edit.ts';`),
        file('src/store/b.ts', `import { open } from '../gateway/app.ts';`),
        file('src/errors.ts', `export { engine } from './engine.ts';`),
        file('src/recall/c.ts', `const late = () => import('../cli/main.ts');`),
      ]),
    ).toEqual([
      'src/store/b.ts imports src/gateway/app.ts: gateway is above store',
      'src/errors.ts imports src/engine.ts: engine is above errors',
      'src/recall/c.ts imports src/cli/main.ts: cli is above recall',
    ]);
  });

  it('forbids imports, of types too, between modules of one layer', () => {
    expect(
      layerProblems([
        file('src/tokens/a.ts', `import type { Store } from '../store/store.ts';`),
        file('src/tokens/b.ts', `type R = import('../store/store.ts').Store;`),
        file('src/gateway/c.ts', `import { engine } from '../index.ts';`),
        file('src/engine-plan.ts', `import { run } from './engine/run.ts';`),
      ]),
    ).toEqual([
      'src/tokens/a.ts imports src/store/store.ts: tokens and store are modules of one layer',
      'src/tokens/b.ts imports src/store/store.ts: tokens and store are modules of one layer',
      'src/gateway/c.ts imports src/index.ts: gateway and index are modules of one layer',
    ]);
  });

  it('forbids imports between codecs, and from shared code to a codec', () => {
    expect(
      layerProblems([
        file('src/codecs/one/a.ts', `import { b } from '../two/b.ts';`),
        file('src/codecs/one/b.ts', `import { shared } from '../shared.ts';`),
        file('src/codecs/shared.ts', `import { a } from './one/a.ts';`),
      ]),
    ).toEqual([
      'src/codecs/one/a.ts imports src/codecs/two/b.ts: one and two of codecs must not import each other',
      'src/codecs/shared.ts imports src/codecs/one/a.ts: shared code and one of codecs must not import each other',
    ]);
  });

  it('forbids imports of test support and benchmarks in src', () => {
    expect(
      layerProblems([
        file('src/cli/serve.ts', `import { suite } from '../../test/support/suite.ts';`),
        file('src/cellar/wine.ts', ''),
        file('src/cli/out.ts', `import { bench } from '../../bench/run.ts';`),
      ]),
    ).toEqual([
      'src/cli/serve.ts imports test/support/suite.ts: that is in no module of src',
      'src/cellar/wine.ts is in no module: name its module in test/architecture/layers.ts',
      'src/cli/out.ts imports bench/run.ts: that is in no module of src',
    ]);
  });

  it('are followed in src', () => {
    expect(layerProblems(sources)).toEqual([]);
  });
});

describe('import cycles', () => {
  it('are found; a shared dependency is not a cycle', () => {
    expect(
      cycleProblems([
        file('src/a.ts', `import './b.ts'; import './d.ts';`),
        file('src/b.ts', `import type { C } from './c.ts';`),
        file('src/c.ts', `export * from './b.ts'; import './d.ts';`),
        file('src/d.ts', ''),
      ]),
    ).toEqual(['import cycle: src/b.ts > src/c.ts > src/b.ts']);
  });

  it('do not exist in src', () => {
    expect(cycleProblems(sources)).toEqual([]);
  });
});

describe('platform modules', () => {
  it('are imported only by modules that need Node', () => {
    expect(
      platformProblems([
        file('src/gateway/a.ts', `import { createServer } from 'node:http';`),
        file('src/recall/b.ts', `import { Buffer } from 'node:buffer';`),
        file('src/arrival/c.ts', `const path = await import('path');`),
      ]),
    ).toEqual([
      'src/recall/b.ts imports node:buffer: only cli, gateway, store may',
      'src/arrival/c.ts imports path: only cli, gateway, store may',
    ]);
  });

  it('are imported nowhere else in src', () => {
    expect(platformProblems(sources)).toEqual([]);
  });
});

describe('packages', () => {
  it('that are only development dependencies are not imported by published code', () => {
    const manifest = {
      name: 'us',
      dependencies: { hono: '4', '@a/b': '1' },
      peerDependencies: { vitest: '5' },
    };
    const violation = file('src/a.ts', `import 'hono/tiny'; import type { B } from '@a/b'; import '@a/c/d';`);
    const suite = file('test/support/b.ts', `import { it } from 'vitest'; import fc from 'fast-check';`);
    expect(packageProblems([violation, suite], manifest)).toEqual([
      'src/a.ts imports @a/c, which package.json lists neither as a dependency nor as a peer',
      'test/support/b.ts imports fast-check, which package.json lists neither as a dependency nor as a peer',
    ]);
  });

  it('that published code imports are its dependencies', () => {
    const manifest = readManifest();
    const published = reachableFrom(publishedSources(manifest), [...sources, ...support]);
    expect(published.length).toBeGreaterThan(50);
    expect(packageProblems(published, manifest)).toEqual([]);
  });
});

describe('caches', () => {
  it('are created by src/caches.ts only', () => {
    const violation = file('src/engine/state.ts', 'new BoundedMap(9, () => 1)');
    expect(cacheProblems([violation, file('src/caches.ts', 'new BoundedMap(9, () => 1)')])).toEqual([
      'src/engine/state.ts makes a BoundedMap: open a cache of src/caches.ts instead',
    ]);
    expect(cacheProblems(sources)).toEqual([]);
  });
});

describe('names of providers', () => {
  const violation = file(
    'src/engine.ts',
    `// as Claude does\nimport 'gpt-tokenizer';\nconst x = 'OPENAI_KEY';`,
  );

  it('are found in code, strings and comments of shared files', () => {
    const data = file('src/tokens/models.ts', `export const models = ['gpt-5'];`);
    const codec = file('src/codecs/one/read.ts', '/** Gemini. */');
    expect(providerProblems([violation, data, codec], [])).toEqual([
      'src/engine.ts:1 says "Claude": shared code names no provider',
      'src/engine.ts:2 says "gpt": shared code names no provider',
      'src/engine.ts:3 says "OPENAI": shared code names no provider',
    ]);
  });

  it('may be excepted with a reason; an unused exception is reported', () => {
    const exceptions = [
      { path: 'src/engine.ts', text: 'gpt-tokenizer', reason: 'the name of a package' },
      { path: 'src/engine.ts', text: 'gemini-cli', reason: 'gone' },
    ];
    expect(providerProblems([violation], exceptions)).toEqual([
      'src/engine.ts:1 says "Claude": shared code names no provider',
      'src/engine.ts:3 says "OPENAI": shared code names no provider',
      'src/engine.ts no longer says "gemini-cli": take the exception off the list',
    ]);
  });

  it('do not occur in shared code of src', () => {
    expect(providerProblems(sources, namedOnPurpose)).toEqual([]);
  });
});

describe('file sizes and names', () => {
  it('have a maximum of lines, of their median and of files in a folder, and kebab-case', () => {
    expect(lengthProblems([file('src/a.ts', lines(400)), file('src/b.ts', lines(401))])).toEqual([
      'src/b.ts has 401 lines, more than 400: split it',
    ]);
    expect(medianProblems([10, 201, 210].map((count) => file('src/a.ts', lines(count))))).toEqual([
      'the median file has 201 lines, more than 200',
    ]);
    expect(
      folderProblems(Array.from({ length: 16 }, (_, index) => file(`src/store/${index}.ts`, ''))),
    ).toEqual(['src/store has 16 files, more than 15: divide it']);
    expect(nameProblems([file('src/store/in-memory.test.ts', ''), file('src/inMemory.ts', '')])).toEqual([
      'src/inMemory.ts is not in kebab-case',
    ]);
  });

  it('are small only where several files import them, one loads them late, or they are a part in a list', () => {
    expect(
      smallFileProblems([
        file('src/a.ts', `import { b } from './b.ts';\nimport type { C } from './c.ts';\n`),
        file('src/b.ts', `import type { C } from './c.ts';\nconst late = () => import('./d.ts');\n`),
        file('src/c.ts', ''),
        file('src/d.ts', `export { e } from './e/e.ts';\n`),
        file('src/e/e.ts', lines(80)),
        file(
          'src/triggers/default-triggers.ts',
          `import { t } from './t.ts';\nimport { u } from './lib/u.ts';\n`,
        ),
        file('src/triggers/t.ts', ''),
        file('src/triggers/lib/u.ts', ''),
      ]),
    ).toEqual([
      'src/b.ts has 2 lines and one importer, src/a.ts: merge them',
      'src/triggers/lib/u.ts has 1 lines and one importer, src/triggers/default-triggers.ts: merge them',
    ]);
  });

  it('are followed in the repository', () => {
    expect(lengthProblems(code)).toEqual([]);
    expect(medianProblems(sources)).toEqual([]);
    expect(folderProblems(sources)).toEqual([]);
    expect(smallFileProblems(sources)).toEqual([]);
    expect(nameProblems(withTests)).toEqual([]);
  });
});

describe('type names', () => {
  const two = [
    file('src/a.ts', 'export type Found = 1;\n'),
    file('src/b.ts', 'interface Found {}\nclass Other {}\n'),
  ];

  it('are reported if two files declare the same one', () => {
    expect(typeNameProblems(two)).toEqual([
      'Found is declared in src/a.ts and src/b.ts: name each type after its subject',
    ]);
  });

  it('are unique in src', () => {
    expect(typeNameProblems(sources)).toEqual([]);
  });
});

describe('a relative clause as a sentence', () => {
  it('is reported at the start of a comment and after a sentence', () => {
    expect(
      clauseProblems([
        file('src/a.ts', '/** What it is. */\n// Reads it. Of two, the last counts.\n'),
        file('src/b.ts', '/**\n * Reads it as it is,\n * of two the last.\n */\n// Reads\n// What it says.'),
      ]),
    ).toEqual(['src/a.ts:1 begins a sentence with "What"', 'src/a.ts:2 begins a sentence with "Of t"']);
  });

  it('occurs in no comment', () => {
    expect(clauseProblems(code)).toEqual([]);
  });
});

describe('the comment of an exported function', () => {
  it('is reported if it does not begin with a verb', () => {
    expect(
      functionProblems([
        file(
          'src/a.ts',
          '/** The sum. */\nexport function sum() {}\n/** Returns it. */\nexport function it() {}\n',
        ),
        file(
          'src/b.ts',
          '/**\n * `a` counts.\n */\nexport async function* b() {}\n/** A type. */\nexport type A = 1;\n',
        ),
      ]),
    ).toEqual([
      'src/a.ts: the comment of sum begins with "The", not with a verb',
      'src/b.ts: the comment of b begins with "`a`", not with a verb',
    ]);
  });

  it('begins with a verb in src', () => {
    expect(functionProblems(sources)).toEqual([]);
  });
});

describe('a word that only this project used', () => {
  it('is reported in comments, with the plain one', () => {
    // The slashes are inserted, so that this file does not violate the rule.
    const slashes = '//';
    const text = `/** Reads\n * it anew. */\nconst anew = 'in vain'; ${slashes} It reckons.\nget('http:${slashes}vault');`;
    expect(wordProblems([file('src/a.ts', text)])).toEqual([
      'src/a.ts:2 says "anew": write "again"',
      'src/a.ts:3 says "reckons": write "estimates"',
    ]);
  });

  it('is in no comment', () => {
    expect(wordProblems(code)).toEqual([]);
  });
});

describe('the header comment of a file', () => {
  it('is reported if it is missing or empty', () => {
    expect(
      headerProblems([
        file('src/a.ts', '/** What it is. */\n'),
        file('src/b.ts', '#!/usr/bin/env node\n/**\n * What it is.\n */\n'),
        file('src/c.ts', `import './a.ts';\n/** Late. */`),
        file('src/d.ts', '/** */'),
      ]),
    ).toEqual([
      'src/c.ts does not begin with a comment that describes it',
      'src/d.ts does not begin with a comment that describes it',
    ]);
  });

  it('is present in src', () => {
    expect(headerProblems(sources)).toEqual([]);
  });
});

describe('text specific to one machine', () => {
  it('is found: folders, registries, download URLs in the lockfile', () => {
    // These strings are split so that this file does not violate the rule.
    const folder = ['', 'work', ''].join('/');
    const host = ['registry', 'example', 'org'].join('.');
    const key = `"${['resol', 'ved'].join('')}":`;
    const guide = file('docs/guide.md', `See ${folder}here.`);
    const lock = file('package-lock.json', `{\n${key} "https://${host}/a.tgz"`);
    expect(machineProblems([guide, lock], [])).toEqual([
      `docs/guide.md:1 has the machine path ${folder}`,
      `package-lock.json:2 names a registry: ${key}`,
      `package-lock.json:2 names a registry: ${host}`,
    ]);
  });

  it('occurs in no file of the repository', () => {
    expect(machineProblems(all, machineLike)).toEqual([]);
  });
});
