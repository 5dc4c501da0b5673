import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { gunzipSync, gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { run } from '../run.ts';
import { testTerminal, type TestTerminalOptions } from '../../../test/support/test-terminal.ts';

const sampleText = readFileSync('src/cli/samples/missing-invoices.json', 'utf8');
const sample = JSON.parse(sampleText) as {
  readonly messages: readonly { readonly role: string; readonly content: string | null }[];
};
const small =
  '{ "id": "small", "messages": [ {"role":"user","content":"caf\\u00e9 1e2"} ], "meta": 12345678901234567890 }';
const jsonl = `${JSON.stringify({ id: 'large', ...sample })}\n${small}\n`;

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'leporello-compact-'));
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

function put(name: string, content: string | Uint8Array): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

async function compacts(argv: readonly string[], options: TestTerminalOptions = {}) {
  const terminal = testTerminal({ cwd: folder, env: { HOME: folder }, ...options });
  const code = await run(['compact', ...argv], terminal);
  return { code, out: terminal.written.out(), err: terminal.written.err() };
}

/** Returns the table with its column of times blanked out. */
const masked = (text: string) =>
  text.replaceAll(/ +[\d,.]+(?=  offload)|(?<=^total.*\d) +[\d,.]+$|(?<=after) +ms/gm, '  TIME');

