import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createEncryptedStore } from '../store/encrypted-store.ts';
import { openStore } from './open-store.ts';
import { run } from './run.ts';
import { testTerminal, type TestTerminalOptions } from '../../test/support/test-terminal.ts';

let folder: string;
let textId: string;
let messagesId: string;
let longId: string;

const literal = String.raw`"first line\nsecond: caf\u00e9\nthird: 12345678901234567890\n"`;
const messages = '[{"role":"user","content":"Hello"},{"role":"assistant","content":"Hi","n":1.50}]';

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'leporello-recall-'));
  const memory = await openStore(join(folder, 'data'), {});
  const encryptedStore = createEncryptedStore(memory);
  const keep = async (original: string): Promise<string> => {
    const bytes = new TextEncoder().encode(original);
    const id = encryptedStore.idOf('somebody', bytes);
    await encryptedStore.keep('somebody', [{ id, original: bytes }]);
    return id;
  };
  textId = await keep(literal);
  messagesId = await keep(messages);
  longId = await keep(JSON.stringify('one of many lines\n'.repeat(100)));
  await memory.store.close();
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function recalls(argv: readonly string[], options: TestTerminalOptions = {}) {
  const terminal = testTerminal({ cwd: folder, env: { HOME: folder }, ...options });
  const code = await run(['recall', '--data', 'data', ...argv], terminal);
  return { code, out: terminal.written.out(), err: terminal.written.err() };
}

describe('leporello recall', () => {
  const text = 'first line\nsecond: café\nthird: 12345678901234567890\n';

  it('prints the original text, of any tenant', async () => {
    expect(await recalls([textId])).toEqual({ code: 0, out: text, err: '' });
  });

  it('prints messages as text, each under a line that says which it is', async () => {
    expect(await recalls([messagesId])).toEqual({
      code: 0,
      out: '── 1 of 2 · user ──\nHello\n── 2 of 2 · assistant ──\nHi\n',
      err: '',
    });
  });

  it('prints the exact bytes, raw', async () => {
    expect(await recalls([textId, '--raw'])).toEqual({ code: 0, out: literal, err: '' });
    expect(await recalls([messagesId, '--raw'])).toEqual({ code: 0, out: messages, err: '' });
  });

  it('prints JSON on one line', async () => {
    expect(await recalls([textId, '--json'])).toEqual({
      code: 0,
      out: `${JSON.stringify({ id: textId, text })}\n`,
      err: '',
    });
  });

  it('prints the requested part', async () => {
    const out = async (...argv: readonly string[]) => (await recalls(argv)).out;
    expect(await out(textId, '--lines', '2')).toBe('second: café\n[Line 2 of 3.]');
    expect(await out(textId, '--lines=-1')).toBe('third: 12345678901234567890\n\n[Line 3 of 3.]');
    expect(await out(textId, '--query', '12345678901234567890')).toContain('third: 12345678901234567890\n');
    expect(await out(messagesId, '--path', '$[1].n')).toBe('1.50');
    expect(await out(messagesId, '--path', '$[*].content')).toBe('"Hello"\n"Hi"');
  });

  it('limits its output if asked, and says how to read the rest', async () => {
    const { out } = await recalls([longId, '--max-tokens', '100']);
    expect(out).toMatch(
      /^(?:one of many lines\n)+\[Lines 1-\d+ of 100\. For the rest: .*"lines":"\d+-100"\}\]$/,
    );
  });

  it('ends its output with a line break on a terminal', async () => {
    const isTty = { out: true };
    expect((await recalls([textId], { isTty })).out).toBe(text);
    expect((await recalls([messagesId, '--path', '$[1].n'], { isTty })).out).toBe('1.50\n');
    expect((await recalls([textId, '--raw'], { isTty })).out).toBe(`${literal}\n`);
  });
});

describe('leporello recall with a problem', () => {
  it.each<[string, () => readonly string[], RegExp]>([
    [
      'an unknown id',
      () => ['mem_0000000000000000'],
      /^leporello: There is no original mem_0{16} in .*data\. It may have expired, or be in another data folder \(--data\), or belong to another secret\.\n$/,
    ],
    [
      'a folder where nothing is kept',
      () => [textId, '--data', 'elsewhere'],
      /^leporello: The data folder .*elsewhere contains no store\. Set another data folder with --data\.\n$/,
    ],
    [
      'lines',
      () => [textId, '--lines', '9-'],
      /^leporello: There are no lines 9-: the text has 3 lines\.\n$/,
    ],
    ['a path', () => [messagesId, '--path', '$[7]'], /^leporello: .*\n$/],
    ['a path of text', () => [textId, '--path', '$.a'], /^leporello: This memory is not JSON/],
    [
      'words',
      () => [textId, '--query', 'zebra'],
      /^leporello: Nothing matches "zebra": use fewer or other words\.\n$/,
    ],
  ])('says so and ends with 1: %s', async (_, argv, sentence) => {
    const { code, out, err } = await recalls(argv());
    expect({ code, out }).toEqual({ code: 1, out: '' });
    expect(err).toMatch(sentence);
  });

  it('ends with 2 for a text that is not an id', async () => {
    expect(await recalls(['mem_xx'])).toEqual({
      code: 2,
      out: '',
      err: 'leporello: "mem_xx" is not an id: an id is mem_ and 16 characters.\n',
    });
  });

  it('creates no folder and no secret', async () => {
    await recalls([textId, '--data', 'elsewhere']);
    expect(readdirSync(folder)).toEqual(['data']);
    const secret = readFileSync(join(folder, 'data', 'secret'), 'utf8');
    rmSync(join(folder, 'data', 'secret'));
    const { err } = await recalls([textId]);
    expect(err).toMatch(
      /^leporello: The secret of .*data is missing: restore the file secret there, or set LEPORELLO_SECRET\.\n$/,
    );
    const env = { HOME: folder, LEPORELLO_SECRET: secret };
    expect((await recalls([textId, '--raw'], { env })).out).toBe(literal);
  });
});
