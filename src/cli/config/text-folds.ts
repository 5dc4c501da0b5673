/** The options of what whole messages leave behind: summaries, and records of sub-goals. Pure. */
import { z } from 'zod';
import { presetNames } from '../../outline/levels.ts';
import { switchable, told, whole } from './kinds.ts';

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
