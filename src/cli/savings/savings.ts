/**
 * Implements `leporello savings`: adds up what the sessions in the files of agent CLIs cost, and estimates what they would have cost through
 * Leporello, by replaying them. Sessions that already ran through a gateway of this user count as they are. Reads only; nothing is sent and nothing is
 * stored.
 */
import type { Usage } from '../../conversation/conversation.ts';
import { groupBy } from '../../es2024.ts';
import { type Price, type PriceList, pricesFrom } from '../../tokens/model-facts.ts';
import { addedUsage, noUsage, plainUsage } from '../../receipts/cost.ts';
import { billOf } from '../../receipts/cost.ts';
import { type KeptReceipt, count, number, requestReceipt, usdText } from '../../receipts/detail.ts';
import { enginePolicy, fullContext } from '../../replay/policies.ts';
import { readRecording } from '../../replay/recording.ts';
import { play } from '../../replay/replay.ts';
import { costOf } from '../../replay/tally.ts';
import { loadExactCounter } from '../../tokens/load-counter.ts';
import { FALLBACK_WINDOW, loadModelInfo } from '../../tokens/models.ts';
import type { TokenCounter } from '../../tokens/token-counter.ts';
import type { SavingsArgs } from '../command-args.ts';
import { type AgentCliName, agentClis } from '../wrap/clients.ts';
import { createEncryptedStore } from '../../store/encrypted-store.ts';
import { createReceiptStore } from '../../store/receipt-store.ts';
import { type LoadedConfig, loadConfig } from '../config/load-config.ts';
import { gatewaySettings, tenantToRead } from '../config/to-settings.ts';
import { homeOf } from '../home.ts';
import { chat } from '../replay/sources.ts';
import { conversationBody, replayedModel } from '../replay/conversation-body.ts';
import { openExistingStore } from '../open-store.ts';
import type { Environment, Terminal } from '../terminal.ts';
import { findSessions, sessionFolders } from './find-sessions.ts';
import { type ClientSession, type SessionCall, type SessionConversation, replayable } from './session.ts';

/** The clock, and the time that the replay may take. Tests replace both. */
export type SavingsDeps = {
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Milliseconds after which no further conversation is replayed. */
  readonly replayMs: number;
};

const usualDeps: SavingsDeps = { now: () => Date.now(), replayMs: 10_000 };

const dayMs = 24 * 60 * 60 * 1_000;

/** Runs the command. Resolves with the exit code, 1 if no sessions were found. */
export async function savings(
  args: SavingsArgs,
  terminal: Terminal,
  deps: SavingsDeps = usualDeps,
): Promise<number> {
  const loaded = await loadConfig(args.settings, terminal);
  const { config } = loaded;
  const settings = gatewaySettings(config);
  const prices = await pricesFrom(settings.usdPerMillionTokens)();
  const days = args.days ?? 7;
  const since = deps.now() - days * dayMs;
  const place = { env: terminal.env, home: homeOf(terminal.env) ?? terminal.cwd };
  const paid = await paidIn(findSessions(place, since), since, prices);
  if (paid.length === 0) {
    const names = agentClis.map(({ title }) => title).join(', ');
    terminal.err(
      `leporello: no session of ${names} in the last ${days} days was found. These folders were searched:\n` +
        `${sessionFolders(place)
          .map((folder) => `  ${folder}\n`)
          .join('')}With --days ${4 * days} it looks further back.\n`,
    );
    return 1;
  }
  const servedBefore = await servedRequests(loaded, terminal.env);
  const served = new Set(paid.filter(({ conversation }) => conversation.calls.some(servedBefore)));
  const latest = deps.now() + deps.replayMs;
  const counter = await loadExactCounter('o200k_base');
  const ratios = new Map<PaidConversation, number>();
  for (const one of paid.toSorted((a, b) => (b.usd ?? 0) - (a.usd ?? 0))) {
    if (served.has(one)) continue;
    if (!args.all && deps.now() > latest) break;
    const ratio = await relativeCost(one, settings, prices, counter);
    if (ratio !== undefined) ratios.set(one, ratio);
  }
  const rows = [...groupBy(paid, ({ client }) => client)].map(([client, own]) =>
    sumUp(client, own, ratios, served),
  );
  const total = sumUp('total', paid, ratios, served);
  await terminal.out(
    args.json ? `${JSON.stringify({ days, clients: rows, total })}\n` : table(days, rows, total),
  );
  return 0;
}

/** A conversation with what its calls cost. */
type PaidConversation = {
  readonly client: AgentCliName;
  readonly session: string;
  readonly conversation: SessionConversation;
  readonly usage: Usage;
  readonly requests: number;
  readonly unpriced: number;
  /** Undefined if no call has a known price. */
  readonly usd: number | undefined;
};

