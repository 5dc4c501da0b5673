/**
 * Keeps and reports what a shadow found out: for each request that was sent again, which replies agreed and what it cost. Holds a set of
 * strategies for a model once its folds are shown to change what the model does next, and only then.
 */
import { openFixed } from '../caches.ts';
import { groupBy } from '../es2024.ts';
import type { EncryptedStore } from '../store/encrypted-store.ts';
import { createTurns } from '../store/store.ts';
import { encodeRecord } from '../store/records.ts';
import { type Level, levels, type ReplySums } from './decision.ts';
import { createJournal, type JournalOptions } from './journal.ts';
import {
  type Agreement,
  estimateShadow,
  type ShadowEstimate,
  type ShadowSample,
  type ShadowState,
  stateOf,
} from './shadow-estimate.ts';

/** One request that was sent again, and how its replies agree. It holds no content, no name, and no digest of content. */
export type RequestComparison = {
  /** Identifies the place in the conversation, so that each is compared once. */
  readonly unit: string;
  readonly lastAt: number;
  readonly model: string;
  /** The strategies whose edits were sent, joined: what differs between the folded and the whole request. */
  readonly strategies: string;
  readonly settings: string;
  readonly conversation: string;
  /** True if it made a new fold. */
  readonly isFirst: boolean;
  /** The probability of its draw. */
  readonly probability: number;
  readonly agreements: Readonly<Record<Level, Agreement>>;
  /** Recalls in the two replies to the folded request. */
  readonly recalls: number;
  /** Sums over the two replies to the folded request, and over those to the whole one; old records have none. */
  readonly replies?: Readonly<Record<'folded' | 'whole', ReplySums>>;
};

/** Sums over the requests of one model that were drawn, and over those that were compared. */
export type ShadowTally = {
  readonly unit: string;
  readonly lastAt: number;
  readonly model: string;
  /** Requests that were sent to the provider for it, and their cost in USD. */
  readonly calls: number;
  readonly usd: number;
  /** Requests that were drawn and not compared, by reason. */
  readonly dropped: Readonly<Record<string, number>>;
  /** When each set of strategies was held last, in milliseconds since the epoch. */
  readonly heldAt: Readonly<Record<string, number>>;
  /** When each set of strategies, under some settings, was last found to be safe, and when not. */
  readonly safeAt?: Readonly<Record<string, number>>;
  readonly unsafeAt?: Readonly<Record<string, number>>;
};

/** Strategies that together make no new fold for a model, except for requests that would not fit. */
export type Hold = { readonly model: string; readonly strategies: string; readonly until: number };

/** The verdicts on sets of strategies that are in force: those that are held, and those whose folds are shown to be harmless. */
export type ShadowVerdicts = {
  readonly holds: readonly Hold[];
  readonly safe: readonly Pick<Hold, 'model' | 'strategies'>[];
};

/** The results for some requests. */
export type ShadowResult = {
  readonly state: ShadowState;
  /** Requests with a new fold, and later ones that repeat it. */
  readonly first: ShadowEstimate;
  readonly later: ShadowEstimate;
};

export type StrategiesReport = ShadowResult & {
  readonly strategies: string;
  /** When its hold ends; undefined when it is not held. */
  readonly heldUntil: number | undefined;
};

/** The results for one model under one set of settings. */
export type ShadowReport = {
  readonly model: string;
  readonly since: number;
  readonly recalls: number;
  readonly replies: Readonly<Record<'folded' | 'whole', ReplySums>>;
  /** The level `target` is the primary result; the others are secondary. */
  readonly levels: Readonly<Record<Level, ShadowResult>>;
  /** The targets, for each set of strategies. */
  readonly byStrategies: readonly StrategiesReport[];
  readonly tally: Pick<ShadowTally, 'calls' | 'usd' | 'dropped'>;
};

/** How long a hold lasts. Afterwards only newer samples count. */
const holdMs = 7 * 24 * 60 * 60 * 1_000;

