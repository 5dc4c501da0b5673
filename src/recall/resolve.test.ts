import { describe, expect, it } from 'vitest';
import { resolveRecall } from './resolve.ts';

const countTokens = (text: string): number => Math.ceil(text.length / 4);

/** The answer to a call about memory `m1`, which holds this JSON. */
async function recall(held: string, args: unknown, maxTokens = 5_000): Promise<string> {
  const argumentsJson = typeof args === 'string' ? args : JSON.stringify({ id: 'm1', ...(args as object) });
  const lookup = (id: string): string | undefined => (id === 'm1' ? held : undefined);
  return resolveRecall({ argumentsJson, lookup, maxTokens, countTokens });
}

const held = (text: string): string => JSON.stringify(text);
const numbered = (count: number): string =>
  Array.from({ length: count }, (_, line) => `line ${line + 1}`).join('\n');

describe('reading an original', () => {
  it('gives removed text as it was', async () => {
    const text = 'tab\t "quoted" \u0000 \ud83d\ude00 lone \ud800\r\nend\n';
    expect(await recall(held(text), {})).toBe(text);
    expect(await recall(String.raw`"caf\u00e9 \/ \ud83d\ude00"`, {})).toBe('café / 😀');
    expect(await recall(held(''), {})).toBe('');
  });

  it('gives removed messages as text, and their JSON by path', async () => {
    const first = '{"role": "assistant", "n": 2512292042121000001, "content":"Well."}';
    const second = '{"content":"one\\ntwo \\u00e9","role":"tool"}';
    const messages = `[${first},\n ${second}]`;
    expect(await recall(messages, {})).toBe(
      '── 1 of 2 · assistant ──\nWell.\n── 2 of 2 · tool ──\none\ntwo é\n',
    );
    expect(await recall(messages, { path: '$[1].content' })).toBe('one\ntwo é');
    expect(await recall(messages, { path: '$[0].n' })).toBe('2512292042121000001');
    expect(await recall(messages, { path: '$[0]' })).toBe(
      '{"role":"assistant","n":2512292042121000001,"content":"Well."}',
    );
  });

  it('gives the same arguments of a call, whether they were an object or a literal', async () => {
    const content = 'one\ntwo "2"\nthree';
    const input = `{ "path": "a.ts", "n": 1.0, "content": ${JSON.stringify(content)} }`;
    const titleOf = () => ({ message: 1, text: 'call Write a.ts', isCall: true });
    for (const stored of [input, held(input)]) {
      const read = (args: object) =>
        resolveRecall({
          argumentsJson: JSON.stringify({ id: 'm1', ...args }),
          lookup: () => stored,
          titleOf,
          maxTokens: 500,
          countTokens,
        });
      expect(await read({})).toBe(`path: a.ts\nn: 1.0\ncontent:\n${content}`);
      expect(await read({ path: '$.content' })).toBe(content);
      expect(await read({ path: '$.content', lines: '2' })).toBe('two "2"\n[Line 2 of 3.]');
      expect(await read({ path: '$.n' })).toBe('1.0');
      expect(await read({ query: 'two "2"' })).toBe(
        `── lines 1-6 · call Write a.ts ──\npath: a.ts\nn: 1.0\ncontent:\n${content}\n[No other places in lines 1-6.]`,
      );
    }
  });

  it('gives the stored original raw when it is malformed', async () => {
    expect(await recall('"cut off', {})).toBe('"cut off');
    expect(await recall('[{"role":', {})).toBe('[{"role":');
    expect(await recall('{"a":', {})).toBe('{"a":');
  });

  it('waits for a lookup that has to ask a store', async () => {
    const request = { argumentsJson: '{"id":"m1"}', maxTokens: 100, countTokens };
    expect(await resolveRecall({ ...request, lookup: async () => '"kept"' })).toBe('kept');
  });
});

