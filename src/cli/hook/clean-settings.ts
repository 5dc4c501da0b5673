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
  const words = [command, args].flat().filter((word) => typeof word === 'string');
  const line = words.join(' ');
  if (!line.includes('leporello') && !/cli[\\/]main\.[jt]s/.test(line)) return undefined;
  if (/\bhook['"]? (?:claude|codex|cursor|gemini)\b/.test(line)) return 'a hook';
  return /\bmcp\b/.test(line) ? 'an MCP server' : undefined;
}

/** Returns a TOML file without lines that set a base URL of ours, and without tables of MCP servers that run Leporello. */
export function cleanedToml(text: string, isOurs: UrlTest): Cleaned {
  const found: string[] = [];
  const tables = text.split(/(?<=^|\n)(?=[ \t]*\[)/).filter((table) => {
    const isServer = /^\s*\[mcp_servers\./.test(table) && /leporello/.test(table) && /\bmcp\b/.test(table);
    if (isServer) found.push('an MCP server');
    return !isServer;
  });
  const lines = tables
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
