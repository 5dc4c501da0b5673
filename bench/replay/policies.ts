/** Lists the policies that the benchmark compares: those of `leporello replay`, and those of two frameworks from their own packages. */
import type { EngineChoice } from '../../src/cli/replay/replay.ts';
import { pricesIn } from '../../src/cli/replay/conversation-body.ts';
import {
  clientCompaction,
  cutResults,
  enginePolicy,
  fullContext,
  keepLast,
} from '../../src/replay/policies.ts';
import type { ReplayPolicy } from '../../src/replay/replay.ts';
import { defaultStrategies } from '../../src/strategies/default-strategies.ts';
import type { TokenCounter } from '../../src/tokens/token-counter.ts';
import { askedBlind } from './blind.ts';
import { pruneAlways, pruneOverThreshold } from './ai-sdk.ts';
import { langchainContextEditing } from './langchain.ts';

export type BenchEngine = EngineChoice & {
  /** Names of strategies that this engine does not use. */
  readonly withoutStrategies?: readonly string[];
};

export type BenchOptions = {
  readonly engines: readonly BenchEngine[];
  /** `engines`: the full context, the engines and the client's own compaction. `blind`: the full context, and the engines, also asked blind. */
  readonly set: 'all' | 'engines' | 'blind';
  /** The context window in tokens. */
  readonly window: number;
  /** Tokens of tools and system text before the messages. */
  readonly prefix: number;
  /** Clears the cache at the requests that found it cold in the recording. */
  readonly pauses: boolean;
  /** The cache lifetime that clients request, as in Anthropic's `cache_control`. */
  readonly cacheTtl: CacheTtl;
};

export type CacheTtl = '5m' | '1h';

export function benchPolicies(options: BenchOptions, counter: TokenCounter): readonly ReplayPolicy[] {
  const { window } = options;
  const engines = options.engines.map(({ name, settings, withoutStrategies = [] }) => {
    const usdPerMillionTokens = { ...pricesIn('anthropic'), ...settings.usdPerMillionTokens };
    const { minResultBytes, summaries, subgoals, preset } = settings;
    const strategies = defaultStrategies({ minResultBytes, summaries, subgoals, preset }).filter(
      (strategy) => !withoutStrategies.includes(strategy.name),
    );
    return enginePolicy({
      name,
      settings: { ...settings, usdPerMillionTokens },
      window,
      counter,
      strategies,
    });
  });
  if (options.set === 'blind') return [fullContext, ...engines, ...engines.map(askedBlind)];
  const compaction = clientCompaction({ atTokens: 160_000, summaryTokens: 5_000, counter });
  if (options.set === 'engines') return [fullContext, ...engines, compaction];
  return [
    fullContext,
    ...engines,
    langchainContextEditing,
    pruneOverThreshold,
    pruneAlways,
    keepLast(10),
    keepLast(3),
    cutResults(500),
    compaction,
  ];
}
