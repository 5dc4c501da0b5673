/** Assembles the gateway from its settings. Nothing is opened here: the store and the upstream are passed in. */
import { type CacheBudget, createCaches, defaultCacheMb } from '../caches.ts';
import { createLearned } from '../engine/state.ts';
import type { Engine, Learned } from '../engine/types.ts';
import { type BackgroundSummarizer, createBackgroundSummarizer } from './background-summarizer.ts';
import type { Experiments, ExperimentSettings } from './experiments.ts';
import type { Handler, Upstream } from './http/http.ts';
import { clock, createGateway, newId } from './model-call.ts';
import type { GatewayExperiment, GatewayOptions, GatewayTracing } from './options.ts';
import type { ReceiptArchive } from './receipts/archive.ts';
import type { GatewayLog, GatewayMetrics } from './receipts/metrics.ts';
import {
  type AnyReceipt,
  type ReceiptLog,
  createCostTracker,
  createReceiptLog,
} from './receipts/receipts.ts';
import { reported, unfailing } from './send-with-retries.ts';
import { type UpstreamUrls, defaultUpstreams } from './routing/routes.ts';
import { type TenantSetting, createTenantRule, sessionOf } from './routing/tenant.ts';
import type { ShadowSettings } from './shadow.ts';
import {
  type Check,
  type Checks,
  allowed,
  baseUrlWords,
  checkSettings,
  fraction,
  isBaseUrl,
  isText,
  listOf,
  object,
  offOr,
  oneOf,
  positiveNumber,
  secret as secretValue,
  shown,
  thingWith,
  trueOrFalse,
  wholeNumber,
} from '../checks.ts';
import {
  type EngineOverrides,
  type FoldSettings,
  type ServedSettings,
  createDefaultEngine,
} from '../library/default-engine.ts';
import { foldChecks, storeChecks } from '../library/settings.ts';
import { textWriterOf } from '../strategies/default-strategies.ts';
import type { PageClients } from '../page/setup.ts';
import { createReceiptTotals } from '../receipts/totals.ts';
import { usualRecallLimits } from '../recall/tool.ts';
import {
  type EncryptedStore,
  createEncryptedStore,
  isTenantLabel,
  tenantWords,
} from '../store/encrypted-store.ts';
import { type KeptReplies, createKeptReplies } from '../store/hidden-recalls.ts';
import { createControls } from '../store/controls.ts';
import type { Store } from '../store/store.ts';
import { timedStore } from '../store/wrapped-store.ts';
import { pricesFrom } from '../tokens/model-facts.ts';
import { loadModelInfo } from '../tokens/models.ts';

/** Settings of the gateway: those of the engine, and limits, upstreams and access. */
export type GatewaySettings = FoldSettings & {
  /** Measures on live traffic what folding costs. Default: nothing is measured, and all conversations are folded. */
  readonly experiment?: ExperimentSettings;
  /** Base URLs of the upstreams. Default: the providers' own. */
  readonly urls?: Partial<UpstreamUrls>;
  /** Bytes of a request body at most; larger bodies are answered with 413. Default: 64 MiB. */
  readonly maxBodyBytes?: number;
  /** Milliseconds that a request waits for the store and a new fold; then only a fold that it needs to fit is made. Default: 2,000. */
  readonly prepareDeadlineMs?: number;
  /** Limits of recalls: rounds in one request (default 5), and tokens of one answer (default 8,000). */
  readonly recall?: { readonly maxRounds?: number; readonly maxTokens?: number };
  /** Credential that shows the receipts and originals of all tenants; at least 16 characters. It is never sent to a provider. */
  readonly adminToken?: string;
  /**
   * True to show `/metrics`, which covers all tenants, to anyone when there is no `adminToken`. Default: true only when all requests belong
   * to one `tenant`.
   */
  readonly openMetrics?: boolean;
  /** Decides which tenant a request belongs to. Default: `credential`. Use `local` for a gateway that only its user's machine can reach. */
  readonly tenant?: TenantSetting;
  /** Host names, without a port, that requests may be addressed to; others are answered with 421. Default: any. */
  readonly allowedHosts?: readonly string[];
};

