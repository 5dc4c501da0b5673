/**
 * Runs the programs of docs/recipes.md, and compares the page with the configuration files and with what the programs print. Update the page
 * with `npm run test:laws -- test/recipes.laws.test.ts -u`.
 */
import { spawnSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect, it } from 'vitest';
import { loadConfig } from '../src/cli/config/load-config.ts';
import { options } from '../src/cli/config/options.ts';

const folder = 'examples/recipes';
const page = readFileSync('docs/recipes.md', 'utf8');
const files = globSync(`${folder}/*.json`).map((path) => basename(path));

/** Returns the variables that say the same as a configuration file, in its order. */
function variablesOf(file: string): readonly (readonly [name: string, value: string])[] {
  const byKey = new Map(options.map((option) => [option.key, option]));
  const within = (value: unknown, key: string): readonly (readonly [string, string])[] => {
    const option = byKey.get(key);
    const isGroup = typeof value === 'object' && value !== null && !Array.isArray(value);
    if (isGroup && (option === undefined || option.reads === 'switch'))
      return Object.entries(value).flatMap(([name, one]) =>
        within(one, key === '' ? name : `${key}.${name}`),
      );
    return [[option!.variable, typeof value === 'string' ? value : JSON.stringify(value)]];
  };
  return within(JSON.parse(readFileSync(join(folder, file), 'utf8')), '');
}

const contents: Readonly<Record<string, (name: string) => string>> = {
  file: (name) => readFileSync(join(folder, name), 'utf8'),
  variables: (name) => {
    const lines = variablesOf(name).map(
      ([variable, value]) => `export ${variable}=${/^[\w.-]+$/.test(value) ? value : `'${value}'`}\n`,
    );
    return `${lines.join('')}leporello serve\n`;
  },
  output: (name) => {
    const { stdout, stderr, status } = spawnSync(process.execPath, [join(folder, name)], {
      encoding: 'utf8',
    });
    expect({ stderr, status }).toEqual({ stderr: '', status: 0 });
    return stdout;
  },
};

it('docs/recipes.md shows the files, their variables and what the programs print', async () => {
  const block = /(<!-- (file|variables|output) (\S+) -->\n```\w+\n).*?(?=^```)/gms;
  const made = page.replaceAll(
    block,
    (_, head: string, kind: string, name: string) => head + contents[kind]!(name),
  );
  await expect(made).toMatchFileSnapshot('../docs/recipes.md');
});

it('docs/recipes.md shows every file and every program of the folder', () => {
  const programs = globSync(`${folder}/*.ts`).filter((path) => basename(path) !== 'play.ts');
  const marks = [...page.matchAll(/<!-- (\w+ \S+) -->/g)].map(([, mark]) => mark!);
  expect(marks.toSorted()).toEqual(
    [
      ...files.flatMap((file) => [`file ${file}`, `variables ${file}`]),
      ...programs.map((path) => `output ${basename(path)}`),
    ].toSorted(),
  );
});

it.each(files)('the variables of %s give the same configuration as the file', async (file) => {
  const cwd = process.cwd();
  const fromFile = await loadConfig({ file: join(folder, file), values: [] }, { env: {}, cwd });
  const env = Object.fromEntries(variablesOf(file));
  const fromVariables = await loadConfig({ file: undefined, values: [] }, { env, cwd });
  expect(fromVariables.config).toEqual(fromFile.config);
});
