/**
 * Measures how well recall finds a value that the model does not know. It replays recorded coding sessions through the real engine. For each
 * value that a recorded call used, that the sent context does not show and that an original contains, it asks the recall tool without the
 * value. Run `npm run bench bench/blind-recall.ts [-- --half 1|2] [--limit N]`; it reads ../shared/data, prints a table for the sessions
 * and one for eight sessions joined end to end. It takes some three minutes on one core.
 *
 * The questions, none of which contains the value:
 * - said: what the model wrote in the reply that made the call, or last before it;
 * - call: the name of the tool and the call's other arguments;
 * - both: the two together;
 * - both, less: the same, also without the other values that the reply lacked. A reply that writes a file often lacks many lines that stand side by side, and
 *   the rest of them leads to each; a model that lacks them all has not got these words;
 * - stub: no query, but the id of the stub that has most words in common with `both`, counting the call that it answers;
 * - both, then stub: the stub is read only if `both` did not find the value;
 * - both, then next: the call that the answer names in its last line is made only if `both` did not find the value;
 * - value: the value itself, as in bench/replay.ts. It is the upper limit of a search.
 *
 * Use `--half 1` while you change the search, and `--half 2` to check the change: the halves share no session.
 *
 * The column `of likely ones` counts only values that may come from an earlier message (`mayComeFromEarlier` in bench/replay/blind.ts): most numbers are
 * the `offset` of a read, and occur only as the numbers of lines, or in results for other files.
 *
 * The column `of a reply %` counts each reply once: it is the mean of the shares of its likely values that were found. One call that writes a file has up to 144 of
 * some 600 values.
 *
 * Traps: (1) The model asks for one value at a time; a real model asks for several. (2) Words of the recorded call are known only because the
 * call was made; a model that lacks a value may remember fewer of them. (3) A value counts as found if it occurs anywhere in the answer.
 * Most numbers are the `offset` of a read or a timeout. They occur in originals by chance, so they have columns of their own.
 * (4) Nothing recalled stays in the context, so the same value may be asked for in several requests.
 */
import { parseArgs } from 'node:util';
import { conversationBody, pricesIn } from '../src/cli/replay/conversation-body.ts';
import { chat } from '../src/cli/replay/sources.ts';
import type { Conversation } from '../src/conversation/conversation.ts';
import type { PreparedRequest } from '../src/engine/types.ts';
import { readOriginal } from '../src/recall/read-original.ts';
import { answerRecall } from '../src/recall/tool.ts';
import { createClient } from '../src/replay/client.ts';
import { holds } from '../src/replay/needs.ts';
import { enginePolicy } from '../src/replay/policies.ts';
import { type Need, readRecording, type RecordedStep, type Recording } from '../src/replay/recording.ts';
import { createSight } from '../src/replay/recall-missing.ts';
import { sha256 } from '../src/store/encrypted-store.ts';
import { loadExactCounter } from '../src/tokens/load-counter.ts';
import { mayComeFromEarlier, mostSimilar, stubsIn, wordsOf } from './replay/blind.ts';
import { type BenchRecord, codingSessions, longHorizon, readConversations } from './replay/data.ts';
import { round } from './tokens/arithmetic.ts';

const { values } = parseArgs({ options: { half: { type: 'string' }, limit: { type: 'string' } } });

/** Maximum tokens of one answer, as in the gateway. */
const MAX_TOKENS = 8_000;

const counter = await loadExactCounter('o200k_base');

const questions = [
  'said',
  'call',
  'both',
  'both, less',
  'stub',
  'both, then stub',
  'both, then next',
  'value',
] as const;
type Question = (typeof questions)[number];

type Totals = {
  needs: number;
  missing: number;
  asked: number;
  /** How many of `asked` are numbers, and how many may come from an earlier message, by `mayComeFromEarlier`. */
  numbers: number;
  likely: number;
  /** How many replies lacked a likely value. */
  replies: number;
  /** The sum over these replies of the share of likely values that was found. */
  readonly shares: Record<Question, number>;
  readonly found: Record<Question, number>;
  readonly foundNumbers: Record<Question, number>;
  readonly foundLikely: Record<Question, number>;
  readonly tokens: Record<Question, number>;
};

await main();

async function main(): Promise<void> {
  const records = readConversations();
  if (records === undefined) {
    console.log('bench/blind-recall.ts skipped: there are no recorded conversations in ../shared/data.');
    return;
  }
  const { half, limit = 'Infinity' } = values;
  const sessions = records.filter(({ source }) => source === codingSessions);
  const chosen = sessions.filter((_, index) => half === undefined || index % 2 === Number(half) - 1);
  const groups = [
    { name: 'sessions', records: chosen.slice(0, Number(limit)) },
    { name: 'long conversation', records: longHorizon(chosen) },
  ];
  for (const group of groups) {
    const totals = noTotals();
    for (const record of group.records) await playRecord(record, totals);
    const { needs, missing, asked, numbers, likely } = totals;
    console.log(
      `\n${group.name}: ${group.records.length} recorded, ${needs} values needed, ${missing} not shown, ${asked} of them in originals, ${numbers} of these numbers; ${likely} may come from an earlier message`,
    );
    console.table(questions.map((question) => rowOf(question, totals)));
  }
}