/** Parts that the gateway is assembled from: everything that does input or output. */
export type GatewayDeps = {
  readonly store: Store;
  readonly secret: Uint8Array;
  readonly upstream: Upstream;
  /** Writes the log. Its errors are ignored. */
  readonly log: GatewayLog;
  /** Metrics, such as `prometheusMetrics()`. Errors of its functions are ignored, except of `page`. Default: none. */
  readonly metrics?: GatewayMetrics;
  /** Traces requests, such as `openTelemetryTracing()` of `leporello/opentelemetry`. Default: nothing is traced. */
  readonly tracing?: GatewayTracing;
  /** Folds large requests in another thread, such as `foldThread()` of `leporello/gateway/node`. Default: all are folded in this thread. */
  readonly foldThread?: {
    /** Opens the memory for the caches of this thread, which shares so many bytes with the others. */
    openMemory(bytes: number): { readonly memory: CacheBudget };
    engineFor(parts: EngineParts): Engine;
  };
  /** Keeps receipts beyond the process, such as `receiptArchive()` of `leporello/gateway/node`. Default: they end with the process. */
  readonly archive?: ReceiptArchive;
  /** How clients connect to a URL of this gateway, for the page. Default: the page does not say. */
  readonly pageClients?: PageClients;
  /**
   * Waits until there is time to repeat a request for a shadow, such as `idleMoment` of `leporello/gateway/node`; false when there was none. Default: it is repeated at once.
   */
  readonly whenIdle?: () => Promise<boolean>;
  /** Is called with each receipt, after its response has ended. Its errors are ignored. */
  readonly onReceipt?: (receipt: AnyReceipt) => void;
};

/** Parts from which an engine in another thread is built, over the same store. */
export type EngineParts = {
  /** The engine in the main thread. */
  readonly local: Engine;
  readonly settings: ServedSettings;
  readonly secret: Uint8Array;
  /** The store, without a deadline for its calls. */
  readonly store: Store;
  readonly encryptedStore: EncryptedStore;
  /** Replies that the local engine has recorded. */
  readonly keptReplies: KeptReplies;
  /** Everything that the local engine learns. The engines of all threads share it. */
  readonly learned: Learned;
  readonly log: GatewayLog;
};

/** Returns the gateway as a handler of requests. Throws `bad-config` for settings that are unknown or not allowed. */
export function assembleGateway(settings: GatewaySettings, deps: GatewayDeps): Handler {
  checkSettings(gatewayCheck, settings);
  checkSettings(depsCheck, deps, 'deps');
  const parts = gatewayParts(settings, deps);
  const handler = createGateway(parts);
  return deps.tracing?.handler(handler, parts.urls) ?? handler;
}

const countingFunctions = [
  'requestEnded',
  'summaryEnded',
  'shadowEnded',
  'notesLost',
  'storeCalled',
] as const;

