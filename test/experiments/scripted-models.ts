/** Scripts models whose next actions have known probabilities, to prove the statistics of the shadow. All numbers come from a seed. */
import { agreementOf, type ShadowSample } from '../../src/experiment/shadow-estimate.ts';
import { randomFrom } from './scripted.ts';

/** The probability of each next action; the rest is the last action. */
export type Actions = readonly number[];

/** The actions after the client's own request. */
export const whole: Actions = [0.6, 0.3, 0.1];

/** The actions after a fold, and the share of replies that recall first, after which they are as if never folded. */
export type FoldedModel = { readonly actions: Actions; readonly recalls?: number };

/** Draws samples. Every other conversation has two; one sample in four is of a request with a new fold, or all of them with `onlyFirst`. */
export function samplesOf(
  { actions, recalls = 0 }: FoldedModel,
  count: number,
  seed: number,
  onlyFirst = false,
): readonly ShadowSample[] {
  const random = randomFrom(seed);
  // A recall is answered, and the action after it is compared.
  const foldedAction = () => drawn(random() < recalls ? whole : actions, random);
  return Array.from({ length: count }, (_, at) => ({
    conversation: `${Math.floor(at / (1 + (at % 2)))} ${at % 3 === 0 ? 0 : at}`,
    isFirst: onlyFirst || at % 4 === 0,
    agreement: agreementOf([foldedAction(), foldedAction()], [drawn(whole, random), drawn(whole, random)]),
  }));
}

function drawn(actions: Actions, random: () => number): string {
  let left = random();
  const found = actions.findIndex((share) => (left -= share) < 0);
  return `action ${found}`;
}