function zeros(): Record<Question, number> {
  return Object.fromEntries(questions.map((question) => [question, 0])) as Record<Question, number>;
}

function noTotals(): Totals {
  return {
    needs: 0,
    missing: 0,
    asked: 0,
    numbers: 0,
    likely: 0,
    replies: 0,
    shares: zeros(),
    found: zeros(),
    foundNumbers: zeros(),
    foundLikely: zeros(),
    tokens: zeros(),
  };
}

function percent(part: number, all: number): number {
  return round((100 * part) / Math.max(1, all), 1);
}

function rowOf(
  question: Question,
  { asked, numbers, likely, replies, shares, found, foundNumbers, foundLikely, tokens }: Totals,
) {
  return {
    question,
    'found %': percent(found[question], asked),
    'of likely ones %': percent(foundLikely[question], likely),
    'of a reply %': percent(shares[question], replies),
    'of numbers %': percent(foundNumbers[question], numbers),
    'of others %': percent(found[question] - foundNumbers[question], asked - numbers),
    'tokens of the answer': round(tokens[question] / Math.max(1, asked), 0),
  };
}

async function playRecord(record: BenchRecord, totals: Totals): Promise<void> {
  const body = conversationBody(record, 15_000, counter);
  const recording = readRecording({ id: record.id, source: record.source, format: chat, body }, counter);
  const settings = { usdPerMillionTokens: pricesIn('anthropic') };
  const session = enginePolicy({ name: 'Leporello', settings, window: 200_000, counter }).open(chat.codec);
  const reading = { digest: sha256, blocks: new Map() };
  const read = (bytes: Uint8Array): Conversation => chat.codec.read(bytes, reading);
  const client = createClient(recording);
  const sight = createSight(recording);
  let now = 0;
  for (const step of recording.steps) {
    client.reach(step.at);
    now += 10_000;
    const { body: sent, prepared } = await session.send(client.request(read, now));
    const context = read(sent);
    totals.needs += step.needs.length;
    const missing = step.needs.filter((need) => !sight.shows(context, need));
    totals.missing += missing.length;
    if (missing.length > 0) await askAll({ recording, step, context, prepared: prepared!, missing }, totals);
  }
}

type Asked = {
  readonly recording: Recording;
  readonly step: RecordedStep;
  readonly context: Conversation;
  readonly prepared: PreparedRequest;
  readonly missing: readonly Need[];
};

async function askAll(request: Asked, totals: Totals): Promise<void> {
  const { context, prepared, missing } = request;
  const found = await Promise.all(prepared.report.memories.map(async (id) => prepared.original(id)));
  const originals = found.map((original) =>
    original === undefined ? '' : readOriginal(new TextDecoder().decode(original)).text,
  );
  const stubs = stubsIn(context, prepared);
  const lacking = missing.map(({ value }) => value.text).sort((one, other) => other.length - one.length);
  const before = { likely: totals.likely, found: { ...totals.foundLikely } };
  for (const need of missing.filter((one) => originals.some((text) => holds(text, one.value)))) {
    const { value } = need;
    const isNumber = /^[\d.,]+$/.test(value.text);
    totals.asked += 1;
    totals.numbers += Number(isNumber);
    const isLikely = mayComeFromEarlier(request.recording, request.step, need);
    totals.likely += Number(isLikely);
    const { said, call } = wordsOf(request.recording, request.step, [value.text]);
    const both = `${said} ${call}`.trim();
    const less = wordsOf(request.recording, request.step, [value.text, ...lacking]);
    const count = (question: Question, isFound: boolean): void => {
      totals.found[question] += Number(isFound);
      totals.foundNumbers[question] += Number(isFound && isNumber);
      totals.foundLikely[question] += Number(isFound && isLikely);
    };
    const ask = async (question: Question, args: object | undefined): Promise<boolean> => {
      if (args === undefined) return false;
      const { text, tokens } = await answerRecall(prepared, JSON.stringify(args), MAX_TOKENS);
      const isFound = holds(text, value);
      count(question, isFound);
      totals.tokens[question] += tokens;
      answer = text;
      return isFound;
    };
    let answer = '';
    await ask('said', said === '' ? undefined : { query: said });
    await ask('call', { query: call });
    await ask('both, less', { query: `${less.said} ${less.call}`.trim() });
    await ask('value', { query: value.text });
    const stub = mostSimilar(stubs, both);
    const tokens = { both: totals.tokens.both, stub: totals.tokens.stub };
    const isInAnswer = await ask('both', { query: both });
    const tokensOfBoth = totals.tokens.both - tokens.both;
    totals.tokens['both, then next'] += tokensOfBoth;
    const next = /; the next: (\{.*\})\]$/.exec(answer)?.[1];
    if (isInAnswer) count('both, then next', true);
    else if (next !== undefined) await ask('both, then next', JSON.parse(next) as object);
    const isInStub = await ask('stub', stub === undefined ? undefined : { id: stub });
    count('both, then stub', isInAnswer || isInStub);
    totals.tokens['both, then stub'] += tokensOfBoth + (isInAnswer ? 0 : totals.tokens.stub - tokens.stub);
  }
  const likely = totals.likely - before.likely;
  totals.replies += Number(likely > 0);
  for (const question of questions)
    totals.shares[question] += (totals.foundLikely[question] - before.found[question]) / Math.max(1, likely);
}
