/** Defines the options that decide when and how to fold: triggers, shrinks, summaries and sub-goals. */
import { z } from 'zod';
import { type FoldPreset, type StrategyChoice, presets, strategyNames } from '../../strategies/by-name.ts';
import { strategyChecks } from '../../strategies/default-strategies.ts';
import type { TriggerSettings } from '../../triggers/default-triggers.ts';
import type { TokenBudgetOptions } from '../../triggers/limits.ts';
import { fraction, number, switchable, described, whole } from './kinds.ts';

const windowFraction = switchable(
  z
    .strictObject({
      triggerShare: fraction(0.85, 'Share of the window above which the trigger fires.'),
      targetShare: fraction(0.5, 'Share of the window to fold down to; must be below triggerShare.'),
    })
    .refine(({ triggerShare, targetShare }) => targetShare < triggerShare, {
      path: ['targetShare'],
      error: ({ input }) =>
        `below triggers.windowFraction.triggerShare, ${(input as { readonly triggerShare: number }).triggerShare}`,
    }),
  'triggerShare and targetShare',
  'Folds a request that takes more than a share of the window; false turns it off.',
);

const tokenBudget = switchable(
  z
    .strictObject({
      triggerTokens: whole(2, 110_000, 'Tokens above which the trigger fires, counted plus bufferTokens.'),
      targetTokens: whole(
        1,
        40_000,
        'Tokens to fold down to; must be below triggerTokens minus bufferTokens.',
      ),
      bufferTokens: whole(0, 1_000, 'Tokens added to the count, because it may be too low.'),
    })
    .refine(({ triggerTokens, bufferTokens }) => triggerTokens - bufferTokens >= 2, {
      path: ['triggerTokens'],
      abort: true,
      error: ({ input }) =>
        `above bufferTokens of triggers.tokenBudget, ${(input as TokenBudgetOptions).bufferTokens}, by at least 2`,
    })
    .refine(({ triggerTokens, targetTokens, bufferTokens }) => targetTokens < triggerTokens - bufferTokens, {
      path: ['targetTokens'],
      error({ input }) {
        const { triggerTokens, bufferTokens } = input as TokenBudgetOptions;
        return `below triggerTokens minus bufferTokens of triggers.tokenBudget, ${triggerTokens! - bufferTokens!}`;
      },
    }),
  'triggerTokens, targetTokens and bufferTokens',
  'Folds a request of more than a number of tokens, whatever the window is; false turns it off.',
);

const mustFit = switchable(
  z.strictObject({
    targetShare: described(z.number().gt(0).lt(1).optional(), {
      allowed: 'a number above 0 and below 1',
      about: 'Share of the window to fold down to.',
      otherwise: 'the targetShare of windowFraction, or 0.5',
    }),
  }),
  'targetShare',
  'Folds a request that would not fit the window together with its reply; false turns it off.',
);

const messageCount = switchable(
  z.strictObject({
    targetMessages: whole(1, 20, 'Messages to fold down to.'),
    bufferMessages: whole(1, 5, 'Messages above targetMessages that are tolerated.'),
  }),
  'targetMessages and bufferMessages',
  'Folds a request with more messages than targetMessages and bufferMessages together; false turns it off.',
);

const coldCache = switchable(
  z.strictObject({
    idleMs: described(z.number().min(0).optional(), {
      allowed: 'a number of at least 0',
      about: 'Milliseconds without a request after which the provider no longer caches the conversation.',
      otherwise: "that of the model, or of the client's cache marks",
    }),
    keepForRequests: whole(
      0,
      8,
      'Requests for which a tool result counts as recent; call arguments count as recent for twice as many.',
    ),
    keepStepsForRequests: whole(
      0,
      20,
      'Requests for which a step (a reply with its calls and results) counts as recent.',
    ),
    minTokens: number(0, 2_000, 'Tokens that a fold must remove at least.'),
  }),
  'idleMs, keepForRequests, keepStepsForRequests and minTokens',
  'Folds old content after a pause in which the provider dropped the conversation from its cache; false turns it off.',
);

