import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { SourceFigures } from '../../replay/figures.ts';
import { run } from '../run.ts';
import { testTerminal } from '../../../test/support/test-terminal.ts';

const sample = JSON.parse(readFileSync('src/cli/samples/missing-invoices.json', 'utf8')) as {
  readonly messages: readonly unknown[];
};
const recorded = JSON.stringify({ id: 'run/1', source: 'samples', messages: sample.messages });

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'leporello-replay-'));
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

function put(name: string, content: string | Uint8Array): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

async function replays(...argv: readonly string[]) {
  const terminal = testTerminal({ cwd: folder, env: { HOME: folder } });
  const code = await run(['replay', ...argv], terminal);
  return { code, out: terminal.written.out(), err: terminal.written.err() };
}

describe('leporello replay', () => {
  it('replays recorded conversations with each policy, and prints the costs', async () => {
    const file = put('runs.jsonl.gz', gzipSync(`${recorded}\n`));
    const { code, out, err } = await replays(file, '--window-tokens', '9000', '--prefix-tokens', '1000');
    expect([code, err]).toEqual([0, '']);
    const [title, heads, ...rows] = out.trimEnd().split('\n');
    expect(title).toMatch(/^samples: 1 conversation, \d+ requests, \d+ values used again$/);
    expect(heads).toMatch(/^ {2}policy +anthropic +openai +uncached /);
    expect(rows.map((row) => row.trim().split(/ {2,}/)[0])).toEqual([
      'full context',
      'Leporello',
      'keep last 10',
      'keep last 3',
      'cut to 2 × 500',
    ]);
  });

  it('fits the window with the engine when the full context does not, and loses nothing', async () => {
    const file = put('runs.jsonl', `${recorded}\n`);
    const early = 'early={"triggers":{"tokenBudget":{"triggerTokens":6000,"targetTokens":4000}}}';
    const { out } = await replays(
      file,
      '--window-tokens',
      '9000',
      '--prefix-tokens',
      '1000',
      '--engine',
      early,
      '--json',
    );
    const [figures] = JSON.parse(out) as readonly SourceFigures[];
    const [whole, usual, other] = figures!.policies;
    expect(whole).toMatchObject({ policy: 'full context', cost: { anthropic: 1, openai: 1, uncached: 1 } });
    expect(whole!.overWindow).toBeGreaterThan(0);
    for (const engine of [usual!, other!])
      expect(engine).toMatchObject({ overWindow: 0, failed: 0, unfit: 0, lost: 0 });
    expect(other!.peakTokens).toBeLessThan(usual!.peakTokens);
  });

  it('reads a log of requests as conversations, in the format in which they were sent', async () => {
    const bodyOf = (count: number) =>
      JSON.stringify({ model: 'm', messages: sample.messages.slice(0, count), tools: [] });
    const file = put('log.jsonl', [3, 9, 15].map(bodyOf).join('\n'));
    const { code, out } = await replays(file, '--json');
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject([{ source: 'log.jsonl', conversations: 1 }]);
  });

  it('writes a report', async () => {
    const html = join(folder, 'report.html');
    const { code } = await replays(put('runs.jsonl', recorded), '--html', 'report.html');
    expect(code).toBe(0);
    expect(readFileSync(html, 'utf8')).toContain('<h2>samples</h2>');
    const bad = await replays(join(folder, 'runs.jsonl'), '--html', 'no/such/report.html');
    expect(bad.code).toBe(2);
    expect(bad.err).toMatch(/^leporello: --html is no\/such\/report.html, which cannot be written: ENOENT/);
  });

  it('replays only the selected sources', async () => {
    const other = recorded.replace('samples', 'others');
    const file = put(
      'runs.jsonl',
      `${recorded}\n${other}\n${JSON.stringify({ source: 'others', messages: sample.messages.slice(1) })}\n`,
    );
    const { out } = await replays(file, '--source', 'oth', '--limit', '1', '--json');
    expect(JSON.parse(out)).toMatchObject([{ source: 'others', conversations: 1 }]);
  });

  it('reports lines that it cannot read, and an input without conversations', async () => {
    const broken = '{"messages":[{"content":1}]}';
    const { code, err } = await replays(put('runs.jsonl', `{"a":1}\n${recorded}\n${broken}\n`));
    expect(code).toBe(1);
    expect(err).toContain("line 1: skipped: it has no list 'messages', 'input' or 'contents'\n");
    expect(err).toMatch(/line 3: skipped: The body is not a Chat Completions request/);
    const nothing = await replays(put('none.jsonl', '{"messages":[{"role":"user","content":"Hi"}]}'));
    expect([nothing.code, nothing.err]).toEqual([
      1,
      'leporello: The input contains no conversation with a reply of the model. Give request bodies with replies, one per line (leporello help replay); leporello savings reads the session files of agent CLIs.\n',
    ]);
  });

  it('replays the readable part of a damaged file', async () => {
    const whole = gzipSync(`${recorded}\n`);
    const { code, err } = await replays(put('cut.jsonl.gz', whole.subarray(0, whole.length - 9)));
    expect(code).toBe(1);
    expect(err).toMatch(
      /^leporello: .*cut\.jsonl\.gz is damaged or ends too early: unexpected end of file\n$/,
    );
  });

  it('can be interrupted in the middle of a conversation', async () => {
    const shorter = JSON.stringify({ source: 'samples', messages: sample.messages.slice(1) });
    const terminal = testTerminal({
      cwd: folder,
      env: { HOME: folder },
      input: [`${shorter}\n${recorded}\n`],
      isTty: { err: true },
    });
    const ended = run(['replay', '-'], terminal);
    await terminal.shows('1 of 2 conversations');
    terminal.stop();
    expect(await ended).toBe(130);
    expect(terminal.written.out()).toBe('');
    expect(terminal.written.err()).toMatch(/leporello: interrupted\.\n$/);
  });

  it('does not start with an invalid engine or file', async () => {
    expect(await replays('none.jsonl')).toMatchObject({ code: 2 });
    expect(await replays('none.jsonl', '--engine', 'x')).toMatchObject({ code: 2 });
  });
});
