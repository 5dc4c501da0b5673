import { expect, it } from 'vitest';
import { stepLine, stepWords } from '../step-line.ts';
import { folderOf, inFolder, projectFolders } from './work-folders.ts';

it('finds the folder that a command changes to ahead of all else', () => {
  expect(
    [
      'cd /srv/shop && npm test',
      'cd "/srv/my shop" && ls',
      "cd /srv && cd './shop/' ; ls",
      'cd web\nnpm test',
      'npm test && cd web',
      '# look around\ncd ../other && git log',
      'cd . && ls',
    ].map(folderOf),
  ).toEqual(['/srv/shop', '/srv/my shop', '/srv/shop', 'web', '', '../other', '']);
});

it('tells the folder of a command that is run outside of the project, with its title if it is long', () => {
  const call = (input: object) =>
    stepWords({ tool: 'Bash', input: JSON.stringify(input), result: 'ok', isError: false });
  const run = (command: string, description?: string) => call({ command, description });
  const read = (file_path: string) => call({ file_path });
  const long = `git log ${'--all '.repeat(20)}`;
  const calls = [
    read('/srv/shop/web/src/cart.ts'),
    run('cd /srv/shop && npm test'),
    run('cd web && npm test'),
    run('cd /srv/trial && git log main'),
    run(`cd /srv/trial && ${long}`, 'Read the history'),
  ];
  const isOfProject = projectFolders(calls);
  const told = (of: readonly ReturnType<typeof call>[], isTold: (folder: string) => boolean) =>
    of.map((one) => stepLine(isTold(one.folder) ? one : inFolder(one, (folder) => folder)));
  expect(told(calls.slice(1), isOfProject)).toEqual([
    'Bash npm test: ok',
    'Bash npm test: ok',
    'Bash cd /srv/trial && git log main: ok',
    'Bash (Read the history, in /srv/trial): ok',
  ]);
  // Without whole paths of files, most commands are run in the project.
  const others = [
    read('src/cart.ts'),
    run('cd /app && make'),
    run('cd /app && make test'),
    run('cd /opt && ls'),
  ];
  expect(told(others.slice(1), projectFolders(others))).toEqual([
    'Bash make: ok',
    'Bash make test: ok',
    'Bash cd /opt && ls: ok',
  ]);
});
