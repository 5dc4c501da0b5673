/** Which models check that their thinking stands in the conversation it was made in. */
/**
 * Models whose thinking signatures are bound to everything before them: system, tools and every earlier message.
 * "Invalid `signature` in `thinking` block … bound to a different conversation" (docs, preserved thinking, 2026-08).
 */
const bound = /(?:fable|mythos)-5[-.][12]|(?:opus|sonnet|haiku)-5[-.]5/;

/** True for a model that refuses thinking whose prefix was edited. */
export function bindsReasoning(model: string | undefined): boolean {
  return bound.test(model ?? '');
}
