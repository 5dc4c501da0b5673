/**
 * Removes entries of Leporello from a settings file: hooks and MCP servers that run it, and base URLs that lead to it. Everything else stays
 * as it is. Pure.
 */
import type { Span } from '../../conversation/conversation.ts';
import {
  type Splice,
  applySplices,
  isRecord,
  listSplices,
  parseRecord,
  parseSpan,
  scanArray,
  scanObject,
  skipSpace,
} from '../../conversation/json-scan.ts';
import { parsedJson } from '../wrap/read-settings.ts';

/** A file without our entries. */
export type Cleaned = {
  /** Names the entries that were found. */
  readonly found: readonly string[];
  /** The new text, empty if nothing of use is left; undefined if the file must be changed by hand. */
  readonly text: string | undefined;
};

type UrlTest = (url: string) => boolean;

/** Returns a JSON file without our entries. All other bytes stay as they are. A file with comments is only searched. */
export function cleanedJson(text: string, isOurs: UrlTest): Cleaned {
  const value = parsedJson(text);
  if (value === undefined) return { found: [], text };
  const isPlain = parseRecord(text) !== undefined;
  const bytes = encoder.encode(isPlain ? text : JSON.stringify(value));
  const found: string[] = [];
  const cuts = cutsIn(bytes, { start: skipSpace(bytes, 0), end: bytes.length }, isOurs, found);
  if (found.length === 0) return { found, text };
  if (!isPlain) return { found, text: undefined };
  const rest = cuts && decoder.decode(applySplices(bytes, cuts));
  const isEmpty = Object.keys(parseRecord(rest ?? '{}') ?? {}).every((key) => key === 'version');
  return { found, text: isEmpty ? '' : rest };
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Returns the splices that cut our entries out of a value, and notes the entries; undefined when nothing else is in it. */
function cutsIn(
  bytes: Uint8Array,
  span: Span,
  isOurs: UrlTest,
  found: string[],
): readonly Splice[] | undefined {
  const value = parseSpan(bytes, span);
  const our = entryOf(value) ?? (typeof value === 'string' && isOurs(value) ? 'a base URL' : undefined);
  if (our !== undefined) {
    found.push(our);
    return undefined;
  }
  const members = isRecord(value) ? scanObject(bytes, span.start).members : [];
  const parts = Array.isArray(value)
    ? scanArray(bytes, span.start).elements.map((part) => ({ key: '', span: part, value: part }))
    : members;
  const cuts = parts.map((part) => cutsIn(bytes, part.value, isOurs, found));
  const isCut = (key: string) => parts.some((part, at) => part.key === key && cuts[at] === undefined);
  // The guide sets both variables together, and a group of hooks is of no use without its hooks.
  const isWithout = (key: string) => key === 'ENABLE_TOOL_SEARCH' && isCut('ANTHROPIC_BASE_URL');
  const isGone = (at: number) => cuts[at] === undefined || isWithout(parts[at]!.key);
  const isOver = isRecord(value) && Array.isArray(value['hooks']) && isCut('hooks');
  if (isOver || (parts.length > 0 && parts.every((_, at) => isGone(at)))) return undefined;
  const spans = parts.map((part) => part.span);
  return [
    ...listSplices(spans, span.end, isGone),
    ...cuts.flatMap((inner, at) => (isGone(at) ? [] : (inner ?? []))),
  ];
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
  const [, command = ''] = /^[^\S\n]*command\s*=\s*("[^"]*"|'[^']*')/m.exec(table) ?? [];
  const [, args = ''] = /^[^\S\n]*args\s*=\s*\[([^\]]*)\]/m.exec(table) ?? [];
  return Array.from(
    `${command} ${args}`.matchAll(/"([^"]*)"|'([^']*)'/g),
    ([, one, other]) => one ?? other ?? '',
  );
}

/** Returns the comments at the end of a table: they are about the next one. */
function commentsAfter(table: string): string {
  return /(?<=\n)[ \t]*#[^\n]*(?:\n[ \t]*(?:#[^\n]*|\r?))*$/.exec(table)?.[0] ?? '';
}
