import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type StepCall, stepLine, stepLines, stepWords } from '../step-line.ts';

const run = (command: string, result: string, description?: string): StepCall => ({
  tool: 'Bash',
  input: JSON.stringify({ command, description }),
  result,
  isError: undefined,
});
const line = (...args: Parameters<typeof run>): string => stepLine(stepWords(run(...args)));

describe('what came of a command', () => {
  it('tells a commit with its hash and message, and a push with its branch', () => {
    const made =
      '[fix/paths 4dd5c1b] Filter paths by the root\n 2 files changed, 26 insertions(+), 2 deletions(-)';
    const pushed = 'To github.com:acme/shop.git\n   d1b15fb..4dd5c1b  fix/paths -> fix/paths';
    expect([
      line(
        'git add -A && git commit -m "$(cat <<\'EOF\'\nFilter paths by the root\nEOF\n)"',
        made,
        'Commit it',
      ),
      line(`git commit ${'--trailer "Reviewed-by: A" '.repeat(5)}-F message.txt`, made, 'Commit it'),
      line('git commit -am "Filter paths\n\nby the root"', made.replace('[fix/paths', '[20260116-fix')),
      line('git commit -am wip && git push', `${made}\n${pushed}`),
      line(
        'git push --force-with-lease',
        'To github.com:acme/shop.git\n + 1dc1c5f...6839f91 alex/git -> alex/git (forced update)',
      ),
      line(
        'git push -u origin fix/paths',
        "To github.com:acme/shop.git\n * [new branch]      fix/paths -> fix/paths\nbranch 'fix/paths' set up to track 'origin/fix/paths'.",
      ),
      line('git fetch', 'From github.com:acme/shop\n   d1b15fb..4dd5c1b  main -> origin/main'),
    ]).toEqual([
      'Bash git add -A && git commit -m "Filter paths by the root" (Commit it): commit 4dd5c1b, 2 files changed',
      'Bash (Commit it): commit 4dd5c1b "Filter paths by the root", 2 files changed',
      'Bash git commit -am "Filter paths …": commit 4dd5c1b "Filter paths by the root", 2 files changed',
      'Bash git commit -am wip && git push: commit 4dd5c1b "Filter paths by the root", 2 files changed, pushed d1b15fb..4dd5c1b to fix/paths',
      'Bash git push --force-with-lease: pushed by force 1dc1c5f...6839f91 to alex/git',
      'Bash git push -u origin fix/paths: pushed as new to fix/paths',
      'Bash git fetch: "d1b15fb..4dd5c1b main -> origin/main"',
    ]);
  });

  it('tells the only hit of a search, and the line that a search with lines around it looked for', () => {
    const path = `/home/ada/projects/shop-with-a-long-name/packages/checkout/src/cart/total.ts`;
    expect([
      line('find . -mmin -60', path, 'Find new files'),
      line('grep -rn "round(" src', `${path}:12: return round(sum)`),
      line('linters 2>&1 | grep -A20 "nolint:"', 'nolint: reports bad comments\nwhitespace: finds lines'),
      line('find . | grep -i -B 2 nolint', 'first\nwaste\nnolint: reports'),
      stepLine(stepWords({ tool: 'Glob', input: '{"pattern":"**/total.ts"}', result: path, isError: false })),
      stepLine(
        stepWords({ tool: 'Grep', input: '{"pattern":"x"}', result: 'Found 1 file\na.ts', isError: false }),
      ),
    ]).toEqual([
      'Bash find . -mmin -60 (Find new files): "…/cart/total.ts"',
      'Bash grep -rn "round(" src: "…/cart/total.ts:12: return round(sum)"',
      'Bash linters 2>&1 | grep -A20 "nolint:": "nolint: reports bad comments"',
      'Bash find . | grep -i -B 2 nolint: 3 lines',
      'Glob "**/total.ts": "…/cart/total.ts"',
      'Grep "x": "a.ts"',
    ]);
  });

  it('tells the answer ahead of a last line that says nothing', () => {
    const asks = 'Stage this hunk [y,n,q,a,d,K,J,g,/,e,p,P,?]?';
    expect([
      line('git checkout a.go && golangci-lint run', '0 issues.\nUpdated 1 path from the index'),
      line('git checkout a.go', 'Updated 1 path from the index'),
      line(
        'git add -p a.go',
        `diff --git a/a.go b/a.go\n(1/2) ${asks} Sorry, cannot split this hunk\n(1/2) ${asks} @@ -1,2 +1,3 @@\n+x\n(2/2) ${asks}`,
      ),
    ]).toEqual([
      'Bash git checkout a.go && golangci-lint run: "0 issues."',
      'Bash git checkout a.go: "Updated 1 path from the index"',
      'Bash git add -p a.go: "Sorry, cannot split this hunk"',
    ]);
  });

  it('tells no commit in a repository that begins with it as one of the project', () => {
    const made = 'Initialized empty Git repository in x/.git/\n[main (root-commit) 3ac3f6b] initial';
    expect([
      line('git init && git commit -m initial', `${made}\n 1 file changed, 1 insertion(+)`),
      line('sh try.sh', `${made}\n[main aef32eb] renamed\n 1 file changed`, 'Test renames'),
    ]).toEqual([
      'Bash git init && git commit -m initial: first commit of a new repository, 1 file changed',
      'Bash sh try.sh (Test renames): commits in a new repository "renamed", 1 file changed',
    ]);
  });

  it('tells the state and the history of a repository, not how many lines they take', () => {
    expect([
      line('git status', 'On branch main\nnothing to commit, working tree clean'),
      line(
        'git status',
        'On branch main\nChanges not staged for commit:\n\tmodified:   src/a.ts\n\tdeleted:    src/b.ts\n',
      ),
      line('git status --short', ' M src/a.ts\n M src/b.ts\n?? c/\nA  d.ts'),
      line('git log --oneline -2', '12ab34c Fix the bug\n98fe76d Add it'),
      line(
        'git diff main --stat',
        ' src/a.ts | 2 +-\n src/b.ts | 1 +\n 2 files changed, 2 insertions(+), 1 deletion(-)',
      ),
      line(
        'git rebase main',
        'Rebasing (1/2)\rRebasing (2/2)\rSuccessfully rebased and updated refs/heads/fix.',
      ),
      line('npm run tool -- --help', 'Usage: tool\n  --a  does a\n  --b  does b\nUse "tool help" for more.'),
      line('gh api repos/acme/shop/comments', '{"id":1,"body":"Thanks"}'),
      line('grep -rn main src', 'Exit code 1'),
    ]).toEqual([
      'Bash git status: clean',
      'Bash git status: changed: a.ts, b.ts',
      'Bash git status --short: changed: a.ts, b.ts, c/, and 1 more',
      'Bash git log --oneline -2: 2 commits, newest "12ab34c Fix the bug"',
      'Bash git diff main --stat: 2 files changed, 2 insertions(+), 1 deletion(-)',
      'Bash git rebase main: "Successfully rebased and updated refs/heads/fix."',
      'Bash npm run tool -- --help: 4 lines',
      'Bash gh api repos/acme/shop/comments: ok',
      'Bash grep -rn main src: nothing found',
    ]);
  });

  it('tells the cause of a failure, not only the name of the test', () => {
    const log = '    shop_test.go:9: opened the shop\n    shop_test.go:14: got 2 items, want 1';
    expect([
      line('go test ./...', `--- FAIL: TestCart (0.05s)\n${log}\nFAIL\nFAIL\tacme/shop\t0.3s`),
      line('go test -v ./...', `=== RUN   TestCart\n${log}\n--- FAIL: TestCart (0.05s)\nFAIL`),
      line(
        'go test ./...',
        '# acme/shop\nsrc/shop/cart.go:7:2: undefined: total\nFAIL\tacme/shop [build failed]',
      ),
      line(
        'npx vitest',
        ' FAIL  cart.test.ts > adds\nAssertionError: expected 2 to be 1\n ❯ cart.test.ts:4:10\nTests  1 failed | 3 passed',
      ),
      line(
        'golangci-lint run',
        'cmd/shop/cli/cart.go:44:2: error is not checked (errcheck)\n\tclose()\n1 issues:\n* errcheck: 1',
      ),
      line('git stash pop', 'Auto-merging a.ts\nCONFLICT (content): Merge conflict in a.ts'),
      line('npm test', 'Exit code 137\n[Request interrupted by user for tool use]'),
    ]).toEqual([
      'Bash go test ./...: failed, TestCart, "shop_test.go:14: got 2 items, want 1"',
      'Bash go test -v ./...: failed, TestCart, "shop_test.go:14: got 2 items, want 1"',
      'Bash go test ./...: failed, "shop/cart.go:7:2: undefined: total"',
      'Bash npx vitest: 1 failed, cart.test.ts > adds, "AssertionError: expected 2 to be 1"',
      'Bash golangci-lint run: 1 issue, "cli/cart.go:44:2: error is not checked (errcheck)"',
      'Bash git stash pop: failed, "CONFLICT (content): Merge conflict in a.ts"',
      'Bash npm test: interrupted by the user',
    ]);
  });

  it('tells the line that complains, not one of a log, a warning, a count or a package', () => {
    const log = '    shop_test.go:9: the cart should be empty\n    shop_test.go:14: phase 2 begins';
    expect([
      line('go test -v ./...', `=== RUN   TestCart\n${log}\n--- FAIL: TestCart (0.05s)\nFAIL`),
      line(
        'go test ./...',
        '--- FAIL: TestCart (0.00s)\n    --- FAIL: TestCart/empty (0.01s)\n        shop_test.go:14: got 2 items, want 1\nFAIL',
      ),
      line(
        'go test ./... | tail -3',
        '    shop_test.go:14: Expected 1 item, got 2\nFAIL\nFAIL\tacme/shop/cart\t14.580s',
      ),
      line(
        'go test ./...',
        `--- FAIL: TestCart (0.05s)\n    shop_test.go:9: Phase 1\n    ✓ Opened the shop\n${'    hook ran\n'.repeat(80)}    shop_test.go:12: could not find this in the cart:\n        two cups\nFAIL`,
      ),
      line('go test ./...', '--- FAIL: TestCart (0.05s)\n    hooks.go:19: output of the hook\nFAIL'),
      line(
        'git add a.ts',
        "Exit code 128\nwarning: could not open directory 'b/': No such file or directory\nfatal: pathspec 'a.ts' did not match any files",
      ),
      line(
        'golangci-lint run',
        'shop/cart.go:1: : # acme/shop\nshop/cart.go:37:42: not enough arguments in call to add\n1 issues:\n* typecheck: 1',
      ),
    ]).toEqual([
      'Bash go test -v ./...: failed, TestCart, "shop_test.go:9: the cart should be empty"',
      'Bash go test ./...: failed, TestCart, "shop_test.go:14: got 2 items, want 1"',
      'Bash go test ./... | tail -3: failed, "shop_test.go:14: Expected 1 item, got 2"',
      'Bash go test ./...: failed, TestCart, "shop_test.go:12: could not find this in the cart: two cups"',
      'Bash go test ./...: failed, "--- FAIL: TestCart (0.05s)"',
      `Bash git add a.ts: failed, "fatal: pathspec 'a.ts' did not match any files"`,
      'Bash golangci-lint run: 1 issue, "shop/cart.go:37:42: not enough arguments in call to add"',
    ]);
  });

  it('quotes no last line that is one of many alike, code, or about a package without tests', () => {
    expect([
      line('gh api x --jq .', '11 src/a.ts:3\n12 src/a.ts:9\n13 src/b.ts:4\n14 src/c.ts:1'),
      line('./run.sh', '{\n  "id": 3,\n  "name": "x"\n}'),
      line('./run.sh', 'begin\nslog.Int("index", i),'),
      line('go test ./...', 'ok  \tacme/shop\t0.4s\n?   \tacme/shop/json\t[no test files]'),
      line('./run.sh', 'Deploying 3 services\nAll 3 are up.'),
    ]).toEqual([
      'Bash gh api x --jq .: 4 lines',
      'Bash ./run.sh: 2 lines',
      'Bash ./run.sh: 2 lines',
      'Bash go test ./...: ok',
      'Bash ./run.sh: "All 3 are up."',
    ]);
  });

  it('passes over lines that say nothing of what came: of fetches, bars, bytes, tables, announcements and times', () => {
    expect([
      line(
        'git fetch && git rebase main',
        'Current branch fix is up to date.\nFrom github.com:acme/shop\n * branch            main       -> FETCH_HEAD',
      ),
      line('./load.sh', 'Loaded 3 files\n[=========>          ] 42%\n 100% |################|'),
      line('./dump.sh', 'Wrote 2 pages\n00000010: 6578 616d 706c 6500 0000  example...'),
      line('./report.sh', 'All 4 services are up\n| name | state |\n│ a    │ up    │'),
      line('./list.sh', 'Found 2 points\nAvailable Libraries:\n==> Listing them...'),
      line('./run.sh', '2026/01/06 15:30:58 INFO checkpoint saved'),
      line('./run.sh', '{Name:main IsCurrent:false Checkpoints:[{ID:f4bd19c39902 CommitHash:817dc50}]}'),
      line('./run.sh', 'begin\nreturn result, nil'),
      line('./run.sh', '| a |'),
    ]).toEqual([
      'Bash git fetch && git rebase main: "Current branch fix is up to date."',
      'Bash ./load.sh: "Loaded 3 files"',
      'Bash ./dump.sh: "Wrote 2 pages"',
      'Bash ./report.sh: "All 4 services are up"',
      'Bash ./list.sh: "Found 2 points"',
      'Bash ./run.sh: "checkpoint saved"',
      'Bash ./run.sh: 1 line',
      'Bash ./run.sh: 2 lines',
      'Bash ./run.sh: 1 line',
    ]);
  });

  it('tells that a program ended with a failure, why a script did, and which test failed', () => {
    expect([
      line('go run ./list', 'Starting\ncould not open a terminal: device not configured\nexit status 1'),
      line(
        './run.py',
        'Traceback (most recent call last):\n  File "run.py", line 3, in <module>\njson.decoder.JSONDecodeError: Expecting value: line 1',
      ),
      line(
        'go test -v ./...',
        '=== RUN   TestCart\n    cart_test.go:7: Got expected error: exit status 1\n--- PASS: TestCart (0.01s)\n=== RUN   TestShop\n    shop_test.go:9: got 2 items, want 1\n--- FAIL: TestShop (0.02s)\nFAIL',
      ),
    ]).toEqual([
      'Bash go run ./list: failed, "could not open a terminal: device not configured"',
      'Bash ./run.py: failed, "json.decoder.JSONDecodeError: Expecting value: line 1"',
      'Bash go test -v ./...: failed, TestShop, "shop_test.go:9: got 2 items, want 1"',
    ]);
  });

  it('tells that a client kept the rest of a result, and that a tool only began', () => {
    const preview =
      '<persisted-output>\nOutput too large (42.8KB). Full output saved to: /home/me/out.txt\n\nPreview (first 2KB):\n';
    const call = (tool: string, input: object, result: string): string =>
      stepLine(stepWords({ tool, input: JSON.stringify(input), result, isError: undefined }));
    expect([
      line('npm run all', `${preview}step 1 of 9\nstep 2 of 9\n...\n</persisted-output>`),
      line('npm test', `${preview}✗ adds two numbers\n...\n</persisted-output>`),
      call(
        'Grep',
        { pattern: 'total', path: 'src' },
        `${preview}src/a.ts:3:total\nsrc/b.ts:4:total\n...\n</persisted-output>`,
      ),
      call(
        'Task',
        { description: 'Review the change' },
        'Async agent launched successfully.\nagentId: a1 (internal)',
      ),
      call('Skill', { skill: 'review' }, 'Launching skill: review'),
    ]).toEqual([
      'Bash npm run all: only the beginning of 42.8KB was shown',
      'Bash npm test: failed, "✗ adds two numbers"',
      'Grep "total" in src: only the beginning of 42.8KB was shown',
      'Task "Review the change": started in the background',
      'Skill review: ok',
    ]);
  });

  it('names the command, not the folder, the comment or the line end ahead of it', () => {
    expect(
      [
        'cd /app && npm test',
        'cd "/my app" && npm test',
        "cd '/my app'; npm test",
        'cd /app\nnpm test',
        '# Run the tests\nnpm test',
        '\\\ncd /app && \\\nnpm test',
        '(cd /app && npm test',
        'cd /app',
      ].map((command) => line(command, 'ok')),
    ).toEqual([...Array.from({ length: 7 }, () => 'Bash npm test: ok'), 'Bash cd /app: ok']);
  });
});

