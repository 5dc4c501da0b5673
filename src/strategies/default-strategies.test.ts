import { describe, expect, it } from 'vitest';
import { defaultStrategies, summariesIn } from './default-strategies.ts';

const shown = (list: ReturnType<typeof defaultStrategies>) =>
  list.map(({ name, reach, minResultBytes, summary }) =>
    [name, reach, minResultBytes, summary?.maxTokens].filter((one) => one !== undefined).join(' '),
  );

describe('defaultStrategies', () => {
  it('returns all but records and summaries, least harm first', () => {
    expect(shown(defaultStrategies())).toEqual([
      'drop-failed-calls history',
      'offload-media history',
      'offload-results history 1000',
      'stub-arguments history 1000',
      'drop-recalls history',
      'drop-oldest history',
      'compress-items newest 1000',
      'offload-newest-media everything',
      'clip-newest everything',
    ]);
  });

  it('have a summary with the preset summaries, and sub-goals with the others, unless told otherwise', () => {
    const of = (settings: Parameters<typeof defaultStrategies>[0]) =>
      shown(defaultStrategies(settings)).filter((one) => /subgoals|summarize/.test(one));
    expect(of({ preset: 'summaries' })).toEqual(['summarize-history history 4000']);
    expect(of({ preset: 'summaries', summaries: false })).toEqual([]);
    expect(of({ preset: 'debugging' })).toEqual(['fold-subgoals history']);
    expect(of({ preset: 'debugging', subgoals: false })).toEqual([]);
  });

  it('drops messages only as a last resort with summaries', () => {
    expect(shown(defaultStrategies({ summaries: { kind: 'extractive' }, preset: 'cost' }))).toEqual([
      'drop-failed-calls history',
      'offload-media history',
      'offload-results history 1000',
      'stub-arguments history 1000',
      'drop-recalls history',
      'fold-subgoals history',
      'summarize-history history 1500',
      'drop-oldest everything',
      'compress-items newest 1000',
      'offload-newest-media everything',
      'clip-newest everything',
    ]);
  });

  it('returns the chosen strategies in the chosen order, each with its own options before those of the settings', () => {
    expect(
      shown(
        defaultStrategies({
          strategies: [
            { name: 'summarize-history', maxTokens: 3_000 },
            'drop-oldest',
            { name: 'compress-items', minResultBytes: 50 },
            'offload-results',
          ],
          minResultBytes: 400,
          summaries: { kind: 'model', maxTokens: 900 },
        }),
      ),
    ).toEqual([
      'summarize-history history 3000',
      'drop-oldest everything',
      'compress-items newest 50',
      'offload-results history 400',
    ]);
    expect(shown(defaultStrategies({ strategies: ['drop-oldest'] }))).toEqual(['drop-oldest history']);
  });

  it('says what is wrong with a list', () => {
    const problem = (strategies: unknown): string => {
      try {
        defaultStrategies({ strategies } as Parameters<typeof defaultStrategies>[0]);
        return 'nothing';
      } catch (error) {
        return (error as Error).message;
      }
    };
    const names =
      'drop-failed-calls, offload-media, offload-results, stub-arguments, drop-recalls, fold-subgoals, summarize-history, drop-oldest, compress-items, offload-newest-media, clip-newest';
    expect([
      problem('drop-oldest'),
      problem([]),
      problem(['drop-newest']),
      problem([{ name: 'drop-oldest', reach: 'all' }]),
      problem(['clip-newest', { name: 'clip-newest', minResultBytes: 3 }]),
    ]).toEqual([
      `defaultStrategies.strategies is "drop-oldest", but must be a list of at least one strategy: ${names}.`,
      `defaultStrategies.strategies is [], but must be a list of at least one strategy: ${names}.`,
      `defaultStrategies.strategies[0] is "drop-newest", which is no strategy. Did you mean drop-oldest? Strategies by name: ${names}.`,
      'defaultStrategies.strategies[0].reach is "all", but must be "history" or "everything".',
      'defaultStrategies.strategies[1].minResultBytes is not an option: this strategy has none.',
    ]);
  });
});

describe('summariesIn', () => {
  it('combines the settings of summaries with the options of the list', () => {
    expect([
      summariesIn({}),
      summariesIn({ summaries: { kind: 'model', model: 'small' } }),
      summariesIn({ strategies: ['drop-oldest'], summaries: { kind: 'model' } }),
      summariesIn({ strategies: ['summarize-history'] }),
      summariesIn({
        strategies: [{ name: 'summarize-history', maxTokens: 700 }],
        summaries: { kind: 'model', model: 'small' },
      }),
    ]).toEqual([
      false,
      { kind: 'model', model: 'small' },
      false,
      { kind: 'extractive' },
      { kind: 'model', model: 'small', maxTokens: 700 },
    ]);
  });
});
