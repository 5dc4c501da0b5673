/** Lists the rows of the ablation. Most turn off one part. Types ensure that no kind is missing; triggers and strategies come from the engine. */
import type { Kind } from '../../src/arrival/kind.ts';
import { defaultStrategies } from '../../src/strategies/default-strategies.ts';
import { triggerChecks, type TriggerSettings } from '../../src/triggers/default-triggers.ts';
import type { BenchEngine } from '../replay/policies.ts';

const kinds = Object.keys({
  'numbered-lines': true,
  search: true,
  json: true,
  lines: true,
  html: true,
  terminal: true,
  blob: true,
} satisfies Record<Kind, true>) as readonly Kind[];

const triggers = Object.keys(triggerChecks) as readonly (keyof TriggerSettings)[];

const triggersOff: TriggerSettings = Object.fromEntries(triggers.map((trigger) => [trigger, false]));

/** Returns options that leave only these triggers on, and `mustFit`: a request must fit whatever it costs. */
const only = (options: TriggerSettings): TriggerSettings => ({ ...triggersOff, mustFit: {}, ...options });

/** The first row is the default engine; the others are compared with it. */
export const rows: readonly BenchEngine[] = [
  { name: 'default', settings: {} },

  { name: 'without shrinks', settings: { shrinks: false } },
  ...kinds.map((kind) => ({ name: `without shrink ${kind}`, settings: { shrinks: { without: [kind] } } })),
  { name: 'only lossless shrinks', settings: { shrinks: { lossless: true } } },
  { name: 'without references', settings: { shrinks: { repeats: false } } },
  { name: 'every fifth line number', settings: { shrinks: { lineNumbers: 'every-fifth' } } },

  ...defaultStrategies().map(({ name }) => ({
    name: `without ${name}`,
    settings: {},
    withoutStrategies: [name],
  })),

  ...triggers
    .filter((trigger) => trigger !== 'messageCount')
    .map((trigger) => ({ name: `without ${trigger}`, settings: { triggers: { [trigger]: false } } })),

  { name: 'only shrinks', settings: { triggers: only({}) } },
  { name: 'only tokenBudget', settings: { shrinks: false, triggers: only({ tokenBudget: {} }) } },
  { name: 'only cacheRent', settings: { shrinks: false, triggers: only({ cacheRent: {} }) } },
  { name: 'only coldCache', settings: { shrinks: false, triggers: only({ coldCache: {} }) } },
  { name: 'without all', settings: { shrinks: false, triggers: only({}) } },
  { name: 'without read_memory', settings: { offerRecall: 'never' } },
  { name: 'read_memory with the first fold', settings: { offerRecall: 'with-fold' } },
];
