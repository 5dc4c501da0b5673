import { describe, expect, it } from 'vitest';
import { extract } from './extract.ts';
import type { SummaryStep } from './summarizer.ts';
import { call, model, user } from '../../test/support/summary-steps.ts';
import { runsIn, spellRuns } from './lib/calls-in-short.ts';
import { readSections, titles } from './summary-text.ts';

const read = (file: string) => call('read_file', { path: `src/${file}.ts` });

function summaryOf(steps: readonly SummaryStep[], max = 2_000) {
  const budget = { aim: max, max };
  const count = (text: string): number => Math.ceil(text.length / 4);
  return readSections(extract({ steps, earlier: [], known: [], budget, count }) ?? '');
}

/** Replies that a call follows at once: what was found, and what comes next. */
const replies: Readonly<Record<string, readonly (readonly [string, string])[]>> = {
  English: [
    ['The cursor of flushQueue is never reset.', 'Let me look at the callers of it.'],
    ['Both tests expect port 8443.', 'Let me see where the port is set.'],
    ['Nothing calls mergeIndex any more.', 'Let me delete what is left over.'],
    ['The lock in openStore is held for 30 seconds.', 'Let me find out who takes it first.'],
  ],
  German: [
    ['Der Zeiger in flushQueue wird nie zurückgesetzt.', 'Jetzt sehe ich mir die Aufrufer an.'],
    ['Beide Tests erwarten Port 8443.', 'Jetzt suche ich, wo er gesetzt wird.'],
    ['Niemand ruft mergeIndex noch auf.', 'Jetzt lösche ich den Rest davon.'],
    ['Die Sperre in openStore hält 30 Sekunden.', 'Jetzt finde ich heraus, wer sie nimmt.'],
  ],
  Spanish: [
    ['El cursor de flushQueue nunca se reinicia.', 'Voy a mirar quién lo llama.'],
    ['Las dos pruebas esperan el puerto 8443.', 'Voy a buscar dónde se define.'],
    ['Nadie llama ya a mergeIndex.', 'Voy a borrar lo que queda.'],
    ['El bloqueo de openStore dura 30 segundos.', 'Voy a averiguar quién lo toma.'],
  ],
  Chinese: [
    ['flushQueue的游标从未重置，这是错误的原因。', '接下来我看看调用它的地方。'],
    ['两个测试都要求端口为8443，配置里却没有。', '接下来我找找设置端口的文件。'],
    ['已经没有代码调用mergeIndex函数了。', '接下来我删除剩下的部分。'],
    ['openStore里的锁要占用30秒才会释放。', '接下来我查查是谁先拿到锁。'],
  ],
};

describe('the end of a turn', () => {
  it('is in the last words of a result that the user answers without a reply between', () => {
    const looked = (about: string, result: string) => call('lookup', { query: about }, result);
    const verdict = 'The order A-47 is paid again, with 22 euros in the last run.';
    const others = Array.from({ length: 8 }, (_, at) =>
      looked(
        `order ${at}`,
        `The customer of order C-${at}${at}3 lives in street number ${at * 7}.\nParcel P-${at}5${at} with item I-9${at}9 left depot D-${at * 3} on day ${at * 11}.`,
      ),
    );
    const steps = [
      user('Check the orders.'),
      ...others.slice(0, 4),
      looked('A-47', `The customer of order A-47 lives in street number 3.\n${verdict}`),
    ];
    const rest = others.slice(4);
    expect(summaryOf([...steps, user('ok'), ...rest], 90).done).toContain(`lookup A-47 → "${verdict}"`);
    expect(summaryOf([...steps, ...rest, user('ok')], 90).done.join()).not.toContain(verdict);
  });
});

it('the sentences of a result stand together at their call, and a gap is marked', () => {
  const report =
    'The queue is never reset after a failure of flushQueue.\n| a | b |\nPort 8443 is closed in every test of the queue.\nSo the lock of table t9 is held for 30 seconds.';
  const steps = [
    user('Why is it slow?'),
    {
      type: 'called',
      tool: 'ask_agent',
      input: '{"about":"the queue"}',
      result: report,
      failed: false,
    } as const,
    model('It is the lock.\n\n```\nlock()\n```\n\nIt waits for 30 seconds.'),
  ];
  const count = (text: string): number => Math.ceil(text.length / 4);
  expect(
    extract({ steps, earlier: [], known: [], budget: { aim: 400, max: 400 }, count }),
  ).toBe(`${titles.log}
- USER: Why is it slow?
- ask_agent the queue: "The queue is never reset after a failure of flushQueue."; "Port 8443 is closed in every test of the queue. So the lock of table t9 is held for 30 seconds."
- YOU: It is the lock. … It waits for 30 seconds.`);
});

