/** Creates strategies that leave small texts alone. */
import { checkSettings, object, wholeNumber } from '../../checks.ts';
import type { Edit } from '../../conversation/edit.ts';
import type { Steps } from '../../conversation/steps.ts';
import { type FoldView, type Reach, type Strategy, steppedStrategy } from '../strategy.ts';

export type MinBytesOptions = {
  /** Texts of fewer bytes (UTF-8) are never replaced. Default 1,000. */
  readonly minResultBytes?: number | undefined;
};

const check = object<MinBytesOptions>({ minResultBytes: wholeNumber(0) });

type Shape = { readonly name: string; readonly reach: Reach; readonly calledAs: string };

/** Creates a strategy whose view has the minimum of its options. Throws `bad-config` for other options; `calledAs` is the function that got them. */
export function minBytesStrategy(
  { name, reach, calledAs }: Shape,
  options: MinBytesOptions,
  propose: (view: FoldView) => Steps<readonly Edit[]>,
): Strategy {
  checkSettings(check, options, calledAs);
  const { minResultBytes = 1_000 } = options;
  const stepped = steppedStrategy(name, reach, (view) => propose({ ...view, minResultBytes }));
  return { ...stepped, minResultBytes };
}
