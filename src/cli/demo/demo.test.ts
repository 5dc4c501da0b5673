import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ownCommand } from '../home.ts';
import { run } from '../run.ts';
import { testTerminal } from '../../../test/support/test-terminal.ts';

const masked = (text: string) =>
  text.replace(/The demo took [\d.]+ s\./, 'The demo took TIME.').replaceAll(ownCommand, 'leporello');

describe('leporello demo', () => {
  it('shows what was sent, what was folded and a recall', async () => {
    const terminal = testTerminal();
    expect(await run(['demo'], terminal)).toBe(0);
    expect(terminal.written.err()).toBe('');
    expect(masked(terminal.written.out())).toMatchInlineSnapshot(`
      "A coding agent looks for a bug. The model is scripted; the client, the gateway and its store are real.
      Client: plain fetch, streaming.
      The model's window: 8,000 tokens; the gateway folds above 6,800, down to 4,800.
      "client" is the size of the client's request, "sent" of the request that the gateway sent (with the tool read_memory), in tokens.

      turn  messages    client   sent  the agent
         1         2       427    548  list_files {"path": "."}
         2         4       619    740  read_log {"name": "export-2026-05-12.log"}
         3         6     4,291  4,412  read_file {"path": "src/export/run-export.ts"}
         4         8     5,132  5,253  read_file {"path": "src/export/select-invoices.ts"}
         5        10     5,691  5,812  read_file {"path": "src/money/parse-amount.ts"}
         6        12     6,007  6,128  run {"command": "git log -p -2 -- src/money src/store/invoice-store.t…
         7        14     6,845  3,397  search {"pattern": "parseAmount\\\\(|\\\\.amount\\\\b", "path": "src"}
                folded: 8,975 characters were replaced by this stub:
                | [Folded result: 86 lines; it begins "2026-05-12T02:00:02 info export started run=20260512-0200
                | batch-size=25 …". read_memory {"id":"mem_xz6p1qzs5has3qdh"} shows it]
         8        16     7,217  3,711  read_file {"path": "src/store/invoice-store.ts"}
         9        18     7,920  4,414  read_file {"path": "test/money/parse-amount.test.ts"}
        10        20     8,361  4,855  edit_file {"path": "src/money/parse-amount.ts", "old": "  const norma…
        11        22     8,608  5,102  edit_file {"path": "test/money/parse-amount.test.ts", "old": "  it('t…
        12        24     8,829  5,323  run {"command": "npm test"}
        13        26    10,767  4,745  "The fix is in and all 40 tests pass. For your list I read the night'…
                folded: 3,186 characters were replaced by this stub, and 4 more like it:
                | [Folded result: 88 lines of the file as it was then. read_memory {"id":"mem_8vvebbj8fmearh0q"}
                | shows it]
                recall: inside this answer the model called read_memory
                {"id":"mem_xz6p1qzs5has3qdh","query":"small-amount"}. The gateway answered with 1,964 tokens, and
                the stream continued. The client got 943 characters of text and no call; the answer ends:
                | **Left out in the night of 12 May**, as the log wrote them:
                | - RE-2026-04417, Stadtwerke Elmau, 12.480,00
                | - RE-2026-04431, Hotel Seeblick GmbH, 1.250,40
                | - RE-2026-04446, Kanzlei Öz, 3.999,99
                | - RE-2026-04452, Autohaus Lindner, 27.315,05

      61,149 tokens were sent in 13 turns instead of 80,714 (24.2 % less), including the second request for the recall.
      The largest request had 6,709 tokens instead of 10,767, in a window of 8,000.
      The gateway restored 6 of 6 folded texts exactly. The demo took TIME.

      Next steps
        leporello serve                 run the gateway for your own agent: change its base URL
        leporello compact FILE          fold a recorded conversation, offline
        leporello help                  show all commands
      "
    `);
  });

  it('prints each turn and the sum as JSON', async () => {
    const terminal = testTerminal();
    await run(['demo', '--json'], terminal);
    const lines = terminal.written
      .out()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(lines).toHaveLength(14);
    expect(lines[6]).toMatchObject({
      turn: 7,
      messages: 14,
      folded: [{ id: expect.stringMatching(/^mem_/), stub: expect.stringMatching(/^\[Folded result/) }],
      reply: { role: 'assistant', tool_calls: [{ function: { name: 'search' } }] },
    });
    expect(lines[12]).toMatchObject({ turn: 13, recall: { asked: expect.stringContaining('small-amount') } });
    expect(lines[13]).toMatchObject({ total: { turns: 13, folded: 6, givenBack: 6 } });
  });

  it('ends by itself and leaves nothing behind', () => {
    const folder = mkdtempSync(join(tmpdir(), 'leporello-demo-test-'));
    const { status, stderr } = spawnSync(process.execPath, ['src/cli/main.ts', 'demo'], {
      encoding: 'utf8',
      // A developer may have set variables, which the demo must not use.
      env: {
        ...process.env,
        TMPDIR: folder,
        OPENAI_BASE_URL: 'http://127.0.0.1:9/v1',
        OPENAI_API_KEY: 'real',
      },
    });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(readdirSync(folder)).toEqual([]);
    rmdirSync(folder);
  });

  it('stops between turns on a signal', async () => {
    const terminal = testTerminal();
    const ended = run(['demo'], terminal);
    await terminal.shows('read_log');
    terminal.stop();
    expect(await ended).toBe(130);
    expect(terminal.written.out()).not.toContain('Next steps');
  });
});
