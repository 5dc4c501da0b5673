/**
 * Follows the files that calls touched: which were read and edited, and which were moved or removed by commands and patches. Pure; linear in its input, but
 * for moves.
 */
import { parseRecord } from '../../conversation/json-scan.ts';
import { isSamePath } from '../files-shown.ts';
import { commandIn } from '../outcome.ts';
import { type OutlineLine, type SurveyedCall, timesOf } from '../rank.ts';
import { trial, withoutGivenTexts } from './effects.ts';

/** A file that calls touched: how often it was read or edited, whether the last edit failed, and whether it is gone or has come from another place. */
export type TouchedFile = {
  readonly path: string;
  readonly fate?: 'moved' | 'removed';
  readonly edits: number;
  readonly reads: number;
  readonly hasFailed: boolean;
  readonly at: number;
};

/** Maximum files that one command is said to write. */
const maxWritten = 20;

/** Returns the files that calls touched; edited ones first, newest first. `earlier` are those of earlier summaries. */
export function filesIn(
  calls: readonly (SurveyedCall & { readonly input: string })[],
  earlier: readonly TouchedFile[] = [],
): readonly TouchedFile[] {
  const files = new Map<string, TouchedFile>();
  for (const file of earlier) {
    const known = files.get(file.path);
    files.set(file.path, known ? { ...file, edits: file.edits + known.edits } : file);
  }
  for (const { at, words, input } of calls) {
    const { path: named, kind, hasFailed, user, writes } = words;
    // An edit that the user refused changed nothing, and a read that failed showed nothing.
    if (user?.isRefusal || (kind !== 'edit' && hasFailed)) continue;
    const isEdit = kind === 'edit' || writes.length > 0;
    const moves = kind === 'edit' || kind === 'read' ? [] : movesIn(input);
    const targets = new Set(moves.map(({ to }) => to));
    const written = writes.filter((path) => !targets.has(path)).slice(0, maxWritten);
    const paths = kind === 'edit' || kind === 'read' ? [named] : written;
    for (const one of paths) {
      // A shell names files relative to its folder.
      const path =
        kind === 'edit' || kind === 'read'
          ? one
          : ([...files.keys()].find((known) => isSamePath(known, one)) ??
            (kind === 'command' && !one.includes('/') ? '' : one));
      if (path === '') continue;
      const { edits = 0, reads = 0, hasFailed: hadFailed = false } = files.get(path) ?? {};
      files.set(path, {
        path,
        edits: edits + (isEdit && !hasFailed ? 1 : 0),
        reads: reads + (isEdit ? 0 : 1),
        hasFailed: isEdit ? hasFailed : hadFailed,
        at,
      });
    }
    for (const move of moves) followMove(files, move, at);
  }
  const isEdit = ({ edits, hasFailed, fate }: TouchedFile): number =>
    edits > 0 || hasFailed || fate ? 1 : 0;
  return [...files.values()].toSorted((a, b) => isEdit(b) - isEdit(a) || b.at - a.at);
}

const groups = {
  edited: 'edited',
  failedLast: 'edited, the last edit failed',
  failed: 'not edited by then, the edit failed',
  read: 'read',
  moved: 'moved to',
  removed: 'removed',
} as const;

/** Writes a file with how often it was edited, or else read. */
export function fileLine({ path, fate, edits, reads, hasFailed, at }: TouchedFile): OutlineLine {
  if (fate === 'removed' || (fate && edits === 0))
    return { section: 'files', text: path, at, group: groups[fate] };
  const group =
    edits > 0 ? (hasFailed ? groups.failedLast : groups.edited) : hasFailed ? groups.failed : groups.read;
  return { section: 'files', text: `${path}${timesOf(edits || reads)}`, at, group };
}

/** Reads a file in an item of an earlier summary. */
export function readFileLine(group: string, text: string, at: number): TouchedFile {
  const [path = '', times = '1'] = text.split(/ ×(?=\d{1,9}$)/);
  const count = Number(times);
  const hasFailed = group === groups.failed || group === groups.failedLast;
  const isEdited = group === groups.edited || group === groups.failedLast;
  if (group === groups.moved || group === groups.removed) {
    const fate = group === groups.moved ? 'moved' : 'removed';
    return { path, fate, edits: 0, reads: 0, hasFailed: false, at };
  }
  return { path, edits: isEdited ? count : 0, reads: isEdited ? 0 : count, hasFailed, at };
}