describe('reading lines', () => {
  it.each([
    [{ lines: '3-5' }, 'line 3\nline 4\nline 5\n[Lines 3-5 of 500.]'],
    [{ lines: 7 }, 'line 7\n[Line 7 of 500.]'],
    [{ lines: ['499', 600] }, 'line 499\nline 500\n[Lines 499-500 of 500.]'],
    [{ lines: '-2' }, 'line 499\nline 500\n[Lines 499-500 of 500.]'],
    [{ lines: '499-' }, 'line 499\nline 500\n[Lines 499-500 of 500.]'],
    [{ lines: 'c1-4' }, 'line\n[Characters 1-4 of 4391.]'],
    [{ lines: '600-700' }, 'Out of range. The text has 500 lines, 4391 characters.'],
    [
      { lines: 'all' },
      'lines "all" not understood: use one range, such as "10-40", "10", "100-" or "-20". The text has 500 lines, 4391 characters.',
    ],
    [
      { lines: { deep: [] } },
      'lines "object" not understood: use one range, such as "10-40", "10", "100-" or "-20". The text has 500 lines, 4391 characters.',
    ],
  ])('%j', async (args, answer) => {
    expect(await recall(held(numbered(500)), args)).toBe(answer);
  });
});

describe('reading more than the cap', () => {
  it('ends with the call for the rest, line after line', async () => {
    const first = await recall(held(numbered(500)), {}, 50);
    expect(first).toBe(`${numbered(17)}\n[Lines 1-17 of 500. For the rest: {"id":"m1","lines":"18-500"}]`);
    expect(await recall(held(numbered(500)), { lines: '480-490' }, 40)).toBe(
      'line 480\nline 481\nline 482\nline 483\nline 484\nline 485\nline 486\nline 487\nline 488\n' +
        '[Lines 480-488 of 500. For the rest: {"id":"m1","lines":"489-490"}]',
    );
  });

  it('continues by characters within a line that is too long, and by lines after it', async () => {
    const text = `head\n${'😀'.repeat(100)}\ntail\nend`;
    const answers = [await recall(held(text), {}, 50)];
    for (const lines of ['2-4', 'c132-214', '2-3']) answers.push(await recall(held(text), { lines }, 50));
    expect(answers).toEqual([
      'head\n[Line 1 of 4. For the rest: {"id":"m1","lines":"2-4"}]',
      `${'😀'.repeat(63)}\n[Characters 6-131 of 214. For the rest: {"id":"m1","lines":"c132-214"}]`,
      `${'😀'.repeat(37)}\ntail\nend\n[Characters 132-214 of 214.]`,
      `${'😀'.repeat(63)}\n[Characters 6-131 of 214. For the rest: {"id":"m1","lines":"c132-210"}]`,
    ]);
    const rest = `${'x'.repeat(100)}\n${'line\n'.repeat(90)}`;
    expect(await recall(held(rest), { lines: 'c51-' }, 40)).toBe(
      `${'x'.repeat(50)}\n${'line\n'.repeat(7)}\n[Characters 51-136 of 551. For the rest: {"id":"m1","lines":"9-91"}]`,
    );
  });

  it('keeps the path in the call for the rest', async () => {
    const items = Array.from({ length: 90 }, (_, id) => ({ id, name: `item ${id}` }));
    expect(await recall(held(JSON.stringify({ items })), { path: 'items', lines: '2-' }, 50)).toBe(
      '{"id":0,"name":"item 0"},\n{"id":1,"name":"item 1"},\n{"id":2,"name":"item 2"},\n{"id":3,"name":"item 3"},\n' +
        '[Lines 2-5 of 92. For the rest: {"id":"m1","path":"items","lines":"6-92"}]',
    );
    expect(await recall(held(JSON.stringify({ items })), { path: '$.items[*].id', lines: '-3' })).toBe(
      '87\n88\n89\n[Lines 88-90 of 90.]',
    );
  });

  it.each([{}, { query: 'word' }])('ends where a counter has fractions: %j', async (args) => {
    // The sum of thirds exceeds this by the last bit of a floating-point number.
    const maxTokens = 85 - 95 / 3;
    const thirds = (text: string): number => text.length / 3;
    const request = { argumentsJson: JSON.stringify({ id: 'm1', ...args }), maxTokens, countTokens: thirds };
    const answer = await resolveRecall({ ...request, lookup: () => `word ${'x'.repeat(300)}` });
    expect(thirds(answer)).toBeLessThanOrEqual(maxTokens);
    expect(answer).toContain('word x');
  });
});

