/**
 * What a warm turn costs as conversations grow: `engine.prepare` of turn n + 1 in a process that saw turn n, from 10,000 to 1,000,000
 * tokens of recorded coding sessions joined, as Chat Completions and as Anthropic bodies. By default, as users have it: what is long is
 * folded, and the fold replayed. Where nothing is due: everything on and reckoned, but no fold made, so that all is sent; it is the dearest.
 * And all off, for comparison. Then conversations that are made to be hard. Beside it `JSON.parse` with `JSON.stringify` of the same
 * bytes, which is what a gateway pays at least that has bodies as objects. Run `node bench/scaling.ts`; it prints a table and, where there
 * are recorded conversations, writes bench/results/scaling.json. Some three minutes.
 *
 * Traps: (1) Each turn adds a call and a result of 1,500 bytes never seen; every eighth begins again from the conversation as it was,
 * otherwise the small ones would grow while they are measured. (2) All contenders get the same bytes in the same round. Figures, and the
 * ratio, are of what the thread worked, in the mean, to some 15 % and more where it is little (waiting for a core is not in them, nor is
 * what helper threads collect of garbage); "by the clock" is the median of what a request waits on this machine, and p95 shows who else
 * works on it. (3) Reading alone is with memos of its own; what it leaves of a warm turn is links, counts, triggers, look-ups, shrinks, the
 * recall tool, and writing and reading what is sent. (4) The first turn a process sees of a conversation is another matter, for it parses
 * and counts everything; and so is a turn that folds: both are left out. (5) A fold leaves less than half, and what recalls put back is not
 * in the client's body, of which parse and stringify are. (6) SQLite in a file, as the gateway has it; what a round trip to Redis adds is in
 * bench/stores.ts.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { anthropicMessages } from '../src/codecs/anthropic-messages/index.ts';
import { openaiChat } from '../src/codecs/openai-chat/index.ts';
import type { FoldSettings } from '../src/library/default-engine.ts';
import { sqliteStore } from '../src/store/sqlite/sqlite.ts';
import { asAnthropic } from '../test/support/as-anthropic.ts';
import { loadExactCounter } from '../src/tokens/load-counter.ts';
import { joined, recordedSessions, smallTalk, toolLoop } from './scaling/bodies.ts';
import { recallForEach, talkOf } from './scaling/hidden-recalls.ts';
import { type Case, measureWarmTurns, type Row } from './scaling/warm-turns.ts';

const sizes = [10_000, 30_000, 100_000, 300_000, 1_000_000];

/** Milliseconds that a warm turn may take at so many tokens. */
const goals: readonly (readonly [tokens: number, ms: number])[] = [
  [100_000, 2],
  [1_000_000, 12],
];

const inChat = { codec: openaiChat, model: 'gpt-4o', spell: (chat: Uint8Array) => chat };
const inAnthropic = {
  codec: anthropicMessages,
  model: 'claude-sonnet-4-5',
  spell: (chat: Uint8Array) => asAnthropic(chat),
};

/** Everything on, the recall tool offered, the cache's rent reckoned with every request, but nothing ever asks for a fold. */
const nothingDue: FoldSettings = {
  offerRecall: 'always',
  models: { '*': { window: 4_000_000 } },
  triggers: { tokenBudget: false, cacheRent: { minPayback: 1e9 } },
};

/** Nothing is made smaller, and nothing is reckoned that could ask for it. */
const off: FoldSettings = {
  ...nothingDue,
  triggers: { tokenBudget: false, cacheRent: false },
  shrinks: false,
};

await main(process.argv[2] ?? '');

/** `only`: conversations whose names begin so. */
async function main(only: string): Promise<void> {
  const recorded = await recordedCases();
  if (recorded.length === 0)
    console.log('There are no recorded conversations in ../shared/data: their rows are left out.');
  const folder = mkdtempSync(join(tmpdir(), 'leporello-bench-'));
  const rows: Row[] = [];
  try {
    for (const one of [...recorded, ...hardCases()].filter(({ name }) => name.startsWith(only))) {
      const store = await sqliteStore({ file: join(folder, `${rows.length}.db`) });
      rows.push(await measureWarmTurns(one, store));
      await store.close();
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
  console.table(rows);
  console.log(verdict(rows));
  if (only !== '' || recorded.length === 0) return;
  const results = new URL('results/', import.meta.url);
  mkdirSync(results, { recursive: true });
  const json = JSON.stringify({ node: process.version, goals, rows }, null, 2);
  writeFileSync(new URL('scaling.json', results), `${json}\n`);
}

async function recordedCases(): Promise<readonly Case[]> {
  const sessions = recordedSessions();
  if (!sessions) return [];
  const counter = await loadExactCounter('o200k_base');
  const count = (message: object) => counter.count(JSON.stringify(message));
  return sizes.flatMap((tokens) => {
    const messages = joined(sessions, tokens, count);
    // Enough for 200 ms of work, which is counted in ticks.
    const rounds = tokens < 300_000 ? Math.ceil(4_000_000 / tokens) : 30;
    const formats = [
      ['chat', inChat],
      ['Anthropic', inAnthropic],
    ] as const;
    return formats.flatMap(([format, wire]) => [
      { name: nameOf(format, tokens, 'by default'), ...wire, messages, rounds, settings: {} },
      { name: nameOf(format, tokens, 'nothing due'), ...wire, messages, rounds, settings: nothingDue },
      { name: nameOf(format, tokens, 'all off'), ...wire, messages, rounds, settings: off },
    ]);
  });
}

function hardCases(): readonly Case[] {
  const results = toolLoop(1_100, 1_500);
  const talk = talkOf(50);
  const rounds = 40;
  return [
    {
      name: 'hard: 10,000 messages of 80 bytes',
      ...inChat,
      messages: smallTalk(10_000, 80),
      rounds,
      settings: nothingDue,
    },
    {
      name: 'hard: 1,100 results, nearly all folded',
      ...inChat,
      messages: results,
      rounds,
      settings: foldedAt(120_000),
    },
    {
      name: 'hard: 50 recalls put back',
      ...inChat,
      messages: talk,
      rounds,
      settings: nothingDue,
      before: (engine) => recallForEach(engine, talk, 4_000),
    },
  ];
}

/** The first request is folded to half of so many tokens; no later one reaches the trigger. */
function foldedAt(tokens: number): FoldSettings {
  const tokenBudget = { trigger: Math.floor(tokens), target: Math.floor(tokens / 2) };
  return { ...nothingDue, triggers: { ...nothingDue.triggers, tokenBudget } };
}

function nameOf(format: string, tokens: number, what: string): string {
  return `${format}, ${(tokens / 1_000).toLocaleString('en-US')}k tokens, ${what}`;
}

function verdict(rows: readonly Row[]): string {
  const missed = goals.flatMap(([tokens, ms]) =>
    rows
      .filter(({ conversation }) =>
        conversation.includes(` ${(tokens / 1_000).toLocaleString('en-US')}k tokens`),
      )
      .filter((row) => row['warm turn ms'] > ms)
      .map((row) => `${row.conversation} takes ${row['warm turn ms']} ms, not ${ms}`),
  );
  const dear = rows.filter(({ ratio }) => ratio >= 1).map((row) => `${row.conversation}: ${row.ratio}`);
  const told = [
    missed.length > 0 ? `Too slow: ${missed.join('; ')}.` : 'All warm turns are within their goals.',
    dear.length > 0
      ? `Dearer than parse + stringify: ${dear.join('; ')}.`
      : 'All cost less than parse + stringify of the same body.',
  ];
  return told.join('\n');
}
