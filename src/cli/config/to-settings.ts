/** The configuration in the terms of the gateway. Pure. */
import type { GatewaySettings } from '../../gateway/assemble.ts';
import type { ModelOverride, ModelOverrides } from '../../tokens/models.ts';
import type { Config } from './schema.ts';

const dayMs = 24 * 60 * 60 * 1_000;

/** `window` (tokens), where given, is every model's. */
export function gatewaySettings(config: Config, window?: number): GatewaySettings {
  const { recall, limits, memory, adminToken } = config;
  return {
    triggers: config.triggers,
    compressionBytesThreshold: config.compressionBytesThreshold,
    pins: config.pins,
    models: overrides(config, window),
    offerRecall: recall.enabled,
    urls: { openai: config.openaiUrl, anthropic: config.anthropicUrl },
    maxBodyBytes: limits.maxBodyBytes,
    prepareDeadlineMs: limits.prepareDeadlineMs,
    recall: { maxRounds: recall.maxRounds, maxTokens: recall.maxTokens },
    memoryTtlMs: memory.ttlDays * dayMs,
    ...(adminToken === undefined ? {} : { adminToken }),
  };
}

function overrides({ models }: Config, window: number | undefined): ModelOverrides {
  const configured = Object.entries(models).map(
    ([name, model]) => [name, overrideOf(model, window)] as const,
  );
  // The most general name: it holds for whatever the configuration does not name.
  const others = window === undefined ? [] : [['*', { window }] as const];
  return Object.fromEntries([...others, ...configured]);
}

function overrideOf(model: Config['models'][string], window: number | undefined): ModelOverride {
  const { tokenizer, maxInput, maxOutput } = model;
  const whole = window ?? model.window;
  return {
    ...(whole === undefined ? {} : { window: whole }),
    ...(maxInput === undefined || window !== undefined ? {} : { maxInput }),
    ...(maxOutput === undefined ? {} : { maxOutput }),
    ...(tokenizer === undefined ? {} : { tokenizer: { encoding: tokenizer } }),
  };
}