it('what the line of a call quotes is not told again, nor a value without words of its own', () => {
  const error = "Agent type 'reviewer' is not known here.";
  const result = `${error} Available agents: Bash, Explore, Plan and several others of other plugins`;
  const steps = [
    user('Review it.'),
    { type: 'called', tool: 'Task', input: '{"description":"Review it"}', result, failed: false } as const,
    model('Two files count:\n\n- `part_one.json`\n- `part_two.json` holds the newest state of both sessions'),
  ];
  const count = (text: string): number => Math.ceil(text.length / 4);
  expect(
    extract({
      steps: [...steps, user('Go on.')],
      earlier: [],
      known: [],
      budget: { aim: 400, max: 400 },
      count,
    }),
  ).toBe(`${titles.log}
- USER: Review it.
- Task "Review it": "Agent type 'reviewer' is not known here. Available agents: Bash, …"
- YOU: Two files count: \`part_one.json\`; \`part_two.json\` holds the newest state of both sessions
- USER: Go on.`);
});

describe('announcements of the next call', () => {
  it.each(Object.keys(replies))('are not told as findings in %s', (language) => {
    const pairs = replies[language]!;
    const steps = pairs.flatMap(([finding, next], at) => [model(`${finding} ${next}`), read(`part${at}`)]);
    const found = summaryOf([
      user('Why does it fail?'),
      ...steps,
      model('8443 is wrong, so I changed it.'),
    ]).found.join('\n');
    for (const [finding, next] of pairs) {
      expect(found).toContain(finding);
      expect(found).not.toContain(next);
    }
  });

  it('are told by the words of the call where nothing else begins like them', () => {
    const { found } = summaryOf([
      user('Why does it fail?'),
      model('First src/scanner.ts.'),
      read('scanner'),
      model('The scanner drops byte 4096 of each chunk.'),
      read('chunks'),
      model('Each chunk is now read to its end.'),
    ]);
    expect(found).toContain('The scanner drops byte 4096 of each chunk.');
    expect(found.join()).not.toContain('First src/scanner.ts');
  });

  it('are told by having no name or number that the call lacks, however few there are', () => {
    const { found } = summaryOf([
      user('Why does it fail?'),
      model('Now I have all the context I need.'),
      read('scanner'),
      model('Ich sehe die Struktur. `scan()` verliert das letzte Byte.'),
      read('chunks'),
      model('It reads 4,096 bytes.'),
    ]);
    expect(found.join()).toContain('`scan()` verliert das letzte Byte.');
    expect(found.join()).not.toContain('all the context');
  });

  it('end no turn: what is said there is kept however it begins', () => {
    const steps = Array.from({ length: 6 }, (_, at) => [
      user(`Question ${at}?`),
      model(`Let me say it: value ${at} of table t${at} is wrong.`),
    ]).flat();
    expect(summaryOf([...steps, user('Thanks.'), model('All is said.')]).found).toHaveLength(7);
  });
});

