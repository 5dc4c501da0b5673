/**
 * Removes entries of Leporello from a settings file: hooks and MCP servers that run it, and base URLs that lead to it. Everything else stays
 * as it is. Pure.
 */
import { isRecord } from '../../conversation/json-scan.ts';
import { type SettingsObject, parsedJson } from '../wrap/read-settings.ts';

/** A file without our entries. */
export type Cleaned = {
  /** Names the entries that were found. */
  readonly found: readonly string[];
  /** The new text, empty if nothing of use is left; undefined if the file must be changed by hand. */
  readonly text: string | undefined;
};

type UrlTest = (url: string) => boolean;

/** Returns a JSON file without our entries. A file with comments is only searched. */
export function cleanedJson(text: string, isOurs: UrlTest): Cleaned {
  const found: string[] = [];
  const value = parsedJson(text);
  const rest = value && (without(value, isOurs, found) as SettingsObject | undefined);
  if (found.length === 0) return { found, text };
  try {
    JSON.parse(text);
  } catch {
    return { found, text: undefined };
  }
  if (rest === undefined || Object.keys(rest).every((key) => key === 'version')) return { found, text: '' };
  const indent = /^[{[]\r?\n([ \t]+)/.exec(text)?.[1] ?? (text.includes('\n') ? 2 : undefined);
  return { found, text: JSON.stringify(rest, null, indent) + (/\s*$/.exec(text)?.[0] ?? '') };
}

/** Returns a value without our entries, and notes them; undefined when nothing else was in it. */
function without(value: unknown, isOurs: UrlTest, found: string[]): unknown {
  const our = entryOf(value) ?? (typeof value === 'string' && isOurs(value) ? 'a base URL' : undefined);
  if (our !== undefined) {
    found.push(our);
    return undefined;
  }
  if (Array.isArray(value)) {
    const kept = value.map((one) => without(one, isOurs, found)).filter((one) => one !== undefined);
    return kept.length === 0 && value.length > 0 ? undefined : kept;
  }
  if (!isRecord(value)) return value;
  const kept = new Map<string, unknown>();
  for (const [key, one] of Object.entries(value)) {
    const rest = without(one, isOurs, found);
    if (rest !== undefined) kept.set(key, rest);
  }
  // The guide sets both variables together, and a group of hooks is of no use without its hooks.
  if ('ANTHROPIC_BASE_URL' in value && !kept.has('ANTHROPIC_BASE_URL')) kept.delete('ENABLE_TOOL_SEARCH');
  const isOver = Array.isArray(value['hooks']) && !kept.has('hooks');
  return isOver || (kept.size === 0 && Object.keys(value).length > 0) ? undefined : Object.fromEntries(kept);
}

/** Names an entry that runs Leporello; undefined for any other value. */
function entryOf(value: unknown): string | undefined {
  if (!isRecord(value)) return undefined;
  const { command, args } = value;
  return runOf([command, args].flat().filter((word) => typeof word === 'string'));
}

/** The command of Leporello, or the file that is run in its place, and the word after it. A hook has the whole line in one text, where a path may be in quotes. */
const ownRun =
  /(?:^|[\s'"\\/])(?:leporello(?:@[\w.~^-]+|\.cmd)?|leporello[\\/](?:\S*[\\/])?src[\\/]cli[\\/]main\.[jt]s|bootstrap\.mjs['"]? --production src\/cli\/main\.ts)['"]? (?<word>hook(?= (?:claude|codex|cursor|gemini)\b)|mcp(?![\w-]))/;

/** Names what a command of Leporello does in the settings of an agent; undefined for any other command. */
function runOf(words: readonly string[]): string | undefined {
  const word = ownRun.exec(words.join(' '))?.groups?.['word'];
  return word && (word === 'hook' ? 'a hook' : 'an MCP server');
}

/** Returns a TOML file without lines that set a base URL of ours, and without the tables of MCP servers that run Leporello. */
export function cleanedToml(text: string, isOurs: UrlTest): Cleaned {
  const found: string[] = [];
  const tables = text.split(/(?<=^|\n)(?=[ \t]*\[)/).map((table) => ({ table, server: serverOf(table) }));
  const ours = new Set(
    tables.flatMap(({ table, server }) => (server !== undefined && runOf(wordsIn(table)) ? [server] : [])),
  );
  found.push(...Array.from(ours, () => 'an MCP server'));
  const lines = tables
    .map(({ table, server }) => (server !== undefined && ours.has(server) ? commentsAfter(table) : table))
    .join('')
    .split(/(?<=\n)/)
    .filter((line) => {
      const [, key, url] = /^\s*([\w.-]*base_url)\s*=\s*["']([^"']*)["']/.exec(line) ?? [];
      if (url === undefined || !isOurs(url)) return true;
      found.push(`the base URL ${key}`);
      return false;
    });
  return { found, text: lines.join('') };
}

/** Returns the name of the MCP server that a table belongs to, also one of its inner tables. */
function serverOf(table: string): string | undefined {
  const [, name] = /^\s*\[mcp_servers\.("[^"]*"|'[^']*'|[\w-]+)/.exec(table) ?? [];
  return name?.replaceAll(/["']/g, '');
}

/** Returns the words of the command in the table of an MCP server. */
function wordsIn(table: string): readonly string[] {
  const [, command = ''] = /^\s*command\s*=\s*("[^"]*"|'[^']*')/m.exec(table) ?? [];
  const [, args = ''] = /^\s*args\s*=\s*\[([^\]]*)\]/m.exec(table) ?? [];
  return Array.from(
    `${command} ${args}`.matchAll(/"([^"]*)"|'([^']*)'/g),
    ([, one, other]) => one ?? other ?? '',
  );
}

/** Returns the comments at the end of a table: they are about the next one. */
function commentsAfter(table: string): string {
  return /(?<=\n)[ \t]*#[^\n]*(?:\n[ \t]*(?:#[^\n]*|\r?))*$/.exec(table)?.[0] ?? '';
}
