/** Defines the allowed values of each setting of folding. The types require an entry for every option, so none can be forgotten. */
import { minCacheMb } from '../caches.ts';
import type { ShrinkOptions } from '../arrival/kind.ts';
import type { Pins } from '../engine/types.ts';
import {
  type Check,
  type Checks,
  allowed,
  fraction,
  isText,
  listOf,
  numberFrom,
  object,
  offOr,
  oneOf,
  positiveNumber,
  recordOf,
  secret as secretValue,
  shown,
  thingWith,
  trueOrFalse,
  wholeNumber,
} from '../checks.ts';
import type { EngineSettings, FoldSettings } from './default-engine.ts';
import type { Price } from '../tokens/model-facts.ts';
import { strategyChecks } from '../strategies/default-strategies.ts';
import type { ShrinkSettings } from '../strategies/shrink-results.ts';
import type { CalibrationOptions, CorrectionBounds } from '../tokens/calibration.ts';
import { tokenizerWords, whyNoTokenizer } from '../tokens/own-counter.ts';
import type { ModelOverride } from '../tokens/models.ts';
import { triggerChecks, type TriggerSettings } from '../triggers/default-triggers.ts';

const triggers = object<TriggerSettings>(triggerChecks);

const kinds: Readonly<Record<NonNullable<ShrinkOptions['without']>[number], true>> = {
  'numbered-lines': true,
  search: true,
  json: true,
  lines: true,
  html: true,
  terminal: true,
  blob: true,
};

const shrinks = object<ShrinkSettings>({
  lossless: trueOrFalse,
  lineNumbers: oneOf('every', 'every-fifth'),
  repeats: trueOrFalse,
  without: listOf(Object.keys(kinds).join(', '), (kind) => Object.hasOwn(kinds, String(kind))),
});

/** Checks a tokenizer. Its problem may lie in its functions, which are not visible in a printed value. */
const tokenizer: Check = (value, path) => {
  const problem = whyNoTokenizer(value);
  return problem === undefined
    ? []
    : [`${path} is ${shown(value)}, which ${problem}: give ${tokenizerWords}.`];
};

const model = object<ModelOverride>({
  windowTokens: wholeNumber(1),
  maxInputTokens: wholeNumber(1),
  maxOutputTokens: wholeNumber(1),
  tokenizer,
  cacheKeptMs: numberFrom(0),
});

const usd = numberFrom(0);

/** The settings that the library and the gateway share. */
const engineChecks: Checks<EngineSettings> = {
  pins: object<Pins>({
    tools: listOf('names of tools', isText),
    texts: listOf('texts of at least one character', isText),
    plan: trueOrFalse,
    instructions: trueOrFalse,
  }),
  shrinks: offOr(shrinks),
  models: recordOf('an object by model name or glob, such as { "my-*": { windowTokens: 32000 } }', model),
  mode: oneOf('fold', 'observe'),
  usdPerMillionTokens: recordOf(
    'an object by model name or glob, such as { "my-*": { input: 1, output: 5 } }',
    object<Price>({ input: usd, cacheRead: usd, cacheWrite: usd, cacheWriteLong: usd, output: usd }),
  ),
  cacheMarks: trueOrFalse,
  calibration: offOr(
    object<CalibrationOptions>({
      bounds: object<CorrectionBounds>({ min: fraction(), max: numberFrom(1) }, { required: ['min', 'max'] }),
      conversations: wholeNumber(1),
      models: wholeNumber(1),
    }),
  ),
  offerRecall: oneOf('always', 'with-fold', 'never'),
  offerNotes: trueOrFalse,
  repairEdits: trueOrFalse,
  memoryTtlMs: positiveNumber,
  cacheMb: numberFrom(minCacheMb),
  storeDeadlineMs: allowed(
    'a number of milliseconds above 0 and at most 3600000',
    (ms) => typeof ms === 'number' && ms > 0 && ms <= 3_600_000,
  ),
};

/** The settings of folding as data, which the gateway takes. */
export const foldChecks: Checks<FoldSettings> = { triggers, ...strategyChecks, ...engineChecks };

/** Checks of the options that say where originals and folds are kept. */
export const storeChecks: { readonly store: Check; readonly secret: Check } = {
  store: thingWith(
    'a store',
    'get',
    'getMany',
    'getFirst',
    'putMany',
    'putUnless',
    'touch',
    'delete',
    'close',
  ),
  secret: secretValue(
    'at least 32 bytes, such as new TextEncoder().encode(text)',
    (value) => value instanceof Uint8Array && value.length >= 32,
    (value) => (value instanceof Uint8Array ? shown(value) : `a value of the type ${typeof value}`),
  ),
};
