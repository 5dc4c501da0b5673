/** Converts the configuration to the settings of the gateway. */
import { LeporelloError } from '../../errors.ts';
import type { GatewaySettings } from '../../gateway/app.ts';
import { type Provider, type UpstreamUrls, providers } from '../../gateway/routing/routes.ts';
import type { PriceOverrides } from '../../tokens/model-facts.ts';
import type { ModelOverride, ModelOverrides } from '../../tokens/models.ts';
import type { Config } from './schema.ts';

const dayMs = 24 * 60 * 60 * 1_000;

/** Names under which programs on this machine reach it. */
const loopbackHosts = ['localhost', '127.0.0.1', '[::1]'];

/** Returns the settings of a gateway. `window`, in tokens, overrides the window of every model. */
export function gatewaySettings(config: Config, window?: number): GatewaySettings {
  const { recall, limits, memory, adminToken, tenant, preset, subgoals, strategies, summaries, items } =
    config;
  const allowedHosts = config.allowedHosts ?? (isLoopback(config.host) ? loopbackHosts : undefined);
  const isPrivate = isLoopback(config.host) && typeof tenant !== 'object';
  const tenantSetting =
    tenant ?? (isLoopback(config.host) && isForThisMachine(allowedHosts) ? 'local' : 'credential');
  return {
    mode: config.mode,
    cacheMarks: config.cacheMarks,
    triggers: config.triggers,
    shrinks: config.shrinks,
    minResultBytes: config.minResultBytes,
    keepNewestMedia: config.keepNewestMedia,
    pins: config.pins,
    models: overrides(config, window),
    usdPerMillionTokens: prices(config),
    offerRecall: recall.offer,
    offerNotes: recall.notes,
    repairEdits: recall.repairEdits,
    urls: upstreamsIn(config),
    maxBodyBytes: limits.maxBodyBytes,
    prepareDeadlineMs: limits.prepareDeadlineMs,
    storeDeadlineMs: limits.storeDeadlineMs,
    cacheMb: limits.cacheMb,
    recall: { maxRounds: recall.maxRounds, maxTokens: recall.maxTokens },
    memoryTtlMs: memory.ttlDays * dayMs,
    tenant: tenantSetting,
    openMetrics: isPrivate || (typeof tenant === 'string' && tenant !== 'credential'),
    ...(config.calibrate ? {} : { calibration: false }),
    ...(adminToken === undefined ? {} : { adminToken }),
    ...(strategies === undefined ? {} : { strategies }),
    ...(summaries === undefined ? {} : { summaries }),
    ...(config.experiment === false ? {} : { experiment: experimentIn(config.experiment) }),
    ...(items === undefined ? {} : { items }),
    ...(preset === undefined ? {} : { preset }),
    ...(subgoals === undefined ? {} : { subgoals }),
    ...(allowedHosts === undefined ? {} : { allowedHosts }),
  };
}

/** Returns the URL of each provider. */
export function upstreamsIn(config: Pick<Config, `${Provider}Url`>): UpstreamUrls {
  const urls = providers.map((provider) => [provider, config[`${provider}Url`]] as const);
  return Object.fromEntries(urls) as Record<Provider, string>;
}

/** Adds the share of the control group. A user who sets only a shadow gets none, because a control group costs money. */
function experimentIn(experiment: Exclude<Config['experiment'], false>) {
  return { ...experiment, holdout: experiment.holdout ?? (experiment.shadow === false ? 0.2 : 0) };
}

/** Returns the tenant whose data a command reads: that of `--tenant`, or the one that all requests belong to. Throws `bad-usage` without one. */
export function tenantToRead(given: string | undefined, config: Config): string {
  if (given !== undefined) return given;
  const { tenant } = gatewaySettings(config);
  if (typeof tenant === 'string' && tenant !== 'credential') return tenant;
  throw new LeporelloError(
    'bad-usage',
    'Each credential is a tenant of its own: name one with --tenant LABEL. /_leporello/totals lists the labels for the adminToken.',
  );
}

/** True when all allowed hosts are loopback names. Other names mean a proxy in front, and so possibly users who do not know each other. */
function isForThisMachine(allowedHosts: readonly string[] | undefined): boolean {
  return allowedHosts?.every((name) => loopbackHosts.includes(name)) === true;
}

/** Returns the configured prices, without undefined ones. */
function prices(config: Config): PriceOverrides {
  return Object.fromEntries(
    Object.entries(config.usdPerMillionTokens).map(([name, price]) => [
      name,
      Object.fromEntries(Object.entries(price).filter(([, usd]) => usd !== undefined)),
    ]),
  );
}

function overrides({ models }: Config, window: number | undefined): ModelOverrides {
  const configured = Object.entries(models).map(
    ([name, model]) => [name, overrideOf(model, window)] as const,
  );
  // The most general name applies to all models that the configuration does not name.
  const others = window === undefined ? [] : [['*', { windowTokens: window }] as const];
  return Object.fromEntries([...others, ...configured]);
}

function overrideOf(model: Config['models'][string], window: number | undefined): ModelOverride {
  const { tokenizer, maxInputTokens, maxOutputTokens, cacheKeptMs } = model;
  const windowTokens = window ?? model.windowTokens;
  return {
    ...(windowTokens === undefined ? {} : { windowTokens }),
    ...(maxInputTokens === undefined || window !== undefined ? {} : { maxInputTokens }),
    ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
    ...(cacheKeptMs === undefined ? {} : { cacheKeptMs }),
    ...(tokenizer === undefined ? {} : { tokenizer: { encoding: tokenizer } }),
  };
}

export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(?:\.\d{1,3}){3}$/.test(host);
}
