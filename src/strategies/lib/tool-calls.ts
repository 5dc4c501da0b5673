/**
 * Whether a tool result shows a file as it is: what an agent may edit next by quoting its lines, so that no line may be laid out anew.
 * Told from the call alone, in doubt for the file.
 */
import { argumentsIn } from '../../conversation/json-record.ts';

/** `input` is the JSON text of the call's arguments. */
export function isFileContent({ name, input }: { readonly name: string; readonly input: string }): boolean {
  if (wordsOf(name).some((word) => fileWords.has(word))) return true;
  const command = commandIn(input);
  return command !== undefined && printsFile.test(command) && !machineWritten.test(command);
}

/** Words in the names of tools that read files, or that answer with what they changed in one. */
const fileWords = new Set(['read', 'view', 'open', 'cat', 'edit', 'write', 'replace', 'patch', 'notebook']);

/** Programs that print a file, at the beginning of a command; behind a pipe they only cut what another printed. */
const printsFile =
  /(?:^|[;&(\n]\s*|\bxargs (?:-\S+ )*|-exec )\s*(?:sudo )?(?:cat|head|tail|sed|awk|nl|less|more|bat|git (?:-\S+ \S+ )*(?:show|diff|blame))(?:\s|$)/;

const machineWritten = /\.(?:log|out|jsonl|csv|tsv)\b/;

function commandIn(input: string): string | undefined {
  const { command, cmd, script } = argumentsIn(input) ?? {};
  const found = command ?? cmd ?? script;
  if (typeof found === 'string') return found;
  // Some clients give the words of a command: ["bash", "-lc", "cat a.ts"].
  return Array.isArray(found) ? found.filter((word) => typeof word === 'string').join('\n') : undefined;
}

/** The words in the name of a tool: `read_file`, `ReadFile`, `fs.readFile` and `mcp__files__read` all hold the word read. */
function wordsOf(name: string): readonly string[] {
  return name
    .slice(0, 200)
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z0-9]+/);
}

/** Whether a tool answers with what it found, which comes best first. */
export function isSearch(name: string): boolean {
  return wordsOf(name).some((word) => searchWords.has(word));
}

const searchWords = new Set(['search', 'find', 'query', 'retrieve', 'lookup', 'browse', 'recommend']);

/** `input` is the JSON text of the arguments. */
export function callLabel({ name, input }: { readonly name: string; readonly input: string }): string {
  const about = firstText(input);
  return about === undefined ? name.slice(0, 60) : `${name.slice(0, 60)}(${about})`;
}

const LONGEST = 48;

/** Arguments that say what a call was about, the most telling first. */
const telling = /path|file|command|cmd|query|pattern|url|id$/i;

function firstText(input: string): string | undefined {
  const fields = argumentsIn(input);
  if (!fields) return undefined;
  const texts = Object.entries(fields).filter(
    (entry): entry is [string, string] => typeof entry[1] === 'string' && entry[1].trim() !== '',
  );
  const found = (texts.find(([key]) => telling.test(key)) ?? texts[0])?.[1];
  return found === undefined ? undefined : shortened(found);
}

/** Of a path its end, of others the beginning, in one line. */
function shortened(text: string): string {
  const line = text.trim().split('\n', 1)[0]!;
  if (/^\S*\/\S+$/.test(line)) return line.split('/').slice(-2).join('/').slice(-LONGEST);
  return line.length > LONGEST ? `${line.slice(0, LONGEST).toWellFormed()}…` : line;
}