async function paidIn(
  sessions: AsyncIterable<ClientSession>,
  since: number,
  prices: PriceList,
): Promise<readonly PaidConversation[]> {
  const counted = new Set<string>();
  const found: PaidConversation[] = [];
  for await (const { client, id, conversations } of sessions) {
    for (const conversation of conversations) {
      // A resumed session repeats earlier replies in a new file.
      const calls = conversation.calls.filter((call) => {
        const key = `${client} ${call.id}`;
        const isNew = call.id === undefined || !counted.has(key);
        if (call.id !== undefined) counted.add(key);
        return isNew && call.at >= since;
      });
      if (calls.length === 0) continue;
      const bills = calls.map(({ model, usage }) => billOf((tokens) => prices.priceOf(model, tokens), usage));
      const known = bills.flatMap((bill) => bill?.total ?? []);
      found.push({
        client,
        session: id,
        conversation: { ...conversation, calls },
        usage: calls.reduce((sum, { usage }) => addedUsage(sum, usage), noUsage),
        requests: calls.length,
        unpriced: bills.length - known.length,
        usd: known.length === 0 ? undefined : known.reduce((sum, usd) => sum + usd, 0),
      });
    }
  }
  return found;
}

/** The receipts that are compared with session files. */
const maxReceipts = 2_000;

/** Milliseconds by which the time of a call in a session file may differ from that of its receipt. */
const maxApartMs = 30 * 60 * 1_000;

/**
 * Returns whether a gateway of this user served a call: its receipt has the same usage at about the same time. The clients have no id in common with
 * receipts. Without a store that can be read, no call counts as served.
 */
async function servedRequests(
  { config, dataDir }: LoadedConfig,
  env: Environment,
): Promise<(call: SessionCall) => boolean> {
  const timesByUsage = new Map<string, number[]>();
  for (const { at, usage } of await receiptsIn(config, dataDir, env).catch(() => []))
    if (usage) timesByUsage.set(usageKey(usage), [...(timesByUsage.get(usageKey(usage)) ?? []), at]);
  return ({ at, usage }) =>
    timesByUsage.get(usageKey(usage))?.some((time) => Math.abs(time - at) < maxApartMs) ?? false;
}

function usageKey({ input, cacheRead, output }: Usage): string {
  return [input, cacheRead, output].join(' ');
}

async function receiptsIn(config: LoadedConfig['config'], dataDir: string | undefined, env: Environment) {
  const opened = await openExistingStore(dataDir, env, config);
  if ('missing' in opened) return [];
  const { store } = opened;
  try {
    const receipts = createReceiptStore<KeptReceipt>({
      encryptedStore: createEncryptedStore(opened),
    });
    const kept = await receipts.list(tenantToRead(undefined, config), maxReceipts);
    return kept.flatMap((one) => requestReceipt(one) ?? []);
  } finally {
    await store.close();
  }
}

/** Replays a conversation, and returns its cost through Leporello relative to its cost without; undefined if it cannot be replayed. */
async function relativeCost(
  { client, session, conversation }: PaidConversation,
  settings: ReturnType<typeof gatewaySettings>,
  prices: PriceList,
  counter: TokenCounter,
): Promise<number | undefined> {
  const [first] = conversation.calls;
  const price = first && prices.priceOf(first.model);
  if (!first || !price) return undefined;
  const { window, maxInput, cacheKeptMs } = await loadModelInfo(first.model, settings.models ?? {});
  const { messages, coldAt } = replayable(conversation.items, cacheKeptMs);
  const reply = messages.findIndex(({ role }) => role === 'assistant');
  if (reply <= 0) return undefined;
  // Session files hold no system prompt and no tools: they are what the first request had beside its messages.
  const opening = messages
    .slice(0, reply)
    .reduce((sum, { content }) => sum + counter.count(String(content)), 0);
  const body = conversationBody({ messages }, Math.max(0, first.usage.input - opening), counter);
  const recording = readRecording({ id: session, source: client, format: chat, body, coldAt }, counter);
  if (recording.steps.length === 0) return undefined;
  const limit = maxInput ?? window ?? FALLBACK_WINDOW;
  const usdPerMillionTokens = { ...settings.usdPerMillionTokens, [replayedModel]: price };
  const leporello = enginePolicy({
    name: 'Leporello',
    settings: { ...settings, usdPerMillionTokens },
    window: limit,
    counter,
  });
  const rates = ratesOf(price);
  const [without, through] = [
    await play(recording, fullContext, { window: limit }),
    await play(recording, leporello, { window: limit }),
  ].map(({ tally }) => costOf(tally.tokens, rates));
  return through! / without!;
}

