/**
 * Finds the files that a call shows, by the name of its tool or by the programs in its command. Pure; linear in its input.
 */
import { parseRecord } from '../conversation/json-scan.ts';
import { commandIn, printers, shellCall, wordsOf } from './outcome.ts';
import { kindOf, maxInput, pathIn, type StepCall } from './step-line.ts';

/** A file that a call shows, and which lines of it; empty if it shows all of them. */
export type FileRead = { readonly path: string; readonly lines: string };

/**
 * Returns the files that a call shows unchanged: by a tool that reads, or by commands such as `cat`, `nl` or `sed -n`. Output that went through a
 * pipe is not a file.
 */
export function filesRead({ tool, input }: Pick<StepCall, 'tool' | 'input'>): readonly FileRead[] {
  const sent = (input.length > maxInput ? undefined : parseRecord(input)) ?? {};
  const path = pathIn(sent);
  const kind = kindOf(tool, sent, path);
  if (kind === 'command') return filesPrinted((commandIn(sent) ?? '').replace(shellCall, ''));
  if (kind !== 'read') return [];
  const range = Object.entries(sent).filter(([key, value]) => rangeKey.test(key) && value !== null);
  return [{ path, lines: range.map((pair) => pair.join('=')).join(' ') }];
}

const rangeKey =
  /^(?:offset|limit|view_range|(?:start|end)_?line\w*|line_?(?:start|end|range)\w*|head|tail)$/i;

/** Characters of the longest command that is read. */
const maxCommand = 2_000;

/** Returns the files that a command prints; none if it does anything else as well. */
function filesPrinted(command: string): readonly FileRead[] {
  const line = command.slice(0, maxCommand + 1).trim();
  if (line.length > maxCommand || /[|<>`]|\$\(/.test(line)) return [];
  const files: FileRead[] = [];
  for (const one of line.split(/&&|;|\n/)) {
    const [program = '', ...words] = one.match(/"[^"]*"|'[^']*'|[^\s"']+/g) ?? [];
    if (program === 'cd' || program === '') continue;
    const options = words.filter(
      (word, at) => word.startsWith('-') || isOption(program, word, words[at - 1]),
    );
    const isPrinter =
      program === 'sed' ? (words[0]?.startsWith('-n') ?? false) : /^(?:cat|bat|nl|head|tail)$/.test(program);
    if (!isPrinter) return [];
    const lines = /^(?:sed|head|tail)$/.test(program) ? `${program} ${options.join(' ')}` : '';
    for (const word of words)
      if (!options.includes(word)) files.push({ path: word.replaceAll(/^["']|["']$/g, ''), lines });
  }
  return files;
}

/** True for a script of sed, and for a number that belongs to the option before it. */
function isOption(program: string, word: string, before = ''): boolean {
  return program === 'sed' ? /^["']?[\d,$]+p;?["']?$/.test(word) : /^-\w$/.test(before) && /^\d+$/.test(word);
}

/**
 * True if a call shows a file unchanged. An agent may edit the file by quoting its lines, so these must not be rewritten. Decided by the call
 * alone, in doubt for a file. `input` is the JSON text of the arguments.
 */
export function isFileContent({ name, input }: { readonly name: string; readonly input: string }): boolean {
  if (wordsOf(name).some((word) => fileWords.has(word))) return true;
  const command = commandIn(parseRecord(input) ?? {});
  return command !== undefined && printsFile.test(command) && !machineWritten.test(command);
}

/** Words in the names of tools that read files, or return what they changed in one. */
const fileWords = new Set(['read', 'view', 'open', 'cat', 'edit', 'write', 'replace', 'patch', 'notebook']);

/** Programs that print a file, at the start of a command; after a pipe they only filter other output. */
const printsFile = new RegExp(
  String.raw`(?:^|[;&(\n]\s*|\bxargs (?:-\S+ )*|-exec )\s*(?:sudo )?(?:${printers}|more|bat)(?:\s|$)`,
);

const machineWritten = /\.(?:log|out|jsonl|csv|tsv)\b/;
