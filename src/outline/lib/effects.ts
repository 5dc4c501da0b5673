/** Tells calls that change more than the content of files: they commit, send, publish, move or delete. Pure; linear in its input. */
import { gitChange, type StepKind, wordsOf } from '../outcome.ts';

/** The words of a call that its outcome need not repeat. */
export type CalledWords = {
  readonly kind: StepKind;
  readonly tool: string;
  /** Its command or its pattern. */
  readonly about: string;
  readonly isListing: boolean;
};

/** Words in the names of tools that change something which is no file, and those of tools that only look. */
const doing = new Set(
  'create update delete remove send post publish deploy release merge close reopen comment reply submit cancel modify exchange return refund book buy order pay transfer assign invite upload push commit approve reject schedule'.split(
    ' ',
  ),
);
const looking = new Set(
  'get list search find read fetch view show query check lookup count describe'.split(' '),
);

/** Matches commands that change a repository, a service, a registry or a machine, or which files there are. */
const outward = [
  String.raw`gh (?:pr|issue|release|repo|workflow|run|label|gist) (?:create|comment|edit|close|reopen|merge|ready|review|delete|upload|rerun|run|cancel)`,
  String.raw`gh api .*-(?:X|-method)[ =]?(?:POST|PUT|PATCH|DELETE)`,
  String.raw`(?:npm|yarn|pnpm|cargo|poetry|twine|gem) (?:publish|upload|push)`,
  String.raw`docker(?: compose)? (?:push|up|down)|kubectl (?:apply|delete|create|scale|rollout|patch)|helm (?:install|upgrade|uninstall)|terraform (?:apply|destroy)`,
  String.raw`(?:vercel|netlify|fly|flyctl|firebase|wrangler|serverless) (?:\S+ )?deploy`,
  String.raw`curl .*(?:-X ?|--request[ =])(?:POST|PUT|PATCH|DELETE)|scp|rsync|(?:git )?(?:mv|rm)|rmdir|cp`,
].join('|');
const effective = new RegExp(String.raw`(?:^|&& |; |\| )(?:sudo )?(?:${outward})(?: |$)`);

/** Matches a command that works in a folder for trials. */
export const trial = /(?:^|[\s;&='"(>])(?:\/private)?\/tmp\b|\bmktemp\b/;

/** True for a call that changes more than the content of files: it commits, sends, publishes, moves or deletes. */
export function hasEffect({ kind, tool, about }: Pick<CalledWords, 'kind' | 'tool' | 'about'>): boolean {
  if (kind === 'command') return gitChange.test(about) || (effective.test(about) && !trial.test(about));
  if (kind !== 'other') return false;
  const words = wordsOf(tool.replace(/^mcp__[^_]+(?:_[^_]+)*__/, ''));
  return words.some((word) => doing.has(word)) && !words.some((word) => looking.has(word));
}

type ToldStep = Pick<CalledWords, 'kind' | 'tool' | 'about'> & {
  readonly outcome: string;
  readonly hasFailed: boolean;
  readonly user: object | undefined;
};

/** Matches commands that move, copy or delete files, and those that change only the work tree. */
const inFiles =
  /(?:^|&& |; |\| )(?:sudo )?(?:git )?(?:mv|rm|rmdir|cp|stash|checkout|switch|restore|reset|clean|pull)(?: |$)/;

/** True for a call that worked and changed something that is no file here. A repository that it began itself is one to try something in. */
export function changesOutside(step: ToldStep): boolean {
  if (step.hasFailed || step.user || !hasEffect(step)) return false;
  if (step.kind !== 'command') return true;
  if (step.outcome.includes('new repository')) return false;
  const commands = step.about.split(/&& |; |\| /);
  return commands.some((about) => hasEffect({ ...step, about }) && !inFiles.test(about));
}

/** Leaves out the texts that commands are given, as in `cat <<EOF`: their lines are no commands. Each line of the script is read once. */
export function withoutGivenTexts(script: string): string {
  if (!script.includes('<<')) return script;
  /** The ends of the lines of one word, by the word, the first ones last. */
  const ends = new Map<string, number[]>();
  for (const { 1: word = '', index } of script.matchAll(/(?<=\n)(\w+)(?=\n|$)/g)) {
    const known = ends.get(word);
    if (known) known.push(index + word.length);
    else ends.set(word, [index + word.length]);
  }
  for (const found of ends.values()) found.reverse();
  let rest = '';
  let at = 0;
  for (const { 0: begin, 1: word = '', index } of script.matchAll(/<<-?\s*["']?(\w+)["']?/g)) {
    if (index < at) continue;
    const found = ends.get(word) ?? [];
    while (found.length > 0 && found.at(-1)! <= index + begin.length) found.pop();
    const end = found.at(-1);
    if (end === undefined) continue;
    rest += script.slice(at, index);
    at = end;
  }
  return rest + script.slice(at);
}