// Moves and removals

/** A file or a folder that was moved; `to` is empty if it was removed. */
type Move = { readonly from: string; readonly to: string };

/** UTF-16 units of a call that are searched for moves, and moves of one call that are followed. */
const maxScript = 20_000;
const maxMoves = 20;

/** Returns what a command or a patch moves or removes, as far as it names it. */
function movesIn(input: string): readonly Move[] {
  if (input.length > maxScript || !/\b(?:mv|rm)\b|\*\*\* (?:Delete|Move)/.test(input)) return [];
  const sent = parseRecord(input) ?? {};
  const command = commandIn(sent);
  // Files in a folder for trials are none of the work.
  if (trial.test(command ?? '')) return [];
  const texts = command === undefined ? Object.values(sent) : [command];
  const patched = texts.flatMap((text) => (typeof text === 'string' ? movesInPatch(text) : []));
  return [
    ...patched,
    ...withoutGivenTexts(command ?? '')
      .split(/&&|\|\|?|;|\n/)
      .flatMap(movesOf),
  ].slice(0, maxMoves);
}

function movesInPatch(patch: string): readonly Move[] {
  const moves: Move[] = [];
  let file = '';
  for (const [, verb, path = ''] of patch.matchAll(
    /^\*\*\* (Update File|Delete File|Move to): ([^\n]+)$/gm,
  )) {
    if (verb === 'Update File') file = path.trim();
    else if (verb === 'Delete File') moves.push({ from: path.trim(), to: '' });
    else moves.push({ from: file, to: path.trim() });
  }
  return moves;
}

/** Returns what one command moves or removes; nothing for names with signs that a shell replaces. */
function movesOf(command: string): readonly Move[] {
  const words = (command.trim().match(/"[^"]*"|'[^']*'|[^\s"']+/g) ?? []).map((word) =>
    word.replaceAll(/^["']|["']$/g, ''),
  );
  const start = words.findIndex((word) => word !== 'sudo' && word !== 'git');
  const program = words[start];
  const options = words.filter((word) => word.startsWith('-'));
  const paths = words.slice(start + 1).filter((word) => !word.startsWith('-') && !/^\d?>|^<|^&/.test(word));
  if (options.includes('--cached') || paths.some((path) => /[*?$`{[\]]/.test(path))) return [];
  if (program === 'rm') return paths.map((from) => ({ from, to: '' }));
  const target = paths.at(-1) ?? '';
  if (program !== 'mv' || paths.length < 2) return [];
  const isFolder = target.endsWith('/') || paths.length > 2 || !/\.\w+$/.test(target);
  return paths.slice(0, -1).map((from) => ({
    from,
    to:
      isFolder && /\.\w+$/.test(from)
        ? `${target.replace(/\/$/, '')}/${from.slice(from.lastIndexOf('/') + 1)}`
        : target,
  }));
}

/** Moves or removes a file in a list of files, or all files of a folder. A name that several files have is none of them. */
function followMove(files: Map<string, TouchedFile>, { from, to }: Move, at: number): void {
  const bare = from.replace(/^(?:\.\/)+|\/$/g, '');
  const known = [...files.keys()].filter((path) => path === bare || path.endsWith(`/${bare}`));
  const inside = [...files.keys()].filter(
    (path) => path.startsWith(`${bare}/`) || path.includes(`/${bare}/`),
  );
  const found = known.length === 1 ? known : known.length > 1 ? [] : inside;
  for (const path of found) {
    const file = files.get(path)!;
    files.delete(path);
    const start = path === bare || path.startsWith(`${bare}/`) ? 0 : path.lastIndexOf(`/${bare}`) + 1;
    const target = to.startsWith('/') ? to : path.slice(0, start) + to;
    const moved = to === '' ? path : target.replace(/\/$/, '') + path.slice(start + bare.length);
    files.set(moved, { ...file, path: moved, at, fate: to === '' ? 'removed' : 'moved' });
  }
  // A file that no call has named before is told by the name in the command.
  if (known.length === 0 && inside.length === 0 && /\w\.\w+$/.test(bare))
    files.set(to || bare, {
      path: to || bare,
      fate: to === '' ? 'removed' : 'moved',
      edits: 0,
      reads: 0,
      hasFailed: false,
      at,
    });
}