const cacheRent = switchable(
  z.strictObject({
    keepForRequests: whole(
      0,
      4,
      'Requests for which a tool result counts as recent; call arguments count as recent for twice as many, those of edits for three times as many if the provider caches.',
    ),
    keepStepsForRequests: described(z.int().min(0).optional(), {
      allowed: 'a whole number of at least 0',
      about:
        'Requests for which a step (a reply with its calls and results) counts as recent. If the provider caches, a step that edits a file counts for 1.6 times as many, and one that only runs commands or searches for 0.35 times as many.',
      otherwise: '14, or 12 if the provider caches nothing',
    }),
    minTokens: number(0, 2_000, 'Tokens that a fold must remove at least.'),
    minPayback: number(
      0,
      6,
      'Folds when sending the old content again has cost at least this many times what the fold costs.',
    ),
  }),
  'keepForRequests, keepStepsForRequests, minTokens and minPayback',
  'Folds old content when sending it again in each request has cost several times (minPayback) what a fold costs; false turns it off.',
);

export const triggers = z
  .strictObject({
    mustFit: described(mustFit.schema.prefault({}), mustFit.meta),
    windowFraction: described(windowFraction.schema.prefault({}), windowFraction.meta),
    tokenBudget: described(tokenBudget.schema.prefault({}), tokenBudget.meta),
    messageCount: described(messageCount.schema.default(false), messageCount.meta),
    coldCache: described(coldCache.schema.prefault({}), coldCache.meta),
    cacheRent: described(cacheRent.schema.prefault({}), cacheRent.meta),
  } satisfies Record<keyof TriggerSettings, z.ZodType>)
  .prefault({});

export const shrinks = switchable(
  z.strictObject({
    lossless: described(z.boolean().default(false), {
      allowed: 'true or false',
      about: 'true leaves out nothing, not even similar rows and log lines of long results.',
    }),
    lineNumbers: described(z.enum(['every', 'every-fifth']).default('every'), {
      allowed: 'every or every-fifth',
      about: 'The line numbers that are kept in a file with line numbers.',
    }),
    repeats: described(z.boolean().default(true), {
      allowed: 'true or false',
      about: 'true replaces lines that an earlier result already shows by a reference to it.',
    }),
  }),
  'lossless, lineNumbers and repeats',
  'Makes new tool results smaller before they are first sent; false leaves them as they are.',
);

const strategyList = `a list of at least one of ${strategyNames.join(', ')}; an entry with options is an object, such as {"name": "offload-results", "minResultBytes": 2000}`;

/** The option `strategies`, which is not set by default. */
export const strategies = described(
  z
    .array(z.unknown())
    .refine(areStrategies, {
      error: ({ input }) => [strategyList, ...problemsOf(input)].join('. '),
    })
    .optional(),
  {
    allowed: strategyList,
    about:
      'Strategies by name, in order, least harm first; each works on what those before it left. Options that an entry does not set are those of summaries, subgoals, preset, minResultBytes and keepNewestMedia.',
    otherwise:
      'all of them in this order, fold-subgoals only with subgoals or a preset, summarize-history only with summaries',
  },
);

/** Returns what is wrong with each entry. The names, which `strategyList` has, and the last full stop are left out. */
function problemsOf(list: unknown): readonly string[] {
  return strategyChecks
    .strategies(list, 'strategies')
    .map((problem) => problem.replace(/ Strategies by name: .*/, '').replace(/\.$/, ''));
}

function areStrategies(value: unknown): value is readonly StrategyChoice[] {
  return strategyChecks.strategies(value, 'strategies').length === 0;
}

/** The options of summaries. */
export const summaries = switchable(
  z.strictObject({
    kind: described(z.enum(['extractive', 'model']).default('extractive'), {
      allowed: 'extractive or model',
      about:
        'extractive takes sentences of the conversation, at the fold; model has a model of the same provider write the summary, ahead of the fold.',
    }),
    maxTokens: whole(100, 1_500, "Tokens of a summary at most; the user's requirements may take more."),
    model: described(z.string().min(1).optional(), {
      allowed: 'the name of a model',
      about: "Model that writes summaries, with the request's credential.",
      otherwise: 'the model of the conversation',
    }),
    deadlineMs: whole(1_000, 60_000, 'Milliseconds that a model may take for a summary.'),
  }),
  'kind, maxTokens, model and deadlineMs',
  'Replaces old messages by a summary instead of a log; false uses logs.',
);

