/** What the benchmark compares: the policies of the command, and those of two frameworks from their own packages. */
import type { EngineChoice } from '../../src/cli/replay/replay.ts';
import { pricesIn } from '../../src/cli/replay/conversation-body.ts';
import { cutResults, enginePolicy, fullContext, keepLast, type Policy } from '../../src/replay/policies.ts';
import { strategiesFor } from '../../src/strategies/default-strategies.ts';
import type { TokenCounter } from '../../src/tokens/token-counter.ts';
import { pruneAlways, pruneOverThreshold } from './ai-sdk.ts';
import { langchainContextEditing } from './langchain.ts';

export type BenchEngine = EngineChoice & {
  /** Names of strategies that this engine is without. */
  readonly withoutStrategies?: readonly string[];
};

export type BenchOptions = {
  readonly engines: readonly BenchEngine[];
  /** Leaves out all but the full context and the engines. */
  readonly enginesOnly: boolean;
  /** Tokens. */
  readonly window: number;
  readonly prefix: number;
  /** Whether nothing is cached where nothing was in the recording. */
  readonly pauses: boolean;
  /** For how long clients ask their provider to keep what is cached, in the spelling of Anthropic's marks. */
  readonly cacheTtl: CacheTtl;
};

export type CacheTtl = '5m' | '1h';

export function benchPolicies(options: BenchOptions, counter: TokenCounter): readonly Policy[] {
  const { window } = options;
  const engines = options.engines.map(({ name, settings, withoutStrategies = [] }) => {
    const prices = { ...pricesIn('anthropic'), ...settings.prices };
    const usual = strategiesFor(settings);
    const strategies = usual.filter((strategy) => !withoutStrategies.includes(strategy.name));
    return enginePolicy({ name, settings: { ...settings, prices }, window, counter, strategies });
  });
  if (options.enginesOnly) return [fullContext, ...engines];
  return [
    fullContext,
    ...engines,
    langchainContextEditing,
    pruneOverThreshold,
    pruneAlways,
    keepLast(10),
    keepLast(3),
    cutResults(500),
  ];
}
