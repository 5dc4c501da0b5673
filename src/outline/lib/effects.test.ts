/** Tests which calls change more than the content of files. */
import { describe, expect, it } from 'vitest';
import { changesOutside, hasEffect } from './effects.ts';

describe('a call with effects outside of files', () => {
  const command = (about: string) => hasEffect({ kind: 'command', tool: 'Bash', about });
  const tool = (name: string) => hasEffect({ kind: 'other', tool: name, about: '' });

  it.each([
    'git add -A && git commit -m "Fix it"',
    'gh pr create --title "Fix it"',
    'gh api repos/a/b/issues -X POST',
    'npm publish --tag next',
    'kubectl apply -f app.yaml',
    'curl -s -X POST https://example.com/hook',
    'git mv a.ts b.ts',
    'rm -rf dist',
    'vercel deploy --prod',
  ])('is the command %s', (about) => {
    expect(command(about)).toBe(true);
  });

  it.each([
    'git status',
    'gh pr view 12',
    'npm test',
    'curl -s https://example.com',
    'rm -rf $(mktemp -d)',
    'echo "rm x"',
  ])('is not the command %s', (about) => {
    expect(command(about)).toBe(false);
  });

  it('is a call of a tool whose name says so, and of none that only looks', () => {
    const names = [
      'mcp__tracker__create_issue',
      'cancelOrder',
      'send_mail',
      'get_comment',
      'list_releases',
      'think',
    ];
    expect(names.filter(tool)).toEqual(['mcp__tracker__create_issue', 'cancelOrder', 'send_mail']);
    expect(hasEffect({ kind: 'edit', tool: 'create_file', about: '' })).toBe(false);
  });
});

describe('a change outside of the files here', () => {
  const command = (about: string, outcome = '', hasFailed = false) =>
    changesOutside({ kind: 'command', tool: 'Bash', about, outcome, hasFailed, user: undefined });

  it('is a commit or a publication that worked, also behind a move of files', () => {
    expect(
      ['git commit -m "Fix it"', 'git mv a.ts b.ts && git push', 'npm publish'].filter((about) =>
        command(about),
      ),
    ).toHaveLength(3);
  });

  it('is no move of files, no switch of branches, no failure and no commit in a repository for a trial', () => {
    expect(
      [
        command('git mv a.ts b.ts'),
        command('git checkout main'),
        command('git push', '', true),
        command('git init && git commit -m x', 'new repository'),
      ].includes(true),
    ).toBe(false);
  });
});
