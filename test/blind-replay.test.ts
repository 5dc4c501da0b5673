/** The replay whose model does not know the values that it lacks: which values it sees, and the words that it asks with. */
import { describe, expect, it } from 'vitest';
import { createStrictSight, mayComeFromEarlier, mostSimilar, wordsOf } from '../bench/replay/blind.ts';
import { chat } from '../src/cli/replay/sources.ts';
import { readRecording } from '../src/replay/recording.ts';
import { loadExactCounter } from '../src/tokens/load-counter.ts';
import { chatBody, readChat, type Step } from './support/chat-conversation.ts';

const listing = 'src/parse.test.ts\nsrc/scan-quotes.ts\nsrc/index.ts';
const steps: readonly Step[] = [
  { user: 'Fix the scanner.' },
  { calls: [{ name: 'Glob', input: '{"pattern":"src/*"}', result: listing }] },
  {
    text: 'I read the scanner.',
    calls: [{ name: 'Read', input: '{"file_path":"src/scan-quotes.ts","limit":40}', result: 'export {}' }],
  },
];

const body = chatBody(steps, { tools: ['Glob', 'Read'] });
const recording = readRecording(
  { id: 'one', source: 'test', format: chat, body },
  await loadExactCounter('o200k_base'),
);
const step = recording.steps.at(-1)!;
const need = step.needs.find(({ value }) => value.text === 'src/scan-quotes.ts')!;

describe('a value that the model needs', () => {
  const shows = (...context: readonly Step[]) =>
    createStrictSight(recording).shows(readChat(chatBody(context)), need);

  it.each([
    ['the recorded result', { calls: [{ name: 'Glob', input: '{"pattern":"src/*"}', result: listing }] }],
    ['the shortened result', { calls: [{ name: 'Glob', result: 'Files: src/scan-quotes.ts and others' }] }],
    ['a line of the result, quoted', { user: 'Quoted:\nsrc/scan-quotes.ts' }],
    ['a line of a log that names the tool', { user: '- Glob src/*: src/scan-quotes.ts first' }],
  ] satisfies readonly (readonly [string, Step])[])('is visible in %s', (_, context) => {
    expect(shows(steps[0]!, context)).toBe(true);
  });

  it('is not visible in a list of values', () => {
    expect(shows({ user: 'Their calls named limit=40, src/scan-quotes.ts, offset=2.' })).toBe(false);
  });
});

describe('the words of a model that lacks a value', () => {
  it('are what it said and the rest of its call', () => {
    expect(wordsOf(recording, step, ['src/scan-quotes.ts'])).toEqual({
      said: 'I read the scanner.',
      call: 'Read   40',
    });
  });

  it('lead to the stub with the rarest of them', () => {
    const stub = (id: string, ...words: readonly string[]) => ({ id, words: new Set(words) });
    const stubs = [
      stub('mem_a', 'read', 'index'),
      stub('mem_b', 'read', 'scanner'),
      stub('mem_c', 'read', 'x'),
    ];
    expect(mostSimilar(stubs, 'I read the scanner')).toBe('mem_b');
    expect(mostSimilar([], 'I read the scanner')).toBeUndefined();
  });
});

describe('a number that a call used', () => {
  const read = (file: string, result: string, offset?: number): Step => ({
    calls: [{ name: 'Read', input: JSON.stringify({ file_path: file, offset }), result }],
  });
  const run = (command: string, result: string): Step => ({
    calls: [{ name: 'Bash', input: JSON.stringify({ command }), result }],
  });
  const used = read('src/a.ts', 'export {}', 240);
  const isLikely = async (last: Step, ...earlier: readonly Step[]): Promise<boolean> => {
    const source = { id: 'one', source: 'test', format: chat, body: chatBody([...earlier, last]) };
    const made = readRecording(source, await loadExactCounter('o200k_base'));
    const own = made.steps.at(-1)!;
    return mayComeFromEarlier(made, own, own.needs.find(({ value }) => value.text === '240')!);
  };

  it.each([
    ['somebody said it', used, { user: 'Look at line 240.' }],
    ['an earlier call had it in the same argument', used, read('src/b.ts', 'x', 240)],
    ['a search found it in the file', used, run('grep -rn x', 'src/a.ts:240:x')],
    ['the file holds it', used, read('src/a.ts', '7→const width = 240;')],
    ['a call of the same tool returned it', run('gh run view 240', 'x'), run('gh run list', '240 failed')],
  ])('may come from an earlier message if %s', async (_, last, earlier) => {
    expect(await isLikely(last, { user: 'Go on.' }, earlier)).toBe(true);
  });

  it.each([
    ['another file holds it', read('src/b.ts', 'const width = 240;')],
    ['it is only the number of a line in a listing', read('src/a.ts', '   239→x\n   240→y')],
    ['another tool returned it for no file', run('npm test', '240 passed')],
  ])('occurs by chance if %s', async (_, earlier) => {
    expect(await isLikely(used, { user: 'Go on.' }, earlier)).toBe(false);
  });
});