describe('searching', () => {
  const log = `${numbered(100)}\nERROR 4711 in src/app.ts: no such file\n${numbered(100)}`;

  it('gives the passages with their lines', async () => {
    expect(await recall(held(log), { query: '4711', lines: '99-103' })).toBe(
      '── lines 99-103 ──\nline 99\nline 100\nERROR 4711 in src/app.ts: no such file\nline 1\nline 2\n[No other places in lines 99-103.]',
    );
  });

  it('names other matches', async () => {
    const text = [1, 2, 3, 4, 5, 6].map((part) => `needle ${part}\n${'hay '.repeat(350)}`).join('\n');
    expect(await recall(held(text), { query: 'needle', lines: '1-10' }, 120)).toBe(
      `── characters 1-348 ──\nneedle 1\n${'hay '.repeat(84)}hay\n` +
        '[Other places: characters 349-1418 and lines 4-5, 6-7 and 1 more; the next: {"id":"m1","lines":"c349-1418"}]',
    );
  });

  it('shows the surroundings of the match when its passage is too long', async () => {
    const text = `${'x'.repeat(700)} needle ${'y'.repeat(5_000)}`;
    expect(await recall(held(text), { query: 'needle' }, 60)).toBe(
      `── characters 622-747 ──\n${'x'.repeat(79)} needle ${'y'.repeat(39)}\n` +
        '[Other places: characters 748-1500; the next: {"id":"m1","lines":"c748-1500"}]',
    );
  });

  it('finds text in messages that JSON spells differently', async () => {
    const messages = String.raw`[{"role":"tool","content":"{\"path\":\"C:\\\\new\",\"by\":\"Zo\u00eb\"}"}]`;
    const shown = `── lines 1-2 ──\n── 1 of 1 · tool ──\n{"path":"C:\\\\new","by":"Zoë"}\n[No other places in lines 1-2.]`;
    expect(await recall(messages, { query: 'by":"Zoë' })).toBe(shown);
    expect(await recall(messages, { query: String.raw`C:\\new` })).toBe(shown);
  });

  it('searches within the result of a path', async () => {
    const json = JSON.stringify({ a: 'needle', b: 'one\ntwo needle\nthree' });
    expect(await recall(held(json), { path: '$.b', query: 'needle' })).toBe(
      '── lines 1-3 ──\none\ntwo needle\nthree\n[No other places in lines 1-3.]',
    );
  });

  it('says plainly that nothing matches', async () => {
    expect(await recall(held(numbered(9)), { query: 'needle' })).toBe(
      'No match for "needle" in lines 1-9. Use fewer or other words, or read them: {"id":"m1","lines":"1-9"}',
    );
  });
});