const comparedJournal: JournalOptions<RequestComparison> = {
  name: 'shadow',
  slots: 'shadow-slot',
  merge: (one) => one,
};

const tallyJournal: JournalOptions<ShadowTally> = {
  name: 'shadow-tally',
  slots: 'shadow-tally-slot',
  merge: (one, other) => ({
    ...one,
    lastAt: Math.max(one.lastAt, other.lastAt),
    calls: one.calls + other.calls,
    usd: one.usd + other.usd,
    dropped: combined(one.dropped, other.dropped, (a, b) => a + b),
    heldAt: combined(one.heldAt, other.heldAt, Math.max),
    safeAt: combined(one.safeAt ?? {}, other.safeAt ?? {}, Math.max),
    unsafeAt: combined(one.unsafeAt ?? {}, other.unsafeAt ?? {}, Math.max),
  }),
};

function combined(
  one: Readonly<Record<string, number>>,
  other: Readonly<Record<string, number>>,
  combine: (a: number, b: number) => number,
): Readonly<Record<string, number>> {
  const all = { ...one };
  for (const [key, value] of Object.entries(other)) all[key] = combine(all[key] ?? 0, value);
  return all;
}

/** The notes of the shadow. Calls for one tenant are carried out one after the other. Every method rejects with `store-failed` when the store does. */
export interface ShadowNotes {
  /** True for a place that this gateway has compared, or others before it began. */
  isCompared(tenant: string, unit: string): Promise<boolean>;
  /**
   * Claims a place, so that no gateway compares it again within a day, and the tenant, which has one comparison at a time over all gateways: until
   * `release`, or for `forMs` milliseconds.
   */
  claim(tenant: string, unit: string, forMs: number): Promise<PlaceClaim>;
  /** Ends the claim on the tenant. */
  release(tenant: string): Promise<void>;
  /**
   * Notes a comparison. Returns the state of the folds that it is about; undefined between looks: to look reads all comparisons, so looks become rarer
   * the more there are. The intervals hold however often they are looked at.
   */
  compared(tenant: string, request: RequestComparison): Promise<ShadowState | undefined>;
  /** Adds to the sums of a model. */
  add(
    tenant: string,
    model: string,
    at: number,
    sums: Partial<Pick<ShadowTally, 'calls' | 'usd' | 'dropped'>>,
  ): Promise<void>;
  /** Notes the state of a set of strategies. `isHeld`: it is held from now on. */
  judge(tenant: string, key: ComparedFolds, state: ShadowState, at: number, isHeld: boolean): Promise<void>;
  /** Returns the verdicts of all gateways that are in force under these settings. Reads the sums only. */
  verdicts(tenant: string, settings: string, now: number): Promise<ShadowVerdicts>;
  /** Returns everything that all gateways have noted for a tenant. */
  read(tenant: string): Promise<ShadowFindings>;
}

/** The folds that a verdict is about. */
type ComparedFolds = Pick<RequestComparison, 'model' | 'strategies' | 'settings'>;

/** `busy`: another gateway compares a request of the tenant now. `known`: the place is compared already, or was tried. */
export type PlaceClaim = 'mine' | 'busy' | 'known';

/** Everything that was noted for a tenant. */
export type ShadowFindings = {
  readonly compared: readonly RequestComparison[];
  readonly tallies: readonly ShadowTally[];
};

/** The comparisons after which folds are looked at again, as a share of those before. */
const lookShare = 0.02;
const runningKey = 'experiment/shadow-running';
const placeMs = 24 * 60 * 60 * 1_000;