describe('leporello compact', () => {
  it('folds one document of many lines, and prints a table', async () => {
    const env = { HOME: folder, LEPORELLO_SECRET: 'the ids in stubs count as tokens, too' };
    const argv = [put('body.json', sampleText), '--window-tokens', '8000'];
    const { code, out, err } = await compacts(argv, { env });
    expect(code).toBe(0);
    expect(masked(err)).toMatchInlineSnapshot(`
      "id      outcome    trigger   before  after  TIME  edits
      line 1  compacted  must-fit  13,234  4,447  TIME  offload-results 6, drop-oldest 22
      total                        13,234  4,447  TIME
      1 body: 1 compacted; 66.4 % of the tokens saved
      "
    `);
    expect(JSON.parse(out)).toMatchObject({ model: 'demo-model' });
    expect(out.length).toBeLessThan(sampleText.length / 2);
    expect(out.endsWith('\n  ]\n}\n')).toBe(true);
  });

  it('copies the exact bytes of a body that is not folded', async () => {
    expect(await compacts([put('body.json', sampleText), '--set', 'shrinks=false'])).toMatchObject({
      code: 0,
      out: sampleText,
    });
    const one = await compacts([put('one.json', small)]);
    expect(one).toMatchObject({ code: 0, out: small });
    const shown = await compacts([put('one.json', small)], { isTty: { out: true } });
    expect(shown.out).toBe(`${small}\n`);
  });

  it('reads one conversation per line, and keeps the line breaks', async () => {
    const { code, out, err } = await compacts([put('runs.jsonl', jsonl), '--window-tokens', '8000']);
    expect(code).toBe(0);
    const [large, second, rest] = out.split('\n');
    expect(JSON.parse(large!)).toMatchObject({ id: 'large', model: 'demo-model' });
    expect([second, rest]).toEqual([small, '']);
    expect(err).toMatch(/^id +outcome .*\nlarge +compacted +must-fit .*\nsmall +untouched +- .*\ntotal/);
  });

  it('detects each format from the body, and writes the same format', async () => {
    const codecs = ['openai-chat', 'openai-responses', 'anthropic-messages', 'gemini'];
    const bodies = codecs.map((codec) => readFileSync(`src/codecs/${codec}/fixtures/pi.json`, 'utf8'));
    const { code, out, err } = await compacts([
      put('bodies.jsonl', bodies.join('\n')),
      '--window-tokens',
      '700',
    ]);
    // The tools of the third body alone take more tokens than its window has.
    expect([code, err.split(':', 2).join(':')]).toEqual([1, 'line 3: does not fit']);
    expect(err).toMatch(/\n4 bodies: 4 compacted; /);
    const folded = out.split('\n').map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(folded.map((body) => Object.keys(body))).toEqual(
      bodies.map((body) => Object.keys(JSON.parse(body) as object)),
    );
    const lists = ['messages', 'input', 'messages', 'contents'].map((list, at) => folded[at]![list]);
    expect(lists.map((list) => /\[Folded \d+ earlier messages/.test(JSON.stringify(list)))).toEqual([
      true,
      true,
      true,
      true,
    ]);
  });

  it('reads gzip and standard input, and writes gzip if asked', async () => {
    const plain = await compacts([put('runs.jsonl', jsonl), '--window-tokens', '8000']);
    const packed = gzipSync(jsonl);
    const fromFile = await compacts([put('runs.bin', packed), '--window-tokens', '8000']);
    expect(fromFile.out).toBe(plain.out);
    const input = [packed.subarray(0, 1), packed.subarray(1, 700), packed.subarray(700)];
    const fromInput = await compacts(['-', '--window-tokens', '8000', '--out', 'out.jsonl.gz'], { input });
    expect(fromInput).toMatchObject({ code: 0, out: '' });
    expect(gunzipSync(readFileSync(join(folder, 'out.jsonl.gz'))).toString()).toBe(plain.out);
  });

  it('writes the same bytes on every run, whatever ran before', async () => {
    const file = put('runs.jsonl', jsonl);
    const first = await compacts([file, '--window-tokens', '8000']);
    await compacts([file, '--window-tokens', '9000', '--min-result-bytes', '3000']);
    expect((await compacts([file, '--window-tokens', '8000'])).out).toBe(first.out);
  });

  it('copies what it cannot read, says where and why, and ends with 1', async () => {
    const bad = [
      '{"messages":[{"role":"user"',
      '[]',
      '',
      '{"id":"odd","messages":[{"role":"martian","content":"x"}]}',
      '{"id":"none"}',
    ].join('\n');
    const { code, out, err } = await compacts([put('runs.jsonl', `${small}\n${bad}\n${small}`)]);
    expect(code).toBe(1);
    expect(out).toBe(`${small}\n${bad}\n${small}`);
    const notes = err.split('\n').filter((line) => line.startsWith('line') && line.includes(':'));
    expect(notes[0]).toMatch(/^line 2: copied unchanged: not JSON: /);
    expect(notes.slice(1)).toEqual([
      'line 3: copied unchanged: not a JSON object',
      'line 5: copied unchanged: The body is not a Chat Completions request: a message has no known role.',
      "line 6: copied unchanged: it has no list 'messages', 'input' or 'contents'",
    ]);
    expect(err).toMatch(/\n6 bodies: 2 untouched, 4 bad; 0\.0 % of the tokens saved\n$/);
  });

  it('says what is too large when a body cannot be made to fit', async () => {
    const { code, err } = await compacts([put('body.json', sampleText), '--window-tokens', '500']);
    expect(code).toBe(1);
    expect(err).toMatch(/^line 1: does not fit: \d+ tokens remain, 375 fit: tools \d+/);
  });

  it('counts with the given model, in the given format', async () => {
    const plain = put('plain.jsonl', `${small}\n`);
    const models = async (...flags: readonly string[]) => {
      const { err } = await compacts([plain, '--json', ...flags]);
      const { model, counter, window } = JSON.parse(err.split('\n')[0]!) as Record<string, unknown>;
      return [model, counter, window];
    };
    expect(await models()).toEqual(['gpt-4o', 'o200k_base', 128_000]);
    expect(await models('--format', 'anthropic')).toEqual([
      'claude-sonnet-4-5',
      expect.any(String),
      expect.any(Number),
    ]);
    const input = put('input.jsonl', '{"input":[]}\n{"contents":[{"parts":[{"text":"a"}]}]}\n');
    const { err } = await compacts([input, '--json']);
    const lines = err.trim().split('\n').slice(0, 2);
    expect(lines.map((line) => (JSON.parse(line) as { model: string }).model)).toEqual([
      'gpt-5',
      'gemini-2.5-pro',
    ]);
    expect(await models('--model', 'gpt-4', '--window-tokens', '99')).toEqual(['gpt-4', 'cl100k_base', 99]);
  });

  it('prints receipts as JSON lines', async () => {
    const { err } = await compacts([put('runs.jsonl', jsonl), '--window-tokens', '8000', '--json']);
    const [large, second, total] = err
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(large).toMatchObject({
      line: 1,
      id: 'large',
      outcome: { status: 'compacted' },
      trigger: 'must-fit',
      window: 8_000,
    });
    expect(second).toMatchObject({ line: 2, id: 'small', outcome: { status: 'untouched' } });
    expect(total).toMatchObject({ total: { bodies: 2, outcomes: { compacted: 1, untouched: 1 } } });
  });

  it('may overwrite its input', async () => {
    const file = put('runs.jsonl', jsonl);
    const { out } = await compacts([file, '--window-tokens', '8000']);
    expect(await compacts([file, '--window-tokens', '8000', '--out', file])).toMatchObject({
      code: 0,
      out: '',
    });
    expect(readFileSync(file, 'utf8')).toBe(out);
  });

  it('stores every original so that recall finds it, in another process', async () => {
    const { out } = await compacts([
      put('body.json', sampleText),
      '--window-tokens',
      '12000',
      '--data',
      'kept',
    ]);
    const folded = (JSON.parse(out) as typeof sample).messages.flatMap(({ role, content }) => {
      const id = role === 'tool' ? /^\[Folded .*(mem_\w{16})/s.exec(content ?? '')?.[1] : undefined;
      return id === undefined ? [] : [id];
    });
    expect(folded.length).toBeGreaterThan(1);
    const originals = sample.messages.map(({ content }) => content);
    for (const id of folded) {
      const recall = spawnSync(
        process.execPath,
        ['src/cli/main.ts', 'recall', id, '--data', join(folder, 'kept')],
        { encoding: 'utf8' },
      );
      expect(recall).toMatchObject({ status: 0, stderr: '' });
      expect(originals).toContain(recall.stdout);
    }
  });
});

describe('leporello compact with a problem', () => {
  it.each([
    [
      ['nowhere.json'],
      /^leporello: Cannot read nowhere\.json: ENOENT: no such file or directory, open '.*'\.\n$/,
    ],
    [['.'], /^leporello: \. is a folder\. Name a file in it\.\n$/],
    [
      ['picture.png'],
      /^leporello: picture\.png is no text in UTF-8: byte 8 is NUL\. Name a file of JSON, or of one JSON object per line; it may be packed with gzip\.\n$/,
    ],
    [
      ['body.json', '--out', 'no/such'],
      /^leporello: --out is no\/such, which cannot be written: ENOENT.*\.\n$/,
    ],
    [
      ['body.json', '--min-result-bytes', 'x'],
      /^leporello: minResultBytes is "x" \(from --min-result-bytes\), but must be/,
    ],
  ])('ends with 2: %s', async (argv, sentence) => {
    put('body.json', small);
    put('picture.png', Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex'));
    const { code, out, err } = await compacts(argv);
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toMatch(sentence);
  });

  it('ends with 1 when there is no body', async () => {
    put('blank.jsonl', '\n\n');
    expect(await compacts(['blank.jsonl'])).toEqual({
      code: 1,
      out: '\n\n',
      err: 'leporello: The input holds no body: send a request body, or one per line.\n',
    });
  });

  it('does nothing when originals cannot be kept', async () => {
    put('file', 'not a folder');
    const { code, out, err } = await compacts([put('body.json', sampleText), '--data', 'file/data']);
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toMatch(/^leporello: Cannot read or create the secret file .*file\/data\/secret: ENOTDIR/);
    mkdirSync(join(folder, 'data', 'memory.sqlite'), { recursive: true });
    const second = await compacts([put('body.json', sampleText), '--data', 'data']);
    expect(second).toMatchObject({ code: 1, out: '' });
    expect(second.err).toMatch(
      /^leporello: The store .*memory\.sqlite failed: unable to open database file\./,
    );
  });

  it('writes nothing for damaged gzip', async () => {
    const packed = gzipSync(jsonl.repeat(20));
    put('runs.gz', packed.subarray(0, packed.length - 200));
    const { code, err } = await compacts(['runs.gz', '--out', 'out.jsonl']);
    expect(code).toBe(1);
    expect(err).toContain(
      'leporello: runs.gz is damaged or ends too early: unexpected end of file. out.jsonl was not written.\n',
    );
    expect(readdirSync(folder)).not.toContain('out.jsonl');
  });

  it('stops on a signal, also while it waits for input', async () => {
    const input = new PassThrough();
    const terminal = testTerminal({ cwd: folder, env: { HOME: folder }, input });
    const ended = run(['compact', '-', '--out', 'out.jsonl', '--json'], terminal);
    input.write(`${small}\n`);
    await terminal.shows('"id":"small"');
    terminal.stop();
    expect(await ended).toBe(130);
    expect(terminal.written.err()).toContain('leporello: interrupted. out.jsonl was not written.\n');
    expect(readdirSync(folder).toSorted()).toEqual(['.leporello']);
  });

  it('ends quietly when its output is closed', async () => {
    const file = put('runs.jsonl', `${small}\n`.repeat(5_000));
    const child = spawn(process.execPath, ['src/cli/main.ts', 'compact', file, '--json'], {
      stdio: ['ignore', 'pipe', 'ignore'],
      env: { ...process.env, HOME: folder },
    });
    child.stdout.once('data', () => child.stdout.destroy());
    const code = await new Promise((resolve) => {
      child.once('exit', resolve);
    });
    expect(code).toBe(1);
  });
});