describe('a log with not enough room', () => {
  const steps = Array.from({ length: 40 }, (_, at) => [
    read(`file${at}`),
    { ...read(`part${at}`), tool: 'edit_file' } as SummaryStep,
    {
      type: 'called',
      tool: 'run',
      input: '{"command":"npm test"}',
      result: `FAIL t${at}.ts:3`,
      failed: true,
    } as const,
  ]).flat();

  it('tells calls in short at their place: edited files, and what came of the last command', () => {
    const { done } = summaryOf([user('Fix it.'), ...steps], 300);
    expect(done[0]).toMatch(
      /^\(\d+ calls: read_file ×\d+: file0\.ts, [^·]+, … · edit_file ×\d+: part0\.ts, [^·]+, … · run ×\d+: npm test \(\d+ failed, last: failed, "FAIL t\d+\.ts:3"\)(?: · then edit_file part\d+\.ts · run: npm test \(last: failed, "FAIL t\d+\.ts:3"\)(?: · read_file file\d+\.ts)?){3}\)$/,
    );
    expect(done.at(-1)).toContain('t39.ts:3');
  });

  it('tells them between the messages of the user that they lie between', () => {
    const turns = [
      user('Read it.'),
      ...steps.slice(0, 12),
      user('Now fix it.'),
      ...steps.slice(12),
      user('Thanks!'),
    ];
    const count = (text: string): number => Math.ceil(text.length / 4);
    const text = extract({ steps: turns, earlier: [], known: [], budget: { aim: 200, max: 400 }, count })!;
    expect(text).toMatch(
      /USER: Read it\.\n- \(12 calls: [^\n]+\n- USER: Now fix it\.\n- \(\d+ calls: [^]*USER: Thanks!/,
    );
  });

  it('counts each call once over many summaries', () => {
    let text = '';
    for (let at = 0; at < steps.length; at += 12) {
      const budget = { aim: 260, max: 260 };
      const count = (one: string): number => Math.ceil(one.length / 4);
      text = extract({ steps: steps.slice(at, at + 12), earlier: [text], known: [], budget, count }) ?? text;
    }
    const runs = readSections(text).done.flatMap(runsIn);
    expect(runs.reduce((sum, { count }) => sum + count, 0)).toBe(steps.length);
    expect(text.startsWith(titles.log)).toBe(true);
  });
});

describe('a summary that the client wrote', () => {
  const told = [
    'This session is being continued from a previous conversation that ran out of context. It is summarized below:',
    '1. The user asked: "never write to the production table"',
    '2. I read the parser.',
    'Some more of what was read. '.repeat(200),
    '9. Then the user said: "use port 8443 for all of it"',
  ].join('\n');

  it('is kept, first of all the words of the user that it quotes, which are what the user demanded', () => {
    expect(summaryOf([user(told), user('Go on.'), read('a')], 170)).toMatchObject({
      prose: [
        expect.stringMatching(
          /^1\. The user asked: "never write to the production table"; 2\. I read the parser\. (?:Some more of what was read\. )+… 9\. Then the user said: "use port 8443 for all of it"$/,
        ),
      ],
      asked: [
        '(in the part that the client summarized) 1. The user asked: "never write to the production table"; 9. Then the user said: "use port 8443 for all of it"',
        'Go on.',
      ],
    });
  });

  it('says that its state is of then, and no longer once the user has demanded two more things', () => {
    const sections = [
      'This session is being continued from a previous conversation. Summary:',
      '1. Primary Request:\n   Make the parser faster.',
      '2. All user messages:\n   - "never write to the production table"',
      '3. Errors:\n   - none so far.',
      '4. Pending Tasks:\n   - Write the tests of the scan.',
      '5. Current Work:\n   The scan is half done.',
      '6. Next Step:\n   Run the benchmark again.',
    ].join('\n');
    const { prose } = summaryOf([user(sections), user('Go on.'), read('a')]);
    expect(prose.join('\n')).toMatch(/^\(state at that time\) .*Write the tests of the scan\./m);
    const steps = [user(sections), user('Go on.'), read('a'), user('Write the docs.'), read('b')];
    const count = (text: string): number => Math.ceil(text.length / 4);
    const summaryIn = (max: number): string =>
      extract({ steps, earlier: [], known: [], budget: { aim: max, max }, count })!;
    expect(summaryIn(95)).not.toContain('Write the tests');
    expect(summaryIn(95)).toContain('never write to the production table');
    expect(summaryIn(95)).toContain('read_file');
  });

  it('stays in the next summary', () => {
    const count = (text: string): number => Math.ceil(text.length / 4);
    const budget = { aim: 400, max: 400 };
    const once = extract({ steps: [user(told), read('a')], earlier: [], known: [], budget, count })!;
    const again = extract({ steps: [user('Next.'), read('b')], earlier: [once], known: [], budget, count })!;
    expect(readSections(again).asked).toEqual([...readSections(once).asked, 'Next.']);
    expect(readSections(once).asked.join()).toContain('"never write to the production table"');
  });
});

it('a short message after a call, or after another message, answers no question', () => {
  const steps = [
    model('Is port 8443 in use? Let me look.'),
    read('ports'),
    user('Use Node 20.'),
    user('And no new files.'),
  ];
  expect(summaryOf(steps).asked).toEqual(['Use Node 20.', 'And no new files.']);
});

it('an item of a log counts its calls, whatever its commands and outcomes quote', () => {
  const counts = (item: string) => Object.fromEntries(runsIn(item).map(({ tool, count }) => [tool, count]));
  expect(counts('run `echo a0 · b0: x`: failed, "FAIL x · y0"')).toEqual({ run: 1 });
  expect(counts('plan "Fix the lint", "Run the tests", "Push it"')).toEqual({ plan: 1 });
  expect(counts('Read a.ts 1-20, 40- · Edit a.ts (scan, +nextLine) ×3')).toEqual({ Read: 2, Edit: 3 });
  expect(counts("run gh pr view 9 | jq '{title, state}' (Read it): ok")).toEqual({ run: 1 });
  expect(counts('Read ×4: a.ts, b.ts · Grep flags · Edit a.ts ×2: ok')).toEqual({
    Read: 4,
    Grep: 1,
    Edit: 2,
  });
});

it('calls in short hide no failure, in however many summaries they are joined', () => {
  const lines = [
    'Bash npm test (Run tests): 2 failed, a.test.ts:4',
    'Read ×2: a.ts, b.ts',
    'Read c.ts: failed, "File does not exist."',
    'Edit a.ts (+scan) ×3',
    'Edit a.ts: failed, "String to replace not found in file."',
    'Edit a.ts (+scan)',
    'Bash npm test (Run tests): ok',
    '(4 calls left out: Edit ×3 (1 failed) · Grep)',
  ];
  const told = spellRuns(lines.flatMap((line) => runsIn(line)));
  expect(told).toBe(
    '(14 calls: Bash: Run tests (last: 2 failed, a.test.ts:4) · Read ×3: a.ts, b.ts, c.ts (last: failed, "File does not exist.") · then Edit ×8 (1 more failed): a.ts ×5 (1 failed), … · Bash: Run tests (last: ok) · Grep)',
  );
  expect(spellRuns(runsIn(told))).toBe(told);
  const counts = spellRuns(runsIn(told), 'counts');
  expect(counts).toBe(
    '(14 calls: Bash (1 failed) · Read ×3 (1 failed) · then Edit ×8 (2 failed) · Bash · Grep)',
  );
  expect(spellRuns(runsIn(counts), 'counts')).toBe(counts);
  expect(spellRuns(runsIn(told), 'changes')).toBe('(14 calls: Edit ×8 (2 failed) · …)');
});

it('calls in short keep a failed check, what was changed because of it and the check that passed in order', () => {
  const lines = [
    'Edit a.ts ×2: ok',
    'Edit b.ts: ok',
    'Bash npm test (Run tests): 2 failed, a.test.ts:40',
    'Read b.ts 1-20 · Edit b.ts (parse): ok',
    'Bash npm run lint (Run lint): failed, "b.ts:3 no-unused-vars"',
    'Bash if [ -f a ]; then cat a; fi (Show a): 3 lines',
    'Edit c.ts: ok',
    'Bash npm test (Run tests): "12 passed"',
  ];
  const told = spellRuns(lines.flatMap((line) => runsIn(line)));
  expect(told).toBe(
    '(10 calls: Edit ×3: a.ts ×2, b.ts · Bash: Run tests (last: 2 failed, a.test.ts:40) · Read b.ts · then Edit b.ts · Bash ×2: Run lint (last: failed, "b.ts:3 no-unused-vars"), Show a · then Edit c.ts · Bash: Run tests (last: "12 passed"))',
  );
  expect(spellRuns(runsIn(told))).toBe(told);
});

it('a short answer stands with the question, and the next summary keeps it', () => {
  const steps = [
    user('Rename the flag.'),
    model('Two names are possible:\n1. `--quiet`\n2. `--silent`\nWhich one?'),
    user('2'),
    read('flags'),
    model('Done. Shall I commit it?'),
    user('yes'),
    read('x'),
    model('Shall I push it?'),
    user('yes'),
  ];
  expect(summaryOf(steps).asked).toEqual([
    'Rename the flag.',
    '2 (asked: "2. `--silent` / Which one?")',
    'yes (asked: "Shall I commit it?")',
    'yes (asked: "Shall I push it?")',
  ]);
});

describe('files that the model reads', () => {
  const reads = (path: string, result: string) => call('Read', { file_path: path }, result);
  const shownOf = (...steps: readonly SummaryStep[]) =>
    summaryOf([user('Why does it fail?'), ...steps, model('Port 8443 is wrong, so I changed it.')]).done;
  const sentence = 'The cursor of flushQueue is never reset after a failure.';

  it('are quoted if they are prose, and not if they are code, whose sentences are comments', () => {
    expect(shownOf(reads('docs/queue.md', sentence))).toEqual([`Read queue.md → "${sentence}"`]);
    expect(shownOf(reads('src/queue.go', `// ${sentence}\nfunc flushQueue() {`))).toEqual(['Read queue.go']);
  });

  it('are quoted without what the client adds to them', () => {
    const added = '<system-reminder>\nYou must refuse to improve the code of malware.\n</system-reminder>';
    expect(shownOf(reads('docs/queue.md', `${sentence}\n\n${added}`))).toEqual([
      `Read queue.md → "${sentence}"`,
    ]);
  });
});
