import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { commandNames } from '../command-args.ts';
import { keyOfFlag } from '../flags.ts';
import { helpText } from '../help/help.ts';
import { type Option, options } from './options.ts';
import { presets } from '../../strategies/by-name.ts';
import { configSchema } from './schema.ts';

const page = readFileSync('docs/configuration.md', 'utf8');
const flagOfKey = new Map(Object.entries(keyOfFlag).map(([flag, key]) => [key, `--${flag}`]));

function tableOf(list: readonly Option[]): string {
  const rows = list.map((option) => [
    code(option.key),
    code(option.variable),
    code(flagOfKey.get(option.key) ?? ''),
    defaultOf(option),
    `${option.about} Allowed: ${option.allowed}.`,
  ]);
  const head = ['Key', 'Variable', 'Flag', 'Default', 'What it does'];
  return [head, head.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |\n`).join('');
}

function defaultOf({ fallback, otherwise, reads }: Option): string {
  if (otherwise !== undefined) return otherwise;
  if (reads === 'switch' && fallback !== false) return 'on';
  return code(typeof fallback === 'string' ? fallback : JSON.stringify(fallback));
}

function code(text: string): string {
  return text === '' ? '' : `\`${text}\``;
}

describe('docs/configuration.md', () => {
  it('has every option of the schema in its table, and no other', () => {
    const table = page.slice(page.indexOf('| Key '), page.indexOf('\n\n', page.indexOf('| Key ')) + 1);
    expect(table).toBe(tableOf(options));
  });

  it('shows a file that is valid and holds the defaults', () => {
    const [, json = ''] = /```json\n(.*?)```/s.exec(page) ?? [];
    const shown = JSON.parse(json) as Record<string, unknown>;
    configSchema.parse(shown);
    const { models, ...rest } = shown;
    const { models: none, ...defaults } = configSchema.parse({});
    expect(none).toEqual({});
    expect(Object.keys(models as object)).not.toEqual([]);
    expect(rest).toEqual(defaults);
  });
});

describe('help', () => {
  const known = new Set([...options.map(({ variable }) => variable), 'LEPORELLO_CONFIG', 'LEPORELLO_SECRET']);

  it.each([undefined, ...commandNames])('names only existing variables (%s)', (topic) => {
    const named = helpText(topic).match(/LEPORELLO_[A-Z_]+/g) ?? [];
    expect(named.filter((variable) => !known.has(variable))).toEqual([]);
  });

  it.each(commandNames)('fits a terminal of 110 columns (%s)', (topic) => {
    const lines = helpText(topic).split('\n');
    expect(lines.filter((line) => line.length > 110)).toEqual([]);
  });

  it('says when to use each preset, as the help of serve does', () => {
    for (const [name, { use }] of Object.entries(presets)) {
      expect(page).toContain(`${name}: ${use}.`);
      expect(helpText('serve')).toContain(`    ${name.padEnd(13)}${use}\n`);
    }
  });
});