describe('searching everything', () => {
  const texts = new Map([
    ['m1', `the blue lamp\n${'is lit\n'.repeat(9)}`],
    ['m2', 'the lamp'],
    ['m3', numbered(50)],
  ]);
  const list =
    'Folded in this conversation, the newest first:\nm1 · the blue lamp\nm2 · the lamp\nm3 · line 1';
  const search = (args: object, maxTokens = 5_000) =>
    resolveRecall({
      argumentsJson: JSON.stringify(args),
      lookup: (id) => (texts.has(id) ? held(texts.get(id)!) : undefined),
      all: [...texts.keys()],
      maxTokens,
      countTokens,
    });

  it('gives the passages of each with its id and their lines', async () => {
    expect(await search({ query: 'lamp' })).toBe(
      `── m1 lines 1-10 ──\nthe blue lamp\n${'is lit\n'.repeat(9)}── m2 line 1 ──\nthe lamp\n[No other places.]`,
    );
  });

  it('names other matches, and how to read them', async () => {
    expect(await search({ query: 'lamp' }, 34)).toContain(
      '[Other places: m1 characters 16-77, m2 line 1; the next: {"id":"m1","lines":"c16-77"}]',
    );
  });

  it('answers each of several ids, and searches them together', async () => {
    expect(await search({ id: 'm2, m9' })).toBe(
      '── m2 ──\nthe lamp\n── m9 ──\nNo memory with id "m9" in this conversation. A search of all that was folded:\n' +
        `No match for "m9" in all that was folded. Use fewer or other words.\n${list}`,
    );
    expect(await search({ id: ['m2', 'm3'], query: 'lamp' })).toBe(
      '── m2 line 1 ──\nthe lamp\n[No other places.]',
    );
  });

  it('names the call of each place, a path that the model knows by its last name', async () => {
    const path = '/home/dev/shop/settings.go';
    const calls = [
      [`Read ${path} offset=1 limit=40`, 'import fmt'],
      [`Read ${path} offset=380 limit=60`, `the port of the server\n${'hay\n'.repeat(5)}`],
      ['Read /home/dev/shop/handlers.go', 'another port\nhay'],
      ['Grep port', 'nothing'],
    ] as const;
    const answer = await resolveRecall({
      argumentsJson: JSON.stringify({ query: `Where is the port? Read ${path}` }),
      lookup: (id) => held(calls[Number(id)]![1]),
      titleOf: (id) => ({ message: Number(id), text: `result of ${calls[Number(id)]![0]}`, isCall: false }),
      all: ['0', '1', '2', '3'],
      maxTokens: 5_000,
      countTokens,
    });
    expect(answer).toBe(
      [
        '── 1 lines 1-6 · result of Read …/settings.go offset=380 limit=60 ──',
        'the port of the server',
        ...Array.from({ length: 5 }, () => 'hay'),
        '── 2 lines 1-2 · result of Read /home/dev/shop/handlers.go ──',
        'another port',
        'hay',
        '[No other places.]',
      ].join('\n'),
    );
  });

  it('names files that the request no longer shows if the query names no path: those that share its words, then the newest', async () => {
    const listings = [
      'shop/api/settings_test.go\nshop/api/orders.go\n',
      'Found:\n/home/dev/shop/api/orders.go\n\\nshop/api/users.go see https://shop.dev/a.html\n/home/dev/shop/api/port.go\n',
    ];
    const answerTo = (query: string) =>
      resolveRecall({
        argumentsJson: JSON.stringify({ query }),
        lookup: (id) => held(listings[Number(id)]!),
        titleOf: (id) => ({ message: Number(id), text: 'result of Glob **/*.go', isCall: false }),
        all: ['0', '1'],
        maxTokens: 5_000,
        countTokens,
        isShown: (text) => text.endsWith('port.go'),
      });
    expect(await answerTo('Let me read the tests of the settings. Read Found 40')).toBe(
      [
        '── 0 lines 1-2 · result of Glob **/*.go ──',
        'shop/api/settings_test.go',
        'shop/api/orders.go',
        '── 1 lines 1-4 · result of Glob **/*.go ──',
        'Found:',
        '/home/dev/shop/api/orders.go',
        '\\nshop/api/users.go see https://shop.dev/a.html',
        '/home/dev/shop/api/port.go',
        '[Files not in view: shop/api/settings_test.go; /home/dev/shop/api/orders.go; shop/api/users.go]',
        '[No other places.]',
      ].join('\n'),
    );
    expect(await answerTo('Read shop/api/settings_test.go')).not.toContain('Files');
    expect(await answerTo('The branch feature/settings has it. Read 40')).toContain('[Files not in view');
  });

  it('shows what follows the best places, such as the rest of a definition, if the query quotes nothing', async () => {
    const rest = Array.from({ length: 25 }, (_, line) => `\tstep${line}()`).join('\n');
    const text = `func mergeIndex(path string) error {\n${rest}\n}`;
    const answer = await resolveRecall({
      argumentsJson: JSON.stringify({ query: 'Let me see how mergeIndex handles a path.' }),
      lookup: () => held(`${'hay\n'.repeat(200)}${text}\n${'hay\n'.repeat(200)}`),
      all: ['0'],
      maxTokens: 5_000,
      countTokens,
    });
    expect(answer).toContain('func mergeIndex');
    expect(answer).toContain('step20()');
  });

  it('shows lines once that two versions of a file have', async () => {
    const body = Array.from({ length: 30 }, (_, line) => `\tstep${line}(mergeIndex, "part ${line}")`).join(
      '\n',
    );
    const versions = [
      `func mergeIndex(path string) error {\n${body}\n}`,
      `// Merges the index.\nfunc mergeIndex(path string) error {\n${body}\n}`,
      `mergeIndex("handles a path")`,
    ];
    const answer = await resolveRecall({
      argumentsJson: JSON.stringify({ query: 'Let me see how mergeIndex handles a path.' }),
      lookup: (id) => held(versions[Number(id)]!),
      all: versions.map((_, index) => `${index}`),
      maxTokens: 5_000,
      countTokens,
    });
    expect(answer.split('step20(').length).toBe(2);
  });

  it('says how many other places there are, and names the call for the next', async () => {
    const lamps = Array.from({ length: 30 }, (_, part) => `lamp ${part}\n${'hay\n'.repeat(200)}`).join('');
    const answer = await resolveRecall({
      argumentsJson: JSON.stringify({ query: 'Which lamp is it?' }),
      lookup: () => held(lamps),
      all: ['0'],
      maxTokens: 450,
      countTokens,
    });
    expect(answer).toMatch(/\n\[22 other places; the next: \{"id":"0","lines":"1545-1669"\}\]$/);
  });

  it('says plainly that nothing matches', async () => {
    expect(await search({ query: 'needle' })).toBe(
      `No match for "needle" in all that was folded. Use fewer or other words.\n${list}`,
    );
  });

  it('searches one text when an id is given, and asks for an id when there is nothing to search', async () => {
    expect(await search({ id: 'm2', query: 'lamp' })).toBe(
      '── line 1 ──\nthe lamp\n[No other places in line 1.]',
    );
    expect(await recall(held('the lamp'), '{"query":"lamp"}')).toBe(
      'No id was given, and there is nothing to search without one. Send the id of a stub: {"id":"ID","query":"words"}.',
    );
  });
});

describe('calls that cannot be answered', () => {
  it.each([
    [
      { id: 'm`2' },
      'No memory with id "m`2" in this conversation. Only ids that stand in its stubs can be read; asking again will not help. Go on with what is there.',
    ],
    [
      { path: '$.a' },
      'This memory is not JSON: use lines or query, not path. The text has 1 line, 5 characters.',
    ],
    [
      '{"id":',
      'No id was given. Send a JSON object with the id of a stub, such as {"id":"ID"}, and if only a part is wanted "query":"words", "lines":"10-40" or "path":"$.items[0]".',
    ],
  ])('%j gets a sentence', async (args, answer) => {
    expect(await recall(held('plain'), args)).toBe(answer);
  });

  it('keep to the cap all the same', async () => {
    expect(await recall(held(numbered(500)), { lines: 'all' }, 5)).toBe('lines "all" not un');
    expect(await recall(held(numbered(500)), {}, 5)).toBe('[The cap on what o');
    expect(await recall(held(numbered(500)), {}, 0)).toBe('');
  });
});