/** Creates the parts of a gateway. The settings must have been checked. `engineParts` replace those of the settings. */
export function gatewayParts(
  settings: GatewaySettings,
  deps: GatewayDeps,
  engineParts: Pick<EngineOverrides, 'strategies' | 'triggers'> = {},
): GatewayOptions {
  const { memoryTtlMs: ttlMs, storeDeadlineMs, cacheMb = defaultCacheMb } = settings;
  const caches = createCaches(deps.foldThread?.openMemory(cacheMb * 1e6).memory ?? cacheMb);
  const log = unfailing(deps.log, ['info', 'warn']);
  const metrics = deps.metrics && {
    ...unfailing(deps.metrics, countingFunctions),
    page: deps.metrics.page.bind(deps.metrics),
  };
  const store = metrics ? timedStore(deps.store, metrics.storeCalled) : deps.store;
  const encryptedStore = createEncryptedStore({
    store,
    secret: deps.secret,
    ttlMs,
    storeDeadlineMs,
    watch: deps.tracing?.storeCall,
    caches,
  });
  const keptReplies = createKeptReplies({ encryptedStore, ttlMs, caches });
  const ownSettings = foldSettings(settings);
  const engineSettings = { ...ownSettings, ...controlSettings(settings) };
  const experiment = openExperiment(settings, () => ({ ...parts, foldSettings: ownSettings }));
  const learned = createLearned({ ...engineSettings, caches, clock });
  const local = createDefaultEngine(engineSettings, encryptedStore, {
    ...engineParts,
    caches,
    keptReplies,
    learned,
  });
  const { secret, foldThread, archive } = deps;
  archive?.open({ encryptedStore, log, metrics });
  const parts: GatewayOptions = {
    engine:
      foldThread?.engineFor({
        local,
        settings: engineSettings,
        secret,
        store,
        encryptedStore,
        keptReplies,
        learned,
        log,
      }) ?? local,
    encryptedStore,
    foldSettings: ownSettings,
    caches,
    upstream: reported(deps.upstream),
    urls: { ...defaultUpstreams, ...settings.urls },
    receipts: reportedTo(deps, createReceiptLog(), experiment),
    experiment,
    archive,
    pageClients: deps.pageClients,
    whenIdle: deps.whenIdle ?? (async () => true),
    controls: archive && createControls({ encryptedStore }),
    totals: createReceiptTotals(),
    prices: pricesFrom(settings.usdPerMillionTokens),
    costs: createCostTracker(caches),
    metrics,
    openMetrics: settings.openMetrics ?? isOneTenant(settings.tenant),
    log,
    summaries: backgroundSummarizer(settings, log),
    recall: { ...usualRecallLimits, ...settings.recall },
    maxBodyBytes: settings.maxBodyBytes ?? 64 * 1024 * 1024,
    prepareDeadlineMs: settings.prepareDeadlineMs ?? 2_000,
    adminToken: settings.adminToken,
    tenants: createTenantRule(settings.tenant ?? 'credential', encryptedStore),
    allowedHosts: settings.allowedHosts,
    clock,
    newId,
  };
  return deps.tracing?.parts(parts) ?? parts;
}

/** Returns the experiments that the settings ask for. Their code is loaded when it is first used. */
function openExperiment(
  { experiment }: GatewaySettings,
  parts: () => GatewayOptions,
): GatewayExperiment | undefined {
  if (!experiment?.holdout && !experiment?.shadow) return undefined;
  let opened: Experiments | undefined;
  let opening: Promise<Experiments> | undefined;
  const open = () =>
    (opening ??= import('./experiments.ts').then(
      ({ openExperiments }) => (opened = openExperiments(experiment, parts())),
    ));
  return {
    requestFields: (tenant, headers) => ({
      session: sessionOf(headers),
      ...(experiment.shadow && {
        held: opened?.held(tenant) ?? { sets: [], allBut: experiment.shadow.hold === 'unless-safe' },
      }),
    }),
    async note(tenant, receipt, source) {
      (opened ?? (await open())).note(tenant, receipt, source);
    },
    report: async (tenant) => (await open()).report(tenant),
  };
}

/** Returns the settings of folding that an experiment changes. */
function controlSettings({ experiment }: GatewaySettings): Partial<ServedSettings> {
  if (!experiment?.holdout) return {};
  const { holdout, control } = experiment;
  return control === 'untouched'
    ? { holdout, offerRecall: 'with-fold', shrinks: false, cacheMarks: false }
    : { holdout };
}

function reportedTo(
  { onReceipt, archive }: GatewayDeps,
  receipts: ReceiptLog,
  experiment: GatewayExperiment | undefined,
): ReceiptLog {
  if (onReceipt === undefined && archive === undefined && experiment === undefined) return receipts;
  const report = onReceipt && unfailing({ onReceipt }, ['onReceipt']).onReceipt;
  return {
    ...receipts,
    add(tenant, receipt, source) {
      // An archive asks for the detail of the request before it ends it.
      receipts.add(tenant, receipt, archive ? undefined : source);
      archive?.add(tenant, receipt, source);
      experiment?.note(tenant, receipt, source).catch(() => undefined);
      report?.(receipt);
    },
  };
}

