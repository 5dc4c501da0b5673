/** Classifies calls by the name of the tool and by the arguments: does a call show a file, is it a search, and what is it called in references. */
import { parseRecord } from '../../conversation/json-record.ts';

/**
 * True if a call shows a file unchanged. An agent may edit the file by quoting its lines, so these must not be rewritten. Decided by the call
 * alone, in doubt for a file. `input` is the JSON text of the arguments.
 */
export function isFileContent({ name, input }: { readonly name: string; readonly input: string }): boolean {
  if (wordsOf(name).some((word) => fileWords.has(word))) return true;
  const command = commandIn(input);
  return command !== undefined && printsFile.test(command) && !machineWritten.test(command);
}

/** Words in the names of tools that read files, or return what they changed in one. */
const fileWords = new Set(['read', 'view', 'open', 'cat', 'edit', 'write', 'replace', 'patch', 'notebook']);

/** Programs that print a file, at the start of a command; after a pipe they only filter other output. */
const printsFile =
  /(?:^|[;&(\n]\s*|\bxargs (?:-\S+ )*|-exec )\s*(?:sudo )?(?:cat|head|tail|sed|awk|nl|less|more|bat|git (?:-\S+ \S+ )*(?:show|diff|blame))(?:\s|$)/;

const machineWritten = /\.(?:log|out|jsonl|csv|tsv)\b/;

function commandIn(input: string): string | undefined {
  const { command, cmd, script } = parseRecord(input) ?? {};
  const found = command ?? cmd ?? script;
  if (typeof found === 'string') return found;
  // Some clients send the words of a command: ["bash", "-lc", "cat a.ts"].
  return Array.isArray(found) ? found.filter((word) => typeof word === 'string').join('\n') : undefined;
}

/** Returns the words in a tool's name: `read_file`, `ReadFile`, `fs.readFile` and `mcp__files__read` all contain the word read. */
function wordsOf(name: string): readonly string[] {
  return name
    .slice(0, 200)
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z0-9]+/);
}

/** True for a search tool, whose results come best first. */
export function isSearch(name: string): boolean {
  return wordsOf(name).some((word) => searchWords.has(word));
}

const searchWords = new Set(['search', 'find', 'query', 'retrieve', 'lookup', 'browse', 'recommend']);

/**
 * Returns a call's name in references, such as `Read(src/app.ts)`. Short; other calls may have the same name. `input` is the JSON text of the
 * arguments.
 */
export function callLabel({ name, input }: { readonly name: string; readonly input: string }): string {
  const about = firstText(input);
  return about === undefined ? name.slice(0, 60) : `${name.slice(0, 60)}(${about})`;
}

const MAX_LABEL = 48;

/** Names of arguments that say what a call was about. */
const descriptive = /path|file|command|cmd|query|pattern|url|id$/i;

function firstText(input: string): string | undefined {
  const fields = parseRecord(input);
  if (!fields) return undefined;
  const texts = Object.entries(fields).filter(
    (entry): entry is [string, string] => typeof entry[1] === 'string' && entry[1].trim() !== '',
  );
  const found = (texts.find(([key]) => descriptive.test(key)) ?? texts[0])?.[1];
  return found === undefined ? undefined : shortened(found);
}

/** Shortens a text to one line: the end of a path, or the beginning of another text. */
function shortened(text: string): string {
  const line = text.trim().split('\n', 1)[0]!;
  if (/^\S*\/\S+$/.test(line)) return line.split('/').slice(-2).join('/').slice(-MAX_LABEL);
  return line.length > MAX_LABEL ? `${line.slice(0, MAX_LABEL).toWellFormed()}…` : line;
}
