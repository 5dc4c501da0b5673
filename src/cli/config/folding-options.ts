/** The options of what whole messages leave behind: summaries, and records of sub-goals. Pure. */
import { z } from 'zod';
import { presetNames } from '../../outline/levels.ts';
import { fraction, number, switchable, told, whole } from './kinds.ts';

/** What a target must stay below. */
function limitOf(input: unknown): number {
  const { trigger, buffer = 0 } = input as { readonly trigger: number; readonly buffer?: number };
  return trigger - buffer;
}

const windowFraction = switchable(
  z
    .strictObject({
      trigger: fraction(0.85, 'Fraction of the window above which it fires.'),
      target: fraction(0.5, 'Fraction of the window to fold down to; below the trigger.'),
    })
    .refine(({ trigger, target }) => target < trigger, {
      path: ['target'],
      error: ({ input }) => `below triggers.windowFraction.trigger, ${limitOf(input)}`,
    }),
  'trigger and target',
  'Folds when a request takes more than a fraction of the window; false turns it off.',
);

const tokenBudget = switchable(
  z
    .strictObject({
      trigger: whole(2, 110_000, 'Tokens that the count and the buffer may not exceed.'),
      target: whole(1, 40_000, 'Tokens to fold down to; below trigger minus buffer.'),
      buffer: whole(0, 1_000, 'Tokens by which the count may be too low.'),
    })
    .refine(({ trigger, target, buffer }) => target < trigger - buffer, {
      path: ['target'],
      error: ({ input }) => `below trigger minus buffer of triggers.tokenBudget, ${limitOf(input)}`,
    }),
  'trigger, target and buffer',
  'Folds when a request is dearer than a number of tokens, whatever the window; false turns it off.',
);

const mustFit = switchable(
  z.strictObject({
    target: told(z.number().gt(0).lt(1).optional(), {
      allowed: 'a number above 0 and below 1',
      about: 'Fraction of the window to fold down to.',
      otherwise: 'that of windowFraction, else 0.5',
    }),
  }),
  'target',
  'Folds when a request would not fit the window beside its reply; false turns it off.',
);

const messageCount = switchable(
  z.strictObject({
    target: whole(1, 20, 'Messages to fold down to.'),
    buffer: whole(1, 5, 'Messages above the target that are put up with.'),
  }),
  'target and buffer',
  'Folds when a request has more messages than target and buffer together; false turns it off.',
);

const coldCache = switchable(
  z.strictObject({
    idleMs: told(z.number().min(0).optional(), {
      allowed: 'a number of at least 0',
      about: 'Milliseconds without a request after which nothing is cached any more.',
      otherwise: "that of the model, or of the client's own marks",
    }),
    keepForRequests: whole(
      0,
      8,
      'Requests for which a tool result counts as used; arguments of calls do twice as long.',
    ),
    keepStepsForRequests: whole(
      0,
      20,
      'Requests for which a whole step counts as used: a reply with its calls and results.',
    ),
    minTokens: number(0, 2_000, 'Tokens that a fold must take out at least.'),
  }),
  'idleMs, keepForRequests, keepStepsForRequests and minTokens',
  'Folds what is old where a pause was so long that the provider has dropped the conversation from its cache; false turns it off.',
);

const cacheRent = switchable(
  z.strictObject({
    keepForRequests: whole(
      0,
      4,
      'Requests for which a tool result counts as used; arguments of calls do twice as long.',
    ),
    keepStepsForRequests: told(z.int().min(0).optional(), {
      allowed: 'a whole number of at least 0',
      about: 'Requests for which a whole step counts as used: a reply with its calls and results.',
      otherwise: '14, and 12 where nothing is cached',
    }),
    minTokens: number(0, 2_000, 'Tokens that a fold must take out at least.'),
    minPayback: number(0, 9, 'How many times its price a fold must have cost in being put off.'),
  }),
  'keepForRequests, keepStepsForRequests, minTokens and minPayback',
  'Folds what is old where reading it from the cache again and again has cost more than a fold does; false turns it off.',
);

export const triggers = z
  .strictObject({
    mustFit: told(mustFit.schema.prefault({}), mustFit.meta),
    windowFraction: told(windowFraction.schema.prefault({}), windowFraction.meta),
    tokenBudget: told(tokenBudget.schema.prefault({}), tokenBudget.meta),
    messageCount: told(messageCount.schema.default(false), messageCount.meta),
    coldCache: told(coldCache.schema.prefault({}), coldCache.meta),
    cacheRent: told(cacheRent.schema.prefault({}), cacheRent.meta),
  })
  .prefault({});

export const shrinks = switchable(
  z.strictObject({
    lossless: told(z.boolean().default(false), {
      allowed: 'true or false',
      about: 'Whether nothing may be left out, not even like rows and log lines of long results.',
    }),
    lineNumbers: told(z.enum(['every', 'every-fifth']).default('every'), {
      allowed: 'every or every-fifth',
      about: 'Which line numbers of a listed file stay.',
    }),
    repeats: told(z.boolean().default(true), {
      allowed: 'true or false',
      about: 'Whether lines that an earlier result shows already are only referred to.',
    }),
  }),
  'lossless, lineNumbers and repeats',
  'Lays tool results out smaller when they come, before they are first sent; false leaves them as they are.',
);

/** How old messages become summaries. */
export const summaries = switchable(
  z.strictObject({
    kind: told(z.enum(['extractive', 'model']).default('extractive'), {
      allowed: 'extractive or model',
      about:
        'How they are written: of what was said, at the fold; or ahead of it, by a model of the same provider.',
    }),
    mostTokens: whole(100, 1_500, 'Tokens a summary aims at, at most; what the user demanded may take more.'),
    model: told(z.string().min(1).optional(), {
      allowed: 'the name of a model',
      about: 'Which model is asked for them, with the credential of the request.',
      otherwise: 'the one the conversation is with',
    }),
    deadlineMs: whole(1_000, 60_000, 'Milliseconds that a model may take for one.'),
  }),
  'kind, mostTokens, model and deadlineMs',
  'Old messages leave a summary behind, where they would leave a stub; false keeps to stubs.',
);

/** What it is for; unset by default. */
export const preset = told(z.enum(presetNames).optional(), {
  allowed: 'production, debugging, long-horizon or cost',
  about:
    'Folds finished sub-goals into records: at 10:1, at 3:1, at 15:1 with phases and overviews, at 12:1. What is set in subgoals overrules it.',
  otherwise: 'none',
});

const ofPreset = (otherwise: string) => `that of the preset, else ${otherwise}`;

/** How finished sub-goals become records. */
export const subgoals = switchable(
  z.strictObject({
    ratio: told(z.union([z.number().min(1.5).max(15), z.literal('adaptive')]).optional(), {
      allowed: 'a number from 1.5 to 15, or adaptive',
      about:
        'Tokens in for one token out on each level; adaptive: 15 where steps repeat each other, down to 5 where they differ.',
      otherwise: ofPreset('`10`'),
    }),
    levels: told(z.enum(['always', 'as-needed']).optional(), {
      allowed: 'always or as-needed',
      about:
        'Whether ten sub-goals become a phase, and five phases an overview, as soon as there are so many, or only where records take too much.',
      otherwise: ofPreset('`as-needed`'),
    }),
    minActions: told(z.int().min(0).optional(), {
      allowed: 'a whole number of at least 0',
      about: 'Conversations of fewer calls are left alone by it.',
      otherwise: ofPreset('`20`'),
    }),
  }),
  'ratio, levels and minActions',
  'Finished sub-goals leave a short record behind, whose id brings them back; false turns that off, whatever the preset.',
);
