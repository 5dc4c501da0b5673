/**
 * Measures the cost of a warm turn as conversations grow: `engine.prepare` of turn n + 1 in a process that saw turn n. The conversations are
 * joined recorded coding sessions of 10,000 to 1,000,000 tokens, as Chat Completions and as Anthropic bodies, in three configurations:
 * "default" folds long conversations and repeats the folds; "nothing due" turns everything on but never folds, so that everything is sent, which
 * costs most; "all off" is for comparison. Then come conversations that are built to be hard, and one of 300 requests ("growing"). The second table
 * divides the time of some turns by step (see steps.ts). The reference is `JSON.parse` with
 * `JSON.stringify` of the same bytes, the least that a gateway needs if it works on objects. Run `node bench/scaling.ts [PREFIX]`; with PREFIX it
 * measures only conversations whose names begin with it. It prints a table and, in a full run with recorded conversations, writes
 * bench/results/scaling.json. It takes about four minutes.
 *
 * Traps: (1) Each turn adds a new call with a result of 1,500 bytes. Every eighth turn starts again from the original conversation, so that
 * small conversations do not grow during the measurement. (2) All contenders get the same bytes in the same round. Figures and the ratio are
 * mean CPU times of the thread, exact to about 15 %, less so for small values. They exclude waiting for a core and garbage collection in helper
 * threads. "wall" columns are the time that a request waits on this machine, so they include other work on it. (3) "reading ms" is
 * measured alone, with its own caches. The rest of a warm turn is prefix hashes, counts, triggers, look-ups, shrinks, the recall tool, and
 * writing and reading the request that is sent. (4) Two kinds of turns are left out: the first turn of a conversation in a process, which parses
 * and counts everything, and turns that fold. (5) A fold leaves less than half of a conversation, and re-inserted recalls are not in the
 * client's body, but parse and stringify process the client's body. (6) The store is SQLite in a file, as in the gateway; bench/stores.ts
 * measures Redis. (7) Before the first row, 1,500 turns of the smallest conversation are played in each
 * format: until the code is compiled, a turn takes up to three times as long. (8) The bodies of "growing" are made before its turns and parsed after them. Before, the garbage of both was collected during the
 * turns, which made the last ones look a third more expensive.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { anthropicMessages } from '../src/codecs/anthropic-messages/index.ts';
import { openaiChat } from '../src/codecs/openai-chat/index.ts';
import type { FoldSettings } from '../src/library/default-engine.ts';
import { sqliteStore } from '../src/store/sqlite/sqlite.ts';
import { asAnthropic } from '../test/support/as-anthropic.ts';
import { loadExactCounter } from '../src/tokens/load-counter.ts';
import { writeResult } from './results.ts';
import { joined, recordedSessions, smallTalk, toolLoop } from './scaling/bodies.ts';
import { recallForEach, talkOf } from './scaling/hidden-recalls.ts';
import {
  type Case,
  type GrowthRow,
  measureGrowth,
  measureWarmTurns,
  type Row,
} from './scaling/warm-turns.ts';
import { type StepTimes, printSteps } from './steps.ts';

const sizes = [10_000, 30_000, 100_000, 300_000, 1_000_000];

/** The most milliseconds that a warm turn may take, by tokens of the conversation. */
const goals: readonly (readonly [tokens: number, ms: number])[] = [
  [100_000, 2],
  [1_000_000, 12],
];

const inChat = { codec: openaiChat, model: 'gpt-4o', convert: (chat: Uint8Array) => chat };
const inAnthropic = {
  codec: anthropicMessages,
  model: 'claude-sonnet-4-5',
  convert: (chat: Uint8Array) => asAnthropic(chat),
};

/** Turns that are played before the first row, in each format. */
const turnsToCompile = 1_500;

/** Turns everything on, offers the recall tool and computes all triggers, but never folds. */
const nothingDue: FoldSettings = {
  offerRecall: 'always',
  models: { '*': { windowTokens: 4_000_000 } },
  triggers: { tokenBudget: false, cacheRent: { minPayback: 1e9 } },
};

/** Turns shrinks and triggers off. */
const allOff: FoldSettings = {
  ...nothingDue,
  triggers: { tokenBudget: false, cacheRent: false },
  shrinks: false,
};

await main(process.argv[2] ?? '');

