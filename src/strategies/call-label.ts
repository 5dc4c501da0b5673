/** What a reference calls the result of a call: `Read(src/app.ts)`. Short; other calls may be called the same. Pure. */
import { argumentsIn } from '../conversation/arguments.ts';

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