/** Returns prices relative to that of an uncached token. */
function ratesOf({ input, cacheRead, cacheWrite, output }: Price) {
  const per = input === 0 ? 1 : input;
  return { read: cacheRead / per, write: cacheWrite / per, output: output / per };
}

/** The sums of one client, or of all. */
type SavingsRow = {
  readonly client: string;
  readonly sessions: number;
  readonly requests: number;
  readonly usage: Usage;
  /** Cost at list prices, of the calls with a known price. */
  readonly usd: number;
  /** Requests without a known price. */
  readonly unpriced: number;
  /** The estimated cost through Leporello. Conversations that were not replayed count unchanged. */
  readonly withLeporello: number;
  /** The part of `usd` that was replayed. */
  readonly replayedUsd: number;
  /** Sessions that already ran through Leporello, at least in part, and what they cost. */
  readonly servedSessions: number;
  readonly servedUsd: number;
};

function sumUp(
  client: string,
  paid: readonly PaidConversation[],
  ratios: ReadonlyMap<PaidConversation, number>,
  served: ReadonlySet<PaidConversation>,
): SavingsRow {
  const sum = (value: (one: PaidConversation) => number): number =>
    paid.reduce((total, one) => total + value(one), 0);
  return {
    client,
    sessions: new Set(paid.map(({ session }) => session)).size,
    requests: sum(({ requests }) => requests),
    usage: plainUsage(paid.reduce((total, { usage }) => addedUsage(total, usage), noUsage)),
    usd: rounded(sum(({ usd = 0 }) => usd)),
    unpriced: sum(({ unpriced }) => unpriced),
    withLeporello: rounded(sum((one) => (one.usd ?? 0) * (ratios.get(one) ?? 1))),
    replayedUsd: rounded(sum((one) => (ratios.has(one) ? (one.usd ?? 0) : 0))),
    servedSessions: new Set(paid.filter((one) => served.has(one)).map(({ session }) => session)).size,
    servedUsd: rounded(sum((one) => (served.has(one) ? (one.usd ?? 0) : 0))),
  };
}

function rounded(usd: number): number {
  return Math.round(usd * 1e6) / 1e6;
}

const heads = ['', 'sessions', 'requests', 'input tokens', 'from cache', 'output', 'cost', 'with Leporello'];

function table(days: number, rows: readonly SavingsRow[], total: SavingsRow): string {
  const titles = new Map<string, string>(agentClis.map(({ name, title }) => [name, title]));
  const shown = rows.length > 1 ? [...rows, total] : rows;
  const cells = [
    heads,
    ...shown.map(({ client, sessions, requests, usage, usd, withLeporello }) => [
      titles.get(client) ?? client,
      number(sessions),
      number(requests),
      number(usage.input),
      usage.input === 0 ? '' : `${((100 * usage.cacheRead) / usage.input).toFixed(1)} %`,
      number(usage.output),
      usdText(usd),
      usdText(withLeporello),
    ]),
  ];
  const widths = heads.map((_, at) => Math.max(...cells.map((row) => row[at]!.length)));
  const lines = cells.map((row) =>
    row.map((cell, at) => (at === 0 ? cell.padEnd(widths[at]!) : cell.padStart(widths[at]!))).join('  '),
  );
  return `Sessions of the last ${days} days, at list prices\n\n${lines.map((line) => `${line}\n`).join('')}\n${closing(total)}`;
}

function closing(total: SavingsRow): string {
  const { usd, withLeporello, replayedUsd, unpriced, requests, servedSessions, servedUsd } = total;
  const rest = usd - replayedUsd - servedUsd;
  const after = withLeporello - rest - servedUsd;
  const saved = replayedUsd - after;
  const share = replayedUsd === 0 ? 0 : (100 * saved) / replayedUsd;
  const part =
    rest < 0.005 * usd ? '' : ` The other ${usdText(rest)} count unchanged here; --all replays them, too.`;
  return [
    replayedUsd === 0
      ? 'No conversation could be replayed.\n'
      : `Replayed: ${usdText(replayedUsd)} would have been ${usdText(after)} with Leporello, ${Math.abs(share).toFixed(1)} % ${saved < 0 ? 'more' : 'less'}, recalls included.${part}\n` +
        'This is an estimate: it assumes that the agent does the same with the folded context.\n',
    servedSessions === 0
      ? ''
      : `${count(servedSessions, 'session')} (${usdText(servedUsd)}) already ran through Leporello, so ${servedSessions === 1 ? 'it counts' : 'they count'} unchanged: the receipts of its gateway say what it saved there.\n`,
    unpriced === 0
      ? ''
      : `${number(unpriced)} of ${number(requests)} requests are of models without a known price.\n`,
  ].join('');
}
