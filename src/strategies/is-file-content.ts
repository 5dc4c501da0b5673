/**
 * Whether a tool result shows a file as it is: what an agent may edit next by quoting its lines, so that no line may be laid out anew.
 * Told from the call alone, in doubt for the file.
 */
import { argumentsIn } from '../conversation/arguments.ts';
import { wordsOf } from './tool-words.ts';

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
