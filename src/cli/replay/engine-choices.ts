/** Engines that a command line brings, beside the one of the user's configuration. Pure. */
import type { FoldSettings } from '../../engine/default-engine.ts';
import { LeporelloError } from '../../errors.ts';
import { configSchema } from '../config/schema.ts';
import { layer } from '../config/layers.ts';
import { spellProblems } from '../config/problems.ts';
import { gatewaySettings } from '../config/to-settings.ts';

/** An engine by its settings, so that another one is data. */
export type EngineChoice = { readonly name: string; readonly settings: FoldSettings };

/** `NAME=JSON`, the JSON as a configuration file holds it. Throws `bad-usage` or `bad-config`. */
export function engineChoice(text: string): EngineChoice {
  const [, name, json] = /^([^={]+)=(\{.*)$/s.exec(text) ?? [];
  if (name === undefined || json === undefined) throw notUnderstood(text);
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (cause) {
    throw notUnderstood(text, cause);
  }
  const layered = layer({ flags: [], env: {}, file: { path: `--engine ${name}`, value } });
  const parsed = configSchema.safeParse(layered.value);
  if (!parsed.success)
    throw new LeporelloError('bad-config', spellProblems(parsed.error.issues, layered).join('\n'));
  return { name, settings: gatewaySettings(parsed.data) };
}

function notUnderstood(text: string, cause?: unknown): LeporelloError {
  const example = `early={"triggers":{"tokenBudget":{"trigger":60000,"target":20000}}}`;
  return new LeporelloError('bad-usage', `--engine is ${text}, but must be NAME=JSON, as in '${example}'.`, {
    cause,
  });
}