export function openShadowNotes(
  encryptedStore: Pick<EncryptedStore, 'keep' | 'getSealedMany' | 'forget'>,
): ShadowNotes {
  const requests = createJournal(encryptedStore, comparedJournal);
  const tallies = createJournal(encryptedStore, tallyJournal);
  /** The comparisons at the last look, and those since then, by the folds that they are about. */
  const looks = openFixed<string, { readonly total: number; readonly since: number }>('looks of shadows');

  function change(
    tenant: string,
    model: string,
    at: number,
    from: (own: ShadowTally) => Partial<ShadowTally>,
  ): Promise<void> {
    const next = (known: ShadowTally | undefined): ShadowTally => {
      const own = known ?? { unit: model, model, lastAt: at, calls: 0, usd: 0, dropped: {}, heldAt: {} };
      return { ...own, lastAt: at, ...from(own) };
    };
    return tallies.change(tenant, [{ unit: model, change: next }]);
  }

  /** Takes a key that nobody has. */
  async function take(tenant: string, key: string, ttlMs: number): Promise<boolean> {
    const record = { keys: [key], content: encodeRecord({}), ttlMs, unless: [key] };
    return (await encryptedStore.keep(tenant, [], record)) === undefined;
  }

  const read = async (tenant: string): Promise<ShadowFindings> => ({
    compared: await requests.list(tenant),
    tallies: await tallies.list(tenant),
  });

  const release = (tenant: string) => encryptedStore.forget(tenant, { sealed: [runningKey] });

  async function claim(tenant: string, unit: string, forMs: number): Promise<PlaceClaim> {
    if (!(await take(tenant, runningKey, forMs))) return 'busy';
    if (await take(tenant, `experiment/shadow-place/${unit}`, placeMs)) return 'mine';
    await release(tenant);
    return 'known';
  }

  async function compared(tenant: string, request: RequestComparison): Promise<ShadowState | undefined> {
    await requests.change(tenant, [{ unit: request.unit, change: () => request }]);
    const folds = `${tenant} ${request.model} ${request.settings} ${request.strategies}`;
    const { total, since } = looks.get(folds) ?? { total: 0, since: 0 };
    if (since + 1 < total * lookShare) {
      looks.set(folds, { total, since: since + 1 });
      return undefined;
    }
    const { compared: all, tallies: sums } = await read(tenant);
    const own = countedOf(all, sums, request);
    looks.set(folds, { total: own.length, since: 0 });
    return stateOf(samplesAt(own, 'target'));
  }

  const inTurn = createTurns();

  return {
    claim: (tenant, unit, forMs) => inTurn(tenant, () => claim(tenant, unit, forMs)),
    release: (tenant) => inTurn(tenant, () => release(tenant)),
    isCompared: (tenant, unit) =>
      inTurn(tenant, async () => (await requests.find(tenant, unit)) !== undefined),
    compared: (tenant, request) => inTurn(tenant, () => compared(tenant, request)),
    add: (tenant, model, at, { calls = 0, usd = 0, dropped = {} }) =>
      inTurn(tenant, () =>
        change(tenant, model, at, (own) => ({
          calls: own.calls + calls,
          usd: Math.round((own.usd + usd) * 1e9) / 1e9,
          dropped: combined(own.dropped, dropped, (a, b) => a + b),
        })),
      ),
    judge: (tenant, { model, strategies, settings }, state, at, isHeld) =>
      inTurn(tenant, () =>
        change(tenant, model, at, (own) => {
          const list = state === 'safe' ? 'safeAt' : 'unsafeAt';
          return {
            [list]: { ...own[list], [`${settings} ${strategies}`]: at },
            ...(isHeld && { heldAt: { ...own.heldAt, [strategies]: at } }),
          };
        }),
      ),
    verdicts: (tenant, settings, now) =>
      inTurn(tenant, async () => {
        const all = await tallies.list(tenant);
        return { holds: holdsIn(all, now), safe: safeIn(all, settings) };
      }),
    read: (tenant) => inTurn(tenant, () => read(tenant)),
  };
}

function holdsIn(tallies: readonly ShadowTally[], now: number): readonly Hold[] {
  return tallies.flatMap(({ model, heldAt }) =>
    Object.entries(heldAt).flatMap(([strategies, at]) =>
      now < at + holdMs ? [{ model, strategies, until: at + holdMs }] : [],
    ),
  );
}