/** Measures the conversations whose names begin with `prefix`. */
async function main(prefix: string): Promise<void> {
  const recorded = await recordedCases();
  if (recorded.length === 0)
    console.log('There are no recorded conversations in ../shared/data: their rows are left out.');
  const folder = mkdtempSync(join(tmpdir(), 'leporello-bench-'));
  const rows: Row[] = [];
  const steps: Record<string, StepTimes> = {};
  const growth: GrowthRow[] = [];
  try {
    // A gateway runs for days, so its code is compiled. The first 1,500 turns of a process take three times as long.
    for (const one of recorded.filter(({ name }) => name.includes(' 10k tokens, default'))) {
      const store = await sqliteStore({ file: join(folder, `${one.name}.db`) });
      await measureWarmTurns({ ...one, rounds: turnsToCompile }, store);
      await store.close();
    }
    for (const one of [...recorded, ...hardCases()].filter(({ name }) => name.startsWith(prefix))) {
      const store = await sqliteStore({ file: join(folder, `${rows.length}.db`) });
      const measured = await measureWarmTurns(one, store);
      rows.push(measured.row);
      if (measured.steps) steps[one.name] = measured.steps;
      await store.close();
    }
    if ('growing'.startsWith(prefix)) {
      let stores = 0;
      const openStore = () => sqliteStore({ file: join(folder, `growing ${stores++}.db`) });
      const growing = { ...inChat, settings: nothingDue };
      growth.push(...(await measureGrowth(growing, openStore, { requests: 300, together: 50, plays: 10 })));
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
  if (rows.length > 0) console.table(rows);
  if (Object.keys(steps).length > 0) printSteps(steps);
  if (growth.length > 0) console.table(growth);
  console.log(verdict(rows));
  if (recorded.length > 0) writeResult('scaling', { goals, rows, steps, growth });
}

async function recordedCases(): Promise<readonly Case[]> {
  const sessions = recordedSessions();
  if (!sessions) return [];
  const counter = await loadExactCounter('o200k_base');
  const count = (message: object) => counter.count(JSON.stringify(message));
  return sizes.flatMap((tokens) => {
    const messages = joined(sessions, tokens, count);
    // The kernel may count CPU time in ticks of 4 ms, so the rounds should take at least 200 ms of work.
    const rounds = tokens < 300_000 ? Math.ceil(4_000_000 / tokens) : 30;
    const formats = [
      ['chat', inChat],
      ['Anthropic', inAnthropic],
    ] as const;
    return formats.flatMap(([format, wire]) => [
      { name: nameOf(format, tokens, 'default'), ...wire, messages, rounds, settings: {} },
      {
        name: nameOf(format, tokens, 'nothing due'),
        ...wire,
        messages,
        rounds,
        settings: nothingDue,
        showsSteps: format === 'chat' && [10_000, 100_000, 1_000_000].includes(tokens),
      },
      { name: nameOf(format, tokens, 'all off'), ...wire, messages, rounds, settings: allOff },
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
      name: 'hard: 1,100 results, almost all folded',
      ...inChat,
      messages: results,
      rounds,
      settings: foldedAt(120_000),
    },
    {
      name: 'hard: 50 recalls re-inserted',
      ...inChat,
      messages: talk,
      rounds,
      settings: nothingDue,
      before: (engine) => recallForEach(engine, talk, 4_000),
    },
  ];
}

/** Returns settings that fold the first request to half of `tokens`; later requests do not reach the trigger. */
function foldedAt(tokens: number): FoldSettings {
  const tokenBudget = { triggerTokens: tokens, targetTokens: tokens / 2 };
  return { ...nothingDue, triggers: { ...nothingDue.triggers, tokenBudget } };
}

function nameOf(format: string, tokens: number, settings: string): string {
  return `${format}, ${(tokens / 1_000).toLocaleString('en-US')}k tokens, ${settings}`;
}

function verdict(rows: readonly Row[]): string {
  const missed = goals.flatMap(([tokens, ms]) =>
    rows
      .filter(({ conversation }) =>
        conversation.includes(` ${(tokens / 1_000).toLocaleString('en-US')}k tokens`),
      )
      .filter((row) => row['warm turn ms'] > ms)
      .map((row) => `${row.conversation}: ${row['warm turn ms']} ms, the goal is ${ms} ms`),
  );
  const expensive = rows.filter(({ ratio }) => ratio >= 1).map((row) => `${row.conversation}: ${row.ratio}`);
  const lines = [
    missed.length > 0 ? `Too slow: ${missed.join('; ')}.` : 'All warm turns are within their goals.',
    expensive.length > 0
      ? `More expensive than parse + stringify (ratio): ${expensive.join('; ')}.`
      : 'All warm turns cost less than parse + stringify of the same body.',
  ];
  return lines.join('\n');
}
