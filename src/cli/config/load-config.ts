/**
 * Loads the configuration of a command: flags override variables, variables the file, and the file the defaults. The options are defined in
 * schema.ts.
 */
import { readFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { LeporelloError } from '../../errors.ts';
import type { SettingArgs } from '../flags.ts';
import { mergeSources, type MergedConfig, spellProblems } from './merge-sources.ts';
import { type Config, configSchema } from './schema.ts';
import type { Environment } from '../terminal.ts';
import { homeOf } from '../home.ts';

export type LoadedConfig = {
  readonly config: Config;
  /** The data folder as an absolute path; undefined when it is the default and this user has no home folder. */
  readonly dataDir: string | undefined;
  /** Unknown variables with the prefix `LEPORELLO_`. */
  readonly unknownVariables: readonly string[];
};

export type ConfigPlace = { readonly env: Environment; readonly cwd: string };

/** Loads the configuration. Rejects with `bad-config` and one line for each problem. */
export async function loadConfig(settings: SettingArgs, { env, cwd }: ConfigPlace): Promise<LoadedConfig> {
  const named = settings.file ?? (env['LEPORELLO_CONFIG'] || undefined);
  const file = named === undefined ? undefined : await readConfig(named, resolve(cwd, named));
  const merged = mergeSources({ flags: settings.values, env, file });
  const parsed = configSchema.safeParse(merged.value);
  if (!parsed.success) {
    throw new LeporelloError('bad-config', spellProblems(parsed.error.issues, merged).join('\n'));
  }
  const base = merged.originOf(['data']).type === 'file' && named ? dirname(resolve(cwd, named)) : cwd;
  return {
    config: parsed.data,
    dataDir: dataDirOf(parsed.data.data, base, env, merged),
    unknownVariables: merged.unknownVariables,
  };
}

async function readConfig(name: string, path: string): Promise<{ path: string; value: unknown }> {
  const text = await readFile(path, 'utf8').catch((cause: unknown) => {
    const said = cause instanceof Error ? cause.message : String(cause);
    throw new LeporelloError(
      'bad-config',
      `Cannot read the configuration file ${name}: ${said}. Check --config or LEPORELLO_CONFIG.`,
      { cause },
    );
  });
  let value: unknown;
  try {
    value = JSON.parse(text.replace(/^\uFEFF/, ''));
  } catch (cause) {
    // The parser's own message may quote a secret.
    const place = placeIn(text, cause);
    throw new LeporelloError(
      'bad-config',
      `The configuration file ${name} is not valid JSON${place}. Comments and trailing commas are not allowed.`,
      { cause },
    );
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { path: name, value };
  throw new LeporelloError(
    'bad-config',
    `The configuration file ${name} does not contain a JSON object. Write the options as an object, such as {"port": 8787}.`,
  );
}

function placeIn(text: string, cause: unknown): string {
  const position = cause instanceof Error ? /at position (\d+)/.exec(cause.message)?.[1] : undefined;
  if (position === undefined) return text.trim() === '' ? ': it is empty' : '';
  const before = text.slice(0, Number(position)).split('\n');
  return `: see line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}`;
}

/** Returns the data folder. A leading `~` is replaced by this user's home here, because no shell does it for files and services. */
function dataDirOf(data: string, base: string, env: Environment, merged: MergedConfig): string | undefined {
  const inHome = /^~(?:[/\\](.*))?$/s.exec(data);
  if (inHome === null) return resolve(base, data);
  const home = homeOf(env);
  if (home !== undefined) return join(home, inHome[1] ?? '');
  if (merged.originOf(['data']).type === 'default') return undefined;
  throw new LeporelloError(
    'bad-config',
    `data is ${JSON.stringify(data)}, but this user has no home folder. Set HOME, or set data to an absolute path.`,
  );
}