/** True when all requests belong to one tenant: then metrics reveal nothing about others. */
function isOneTenant(tenant: TenantSetting | undefined): boolean {
  return typeof tenant === 'string' && tenant !== 'credential';
}

/** True for a text of at least 16 characters: a shorter token could be guessed, and could occur in headers by chance. */
function isAdminToken(value: unknown): boolean {
  return typeof value === 'string' && value.length >= 16;
}

const url = secretValue(`${baseUrlWords} https://api.example.org/v1`, isBaseUrl, (value) =>
  typeof value === 'string' ? shown(value.replace(/(?<![^/@])[^/@]*@/g, '...@')) : shown(value),
);

/** The check of each setting. */
export const gatewayChecks: Checks<GatewaySettings> = {
  ...foldChecks,
  urls: object<UpstreamUrls>(
    Object.fromEntries(Object.keys(defaultUpstreams).map((key) => [key, url])) as Checks<UpstreamUrls>,
  ),
  maxBodyBytes: wholeNumber(1),
  prepareDeadlineMs: positiveNumber,
  recall: object<NonNullable<GatewaySettings['recall']>>({
    maxRounds: wholeNumber(1, 100),
    maxTokens: wholeNumber(1),
  }),
  experiment: object<ExperimentSettings>({
    holdout: allowed(
      'a number of at least 0 and below 1',
      (value) => typeof value === 'number' && value >= 0 && value < 1,
    ),
    control: oneOf('unfolded', 'untouched'),
    capUsd: positiveNumber,
    shadow: offOr(
      object<ShadowSettings>({
        share: fraction(),
        usdPerDay: positiveNumber,
        billShare: fraction(),
        hold: oneOf('if-harmful', 'unless-safe', 'never'),
        logins: trueOrFalse,
      }),
    ),
  }),
  adminToken: secretValue('a text of at least 16 characters', isAdminToken, (value) =>
    typeof value === 'string' ? 'too short' : 'not a text',
  ),
  openMetrics: trueOrFalse,
  // createTenantRule checks objects and says what is wrong with them.
  tenant: allowed(tenantWords, (value) => typeof value === 'object' || isTenantLabel(value)),
  allowedHosts: listOf('host names without ports', isText),
};

const gatewayCheck = object<GatewaySettings>(gatewayChecks);

const unchecked: Check = () => [];

const depsCheck = object<GatewayDeps>(
  {
    ...storeChecks,
    upstream: thingWith('an upstream, such as undiciUpstream()', 'send', 'close'),
    log: thingWith('a log, such as console', 'info', 'warn'),
    metrics: unchecked,
    tracing: unchecked,
    foldThread: unchecked,
    archive: unchecked,
    pageClients: unchecked,
    whenIdle: unchecked,
    onReceipt: unchecked,
  },
  { required: ['store', 'secret', 'upstream', 'log'] },
);

/** Returns the settings of the engine, without those of the gateway. */
function foldSettings(settings: GatewaySettings): FoldSettings {
  const others: Record<Exclude<keyof GatewaySettings, keyof FoldSettings>, true> = {
    urls: true,
    maxBodyBytes: true,
    prepareDeadlineMs: true,
    recall: true,
    experiment: true,
    adminToken: true,
    openMetrics: true,
    tenant: true,
    allowedHosts: true,
  };
  return Object.fromEntries(Object.entries(settings).filter(([key]) => !Object.hasOwn(others, key)));
}

function backgroundSummarizer(settings: GatewaySettings, log: GatewayLog): BackgroundSummarizer | undefined {
  const writer = textWriterOf(settings);
  const { models } = settings;
  if (!writer) return undefined;
  const { model, deadlineMs = 60_000 } = writer;
  return createBackgroundSummarizer({
    model,
    deadlineMs,
    infoOf: (name) => loadModelInfo(name, models ?? {}),
    log,
  });
}
