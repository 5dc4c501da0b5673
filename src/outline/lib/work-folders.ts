/**
 * Says which folders commands are run in. Most commands of a coding agent begin with `cd` to the project, which says nothing; one that is run elsewhere reads
 * like one of the project without its folder. Pure; linear in its input, but for the folders of each kind.
 */
import { ahead, isLongCommand, shellCall } from '../outcome.ts';

/** The words of a call that tell a folder. */
type PlacedCall = { readonly path: string; readonly folder: string };
type ToldCall = PlacedCall & { readonly about: string; readonly title: string };

/** Returns the folder that a command changes to ahead of all else; empty if it stays where it is. */
export function folderOf(command: string): string {
  const [begin = ''] = ahead.exec(command.replace(shellCall, '').trim().slice(0, maxBegin)) ?? [];
  let folder = '';
  for (const [, double, single, plain] of begin.matchAll(/\bcd (?:"([^"\n]*)"|'([^'\n]*)'|([^\s;&]+))/g)) {
    const next = (double ?? single ?? plain ?? '').replace(/^\.\/|(?<=[^/])\/+$/g, '');
    folder = /^[/~$]/.test(next) || folder === '' ? next : `${folder}/${next}`;
  }
  return folder === '.' ? '' : folder;
}

/** UTF-16 units of the beginning of a command that are read, and folders that are told of one path. */
const maxBegin = 2_000;
const maxDepth = 30;

/**
 * Returns what is true for a folder of the project: one that files of calls are in. If no call names a file by its whole path, it is the folder that most commands
 * are run in.
 */
export function projectFolders(calls: Iterable<PlacedCall>): (folder: string) => boolean {
  const holding = new Set<string>();
  const times = new Map<string, number>();
  for (const { path, folder } of calls) {
    if (folder !== '') times.set(folder, (times.get(folder) ?? 0) + 1);
    for (let end = path.lastIndexOf('/'), depth = 0; end > 0 && depth < maxDepth; depth++) {
      if (holding.has(path.slice(0, end))) break;
      holding.add(path.slice(0, end));
      end = path.lastIndexOf('/', end - 1);
    }
  }
  const isWhole = [...holding].some((folder) => folder.startsWith('/'));
  const [usual = ''] = [...times].toSorted(([, a], [, b]) => b - a)[0] ?? [];
  const known = new Map<string, boolean>([['', true]]);
  return (folder) => {
    const answer =
      known.get(folder) ??
      ((!isWhole && folder === usual) ||
        holding.has(folder) ||
        [...holding].some((one) => one.endsWith(`/${folder}`)));
    known.set(folder, answer);
    return answer;
  };
}

/** Tells the folder of a command that is run outside of the project. */
export function inFolder<Call extends ToldCall>(call: Call, spell: (folder: string) => string): Call {
  const { about, title, folder } = call;
  const whole = `cd ${spell(folder)} && ${about}`;
  // A long command is told by its title alone.
  return {
    ...call,
    about: whole,
    title: title !== '' && isLongCommand(whole) ? `${title}, in ${spell(folder)}` : title,
  };
}
