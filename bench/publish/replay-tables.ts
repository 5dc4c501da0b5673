/** Writes the tables of bench/replay.ts. */
import type { Figures } from '../../src/replay/figures.ts';
import { codingSessions, longHorizonId } from '../replay/data.ts';
import { columns, markdown, number, percent, type Row } from './markdown.ts';

/** The figures of one policy, as bench/replay.ts writes them. */
type PolicyFigures = Omit<Figures, 'worst'> & { readonly worst: Readonly<Record<string, number>> };

export type ReplayFigures = {
  readonly window: number;
  readonly sources: readonly {
    readonly source: string;
    readonly conversations: number;
    readonly requests: number;
    readonly policies: readonly PolicyFigures[];
  }[];
};

export const titles: Readonly<Record<string, string>> = {
  [codingSessions]: 'coding sessions',
  [longHorizonId]: 'eight of them joined',
  'tau-bench': 'customer service (tau-bench)',
  'tau2-bench': 'customer service (tau2-bench)',
  intercode: 'shell tasks (intercode)',
  'who-and-when': 'teams of agents (who-and-when)',
  'reflexion-hotpotqa': 'questions on encyclopedia pages (reflexion-hotpotqa)',
};

/** Shows what the README shows. */
export function whatItSaves(figures: ReplayFigures): string {
  const rows = (
    [
      ['**Leporello**', 'Leporello', '**'],
      ['LangChain context editing, above 100,000 tokens', 'LangChain contextEditing', ''],
      ['AI SDK `pruneMessages`, above 100,000 tokens', 'AI SDK pruneMessages over 100k', ''],
      ['keep the last 10 results', 'keep last 10', ''],
      ["the client's own compaction at 160,000 tokens", "client's own compaction at 160,000", ''],
      ['full context', 'full context', ''],
    ] as const
  )
    // A result that was recorded before a policy existed has no row for it.
    .filter(([, policy]) =>
      figures.sources.some((one) => one.policies.some((each) => each.policy === policy)),
    )
    .map(([label, policy, mark]) => {
      const [sessions, long] = [ofPolicy(figures, 'coding', policy), ofPolicy(figures, 'long', policy)];
      const cost = (one: typeof long): string => `${mark}${bestPrices(one).toFixed(2)}${mark}`;
      return [label, cost(sessions), cost(long), lostOf(sessions), lostOf(long)];
    });
  const head = [
    '',
    'coding sessions: cost',
    'long session: cost',
    'coding sessions: lost',
    'long session: lost',
  ];
  return markdown(head, rows, '|---|---:|---:|---:|---:|');
}

/** Says in one sentence what was saved: for the long session relative to compaction, because its full context fits no window. */
export function savingsSentence(figures: ReplayFigures): string {
  const costOf = (source: string, policy: string) => bestPrices(ofPolicy(figures, source, policy));
  const sessions = percent(1 - costOf('coding', 'Leporello'), 0);
  const compacted = costOf('long', "client's own compaction at 160,000");
  const long = percent(1 - costOf('long', 'Leporello') / compacted, 0);
  return `In replays, recorded coding sessions cost ${sessions} less than without it, and one very long session ${long} less than with the client's own compaction ([figures and limits](#what-it-saves)).`;
}

function lostOf({ lost }: { readonly lost: number }): string {
  return lost === 0 ? 'none' : percent(lost, 1);
}

export function costBySource(figures: ReplayFigures): string {
  const rows = sourcesOf(figures).map(({ title, conversations, requests, source }) => {
    const own = ofPolicy(figures, source, 'Leporello');
    const uncached = ofPolicy(figures, source, 'Leporello, no cache');
    return [
      title,
      number(conversations),
      number(requests),
      `${bestPrices(own).toFixed(3)} (${(own.worst['anthropic'] ?? 0).toFixed(2)})`,
      (uncached.cost['uncached'] ?? 0).toFixed(3),
      own.recallsPer100.toFixed(1),
      percent(own.lost, 1),
      percent(own.stable, 1),
      percent(own.visible, 1),
    ];
  });
  return markdown(
    [
      '',
      'conversations',
      'requests',
      'cost (worst)',
      'cost without a cache',
      'recalls',
      'lost',
      'stable',
      'visible',
    ],
    rows,
  );
}

