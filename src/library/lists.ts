/** Checks the lists of strategies and triggers that a program passes in, and adapts the strategies to a program that keeps its own messages. */
import { type Check, isObject, shown } from '../checks.ts';
import { LeporelloError } from '../errors.ts';
import { dropOldest } from '../strategies/drop-messages.ts';
import type { StrategySettings } from '../strategies/default-strategies.ts';
import type { Reach, Strategy } from '../strategies/strategy.ts';
import { summarizeHistory } from '../strategies/summarize-history.ts';

const reaches: Readonly<Record<Reach, true>> = { history: true, newest: true, everything: true };

export const strategyList = listOfThings(
  'strategy',
  'offloadResults()',
  (thing) =>
    isNamed(thing) &&
    typeof thing['propose'] === 'function' &&
    Object.hasOwn(reaches, String(thing['reach'])),
  `{ name, reach, propose }, with reach ${Object.keys(reaches)
    .join(', ')
    .replace(/, (?=\w+$)/, ' or ')}`,
);

export const triggerList = listOfThings(
  'trigger',
  'mustFit()',
  (thing) => isNamed(thing) && typeof thing['demand'] === 'function',
  '{ name, demand }',
);

function listOfThings(
  word: string,
  example: string,
  isOne: (thing: unknown) => boolean,
  form: string,
): Check {
  return (value, path) => {
    if (!Array.isArray(value))
      return [`${path} is ${shown(value)}, but must be a list, such as [${example}].`];
    return value.flatMap((thing: unknown, at) => {
      if (isOne(thing)) return [];
      const must =
        typeof thing === 'function' ? 'but must be called, such as' : `but must be a ${word}: ${form}, or`;
      return [`${path}[${at}] is ${shown(thing)}, ${must} ${example}.`];
    });
  };
}

function isNamed(thing: unknown): thing is Readonly<Record<string, unknown>> {
  return isObject(thing) && typeof thing['name'] === 'string' && thing['name'] !== '';
}

/** The settings that only a configuration has: a program passes lists instead. */
const strategySettings: Readonly<Record<keyof StrategySettings, true>> = {
  minResultBytes: true,
  summaries: true,
  subgoals: true,
  preset: true,
};

/** Throws `bad-config` for settings in the form of a configuration file, and says how a program writes them. */
export function checkOldForm(options: unknown): void {
  if (!isObject(options)) return;
  const problems = Object.keys(strategySettings)
    .filter((key) => options[key] !== undefined)
    .map(
      (key) =>
        `${key} is an option of strategies: write strategies: defaultStrategies({ ${key}: ${shown(options[key])} }).`,
    );
  if (isObject(options['triggers'])) {
    problems.push(
      `triggers is ${shown(options['triggers'])}, but must be a list: write triggers: defaultTriggers(${shown(options['triggers'])}), or a list such as [mustFit(), tokenBudget({ triggerTokens: 60_000, targetTokens: 25_000 })].`,
    );
  }
  if (problems.length > 0) throw new LeporelloError('bad-config', problems.join('\n'));
}

/**
 * Returns the strategies for a program that keeps its messages as they were folded: old messages always become one extractive summary, and
 * sub-goals are not folded.
 */
export function keptHistoryStrategies(strategies: readonly Strategy[]): readonly Strategy[] {
  const others = strategies.filter(({ name, summary }) => name !== 'fold-subgoals' && summary === undefined);
  const maxTokens = strategies.find(({ summary }) => summary !== undefined)?.summary?.maxTokens;
  const dropping = [summarizeHistory({ maxTokens }), dropOldest({ reach: 'everything' })];
  const at = others.findIndex((strategy) => isDrop(strategy) || strategy.reach !== 'history');
  const before = at === -1 ? others : others.slice(0, at);
  const after = at === -1 ? [] : others.slice(at).filter((strategy) => !isDrop(strategy));
  return [...before, ...dropping, ...after];
}

function isDrop({ name }: Strategy): boolean {
  return name === 'drop-oldest';
}