describe('laws of lines of steps', () => {
  const step = fc.record({ isEdit: fc.boolean(), name: fc.constantFrom('a.ts', 'b.ts', 'c.ts') });

  it('an edit and a read are never told in the other order', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
        const calls = steps.map(
          ({ isEdit, name }): StepCall => ({
            tool: isEdit ? 'Edit' : 'Read',
            input: JSON.stringify({ file_path: name }),
            result: 'done',
            isError: undefined,
          }),
        );
        const told = stepLines(calls.map(stepWords))
          .flatMap(({ text }) => text.split(' · '))
          .map((part) => part.split(' ')[0]);
        const kinds = steps.map(({ isEdit }) => (isEdit ? 'Edit' : 'Read'));
        expect(told).toEqual(kinds.filter((kind, at) => kind !== kinds[at - 1]));
      }),
    );
  });

  it('an outcome cuts no word, and no label stands alone, whatever a command printed', () => {
    const word = fc.constantFrom(
      'FAIL',
      'ok',
      'src/a.test.ts:12:',
      '--- FAIL: TestA',
      'error:',
      '3 failed',
      'To',
      '->',
      'wörter',
      '[main 12ab34c]',
      'Exit code 1',
      'modified: a.ts',
    );
    const text = fc.array(
      fc.array(word, { maxLength: 30 }).map((words) => words.join(' ')),
      { maxLength: 8 },
    );
    fc.assert(
      fc.property(
        fc.constantFrom('git status', 'git log', 'git push', 'npm test', 'git commit -m x'),
        text,
        (command, lines) => {
          const result = lines.join('\n');
          const { outcome } = stepWords(run(command, result));
          expect(outcome.length).toBeLessThan(420);
          expect(outcome).not.toMatch(/^$|[:,] ?$|""/);
          const words = new Set([
            ...result.replaceAll('"', "'").split(/[\s:,[\]]+/),
            ...'pushed by force as new to commit changed files file failed issues issue 3 and more nothing found no output ok clean commits newest lines line TestA'.split(
              ' ',
            ),
          ]);
          for (const said of outcome
            .replaceAll(/["…]|\d+ more|^\d+ (?:commits|lines)/g, '')
            .split(/[\s:,[\]]+/)
            .filter(Boolean))
            expect(
              [...words].some((one) => one === said || one.endsWith(`/${said}`)),
              `${said} in ${outcome}`,
            ).toBe(true);
        },
      ),
    );
  });
});