export function costByPolicy(figures: ReplayFigures): string {
  const [coding, long] = (['coding', 'long'] as const).map((source) => policiesOf(figures, source));
  const rows = coding!.map((one, at) => {
    const other = long![at]!;
    return [
      one.policy,
      bestPrices(one).toFixed(3),
      percent(one.lost, 1),
      one.recallsPer100.toFixed(1),
      bestPrices(other).toFixed(3),
      percent(other.lost, 1),
      other.recallsPer100.toFixed(1),
    ];
  });
  const head = ['sessions', 'joined'].flatMap((name) => [
    `${name}: cost`,
    `${name}: lost`,
    `${name}: recalls`,
  ]);
  return markdown(['', ...head], rows);
}

function policiesOf({ sources }: ReplayFigures, source: 'coding' | 'long') {
  const name = source === 'coding' ? codingSessions : longHorizonId;
  return sources.find((one) => one.source === name)?.policies ?? [];
}

/** Returns the sources with a title, in the order of the titles. */
function sourcesOf({ sources }: ReplayFigures) {
  return Object.entries(titles).flatMap(([name, title]) =>
    sources.filter(({ source }) => source === name).map((source) => ({ ...source, title })),
  );
}

/** `source`: a name of the result, or `coding` or `long` for the sources that the README shows. */
function ofPolicy({ sources }: ReplayFigures, source: string, policy: string): PolicyFigures {
  const name = source === 'coding' ? codingSessions : source === 'long' ? longHorizonId : source;
  const found = sources.find((one) => one.source === name)?.policies.find((one) => one.policy === policy);
  if (found === undefined) throw new Error(`bench/results/replay.json has no policy ${policy} of ${name}.`);
  return found;
}

/** Returns the cost at Anthropic's cache prices, relative to the full context. */
function bestPrices({ cost }: PolicyFigures): number {
  return cost['anthropic'] ?? Number.NaN;
}

/** Shows what each preset costs and keeps, as bench/presets.ts measured it. */
export function presetTable(rows: readonly Row[]): string {
  return columns(rows, {
    preset: 'preset',
    cost: ({ cost = 0 }) => Number(cost).toFixed(3),
    visible: ({ 'visible %': visible = 0 }) => `${visible} %`,
    recalls: 'recalls',
    'planted findings': ({ 'findings %': kept = 0 }) => `${kept} %`,
    demands: ({ 'demands %': kept = 0 }) => `${kept} %`,
    outcomes: ({ 'outcomes %': kept = 0 }) => `${kept} %`,
  });
}

/** Shows the break-even points that bench/break-even.ts computed. */
export function breakEvenTable(rows: readonly Row[]): string {
  return columns(rows, {
    '': ({ source = '' }) => (source === longHorizonId ? 'long session' : 'coding sessions'),
    'tokens folded': 'tokens folded',
    recalls: 'recalls',
    requests: 'requests',
    'break-even at 25 % tools and system text': breakEvenAt('at 25 %'),
    'at 66 %': breakEvenAt('at 66 %'),
  });
}

/** Writes the extra requests at which nothing is saved, in all and for 1,000 folded tokens. */
function breakEvenAt(share: string): (row: Row) => string {
  return ({ [share]: at = 0, 'tokens folded': folded = 0 }) =>
    `${number(Math.round((Number(at) * Number(folded)) / 1_000))} extra requests (${Number(at).toFixed(2)})`;
}

/** Says in a sentence what a model costs that does not know what it lacks. */
export function blindSentence(rows: readonly Row[]): string {
  const blind = rows.filter(({ isBlind }) => String(isBlind) === 'true');
  const of = (source: string) => blind.find((row) => row['source'] === source) ?? {};
  const [sessions, long] = [of(codingSessions), of(longHorizonId)];
  const both = (text: (row: Row) => string) => `${text(sessions)} and ${text(long)}`;
  return `In this table the model knows which value it lacks. One that asks with its own words alone costs ${both((row) => Number(row['cost']).toFixed(2))}, and for ${both((row) => `${row['run again %']} %`)} of the values it must run the tool again ([how](docs/benchmarks.md#a-model-that-does-not-know-the-value)).`;
}

/** Shows what a model that does not know the values costs, beside one that does, as bench/blind-replay.ts measured it. */
export function blindTable(rows: readonly Row[]): string {
  return columns(rows, {
    '': ({ source = '' }) => titles[String(source)] ?? String(source),
    'the model': ({ isBlind }) => (String(isBlind) === 'true' ? 'asks blind' : 'knows the value'),
    conversations: 'conversations',
    cost: ({ cost = 0 }) => Number(cost).toFixed(3),
    'calls per 100 replies': 'calls per 100 replies',
    visible: ({ 'visible %': visible = 0 }) => `${visible} %`,
    'run again': ({ 'run again %': again = 0 }) => `${again} %`,
  });
}