const writer = (of: string) => ({
  model: described(z.string().min(1).optional(), {
    allowed: 'the name of a model',
    about: `Model that writes ${of}, with the request's credential; one model writes summaries, items and records.`,
    otherwise: 'the model of the conversation',
  }),
  deadlineMs: described(z.int().min(1_000).optional(), {
    allowed: 'a whole number of at least 1000',
    about: `Milliseconds that a model may take for the ${of} of one fold.`,
    otherwise: '`60000`',
  }),
});

/** The options of items of old lists. */
export const items = switchable(
  z.strictObject({
    kind: described(z.enum(['extractive', 'model']).default('extractive'), {
      allowed: 'extractive or model',
      about:
        'extractive shortens an item to sentences of its own, at the fold; model has a model of the same provider put likely items in fewer words, ahead of the fold.',
    }),
    ...writer('items'),
  }),
  'kind, model and deadlineMs',
  'Shortens old lists item by item before results become stubs, if that is enough for the fold; false makes stubs.',
);

const presetNames = Object.keys(presets) as [FoldPreset, ...FoldPreset[]];

/** The option `preset`, which is not set by default. */
export const preset = described(z.enum(presetNames).optional(), {
  allowed: 'cost, long-horizon, production, summaries or debugging',
  about: `Settings for a kind of work, from the one that keeps least to the one that keeps most; other options override them. ${Object.entries(
    presets,
  )
    .map(([name, { use }]) => `${name}: ${use}.`)
    .join(' ')}`,
  otherwise: 'none',
});

const ofPreset = (otherwise: string) => `that of the preset, or ${otherwise}`;

/** The options of records of sub-goals. */
export const subgoals = switchable(
  z.strictObject({
    kind: described(z.enum(['extractive', 'model']).optional(), {
      allowed: 'extractive or model',
      about:
        'extractive takes lines of the conversation, at the fold; model has a model of the same provider write what likely records say, ahead of the fold.',
      otherwise: '`extractive`',
    }),
    ...writer('records'),
    ratio: described(z.union([z.number().min(1.5).max(1_000), z.literal('adaptive')]).optional(), {
      allowed: 'a number from 1.5 to 1000, or adaptive',
      about:
        'Compression ratio of each level; one above 15 is reached by levels; adaptive: 15 for repetitive steps, down to 5 for steps that differ.',
      otherwise: ofPreset('`10`'),
    }),
    minRatio: described(z.number().min(1.5).max(15).optional(), {
      allowed: 'a number from 1.5 to 15',
      about: 'Lowest compression ratio of a level.',
      otherwise: '`1.5`, `5` with an adaptive ratio',
    }),
    maxRatio: described(z.number().min(1.5).max(15).optional(), {
      allowed: 'a number from 1.5 to 15',
      about: 'Highest compression ratio of a level.',
      otherwise: '`15`',
    }),
    maxTokens: described(z.int().min(40).optional(), {
      allowed: 'a whole number of at least 40',
      about: 'Most tokens of one record.',
      otherwise: 'no limit',
    }),
    levels: described(z.enum(['always', 'as-needed']).optional(), {
      allowed: 'always or as-needed',
      about:
        'Merges ten sub-goals into a phase, and five phases into an overview: always, or only when the records take too many tokens.',
      otherwise: ofPreset('`as-needed`'),
    }),
    minActions: described(z.int().min(0).optional(), {
      allowed: 'a whole number of at least 0',
      about: 'Calls that a conversation must have before its sub-goals are folded.',
      otherwise: ofPreset('`20`'),
    }),
  }),
  'kind, model, deadlineMs, ratio, minRatio, maxRatio, maxTokens, levels and minActions',
  'Replaces finished sub-goals by a short record, whose id recalls them; false turns it off, also for a preset.',
);