function safeIn(tallies: readonly ShadowTally[], settings: string): ShadowVerdicts['safe'] {
  const prefix = `${settings} `;
  return tallies.flatMap(({ model, safeAt = {}, unsafeAt = {} }) =>
    Object.entries(safeAt).flatMap(([name, at]) =>
      name.startsWith(prefix) && at > (unsafeAt[name] ?? 0)
        ? [{ model, strategies: name.slice(prefix.length) }]
        : [],
    ),
  );
}

/** Returns the comparisons of one set of strategies. Those from before the end of an earlier hold do not count. */
function countedOf(
  compared: ShadowFindings['compared'],
  tallies: ShadowFindings['tallies'],
  { model, strategies, settings }: ComparedFolds,
): ShadowFindings['compared'] {
  const heldAt = tallies.find((tally) => tally.model === model)?.heldAt[strategies];
  return compared.filter(
    (one) =>
      one.model === model &&
      one.strategies === strategies &&
      one.settings === settings &&
      (heldAt === undefined || one.lastAt > heldAt + holdMs),
  );
}

/** Reports each model under each set of settings, the newest first. */
export function shadowReportsOf(findings: ShadowFindings, now: number): readonly ShadowReport[] {
  const holds = holdsIn(findings.tallies, now);
  const eras = groupBy(findings.compared, ({ model, settings }) => JSON.stringify([model, settings]));
  const reported = [...eras.values()].map((own) => reportOf(own, findings, holds));
  const known = new Set(reported.map(({ model }) => model));
  // Nothing was compared yet for a model whose requests were all dropped: the reasons say why.
  const others = findings.tallies.filter(({ model }) => !known.has(model));
  return [
    ...reported.toSorted((one, other) => other.since - one.since),
    ...others.map(({ model }) => reportOf([], findings, holds, model)),
  ];
}

function reportOf(
  own: readonly RequestComparison[],
  { tallies }: ShadowFindings,
  holds: readonly Hold[],
  model = own[0]!.model,
): ShadowReport {
  const tally = tallies.find((one) => one.model === model);
  const results = Object.fromEntries(levels.map((level) => [level, resultOf(own, level)]));
  const byStrategies = [...groupBy(own, ({ strategies }) => strategies)];
  return {
    model,
    since: own[0]?.lastAt ?? tally?.lastAt ?? 0,
    recalls: own.reduce((sum, { recalls }) => sum + recalls, 0),
    replies: {
      folded: addedReplies(own.flatMap(({ replies }) => replies?.folded ?? [])),
      whole: addedReplies(own.flatMap(({ replies }) => replies?.whole ?? [])),
    },
    levels: results as Record<Level, ShadowResult>,
    byStrategies: byStrategies.map(([strategies, requests]) => ({
      strategies,
      ...resultOf(requests, 'target'),
      heldUntil: holds.find((hold) => hold.model === model && hold.strategies === strategies)?.until,
    })),
    tally: { calls: tally?.calls ?? 0, usd: tally?.usd ?? 0, dropped: tally?.dropped ?? {} },
  };
}

function addedReplies(all: readonly ReplySums[]): ReplySums {
  return all.reduce(
    (one, other) => ({
      replies: one.replies + other.replies,
      tokensOut: one.tokensOut + other.tokensOut,
      repeats: one.repeats + other.repeats,
    }),
    { replies: 0, tokensOut: 0, repeats: 0 },
  );
}

function resultOf(requests: readonly RequestComparison[], level: Level): ShadowResult {
  const samples = samplesAt(requests, level);
  return {
    state: stateOf(samples),
    first: estimateShadow(samples.filter(({ isFirst }) => isFirst)),
    later: estimateShadow(samples.filter(({ isFirst }) => !isFirst)),
  };
}

function samplesAt(requests: readonly RequestComparison[], level: Level): readonly ShadowSample[] {
  return requests.map(({ conversation, isFirst, agreements }) => ({
    conversation,
    isFirst,
    agreement: agreements[level],
  }));
}
