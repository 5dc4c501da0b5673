/**
 * The floors of the house: an import only goes down, and rooms of one floor do not import each other.
 * Below the floors' rules stand two of the same kind: no import cycles, and platform modules only in some rooms.
 */
import { builtinModules } from 'node:module';
import { importsOf } from './imports.ts';
import type { SourceFile } from './source-file.ts';

/** From the top floor down. A room is a folder of src, or a file `room.ts` or `room-*.ts` beside the folders. */
const floors: readonly (readonly string[])[] = [
  ['cli'],
  ['gateway', 'adapters', 'replay', 'index'],
  ['library', 'trajectory'],
  ['engine'],
  ['strategies', 'recall'],
  ['triggers', 'codecs', 'outline', 'store', 'tokens', 'arrival', 'receipts'],
  ['conversation', 'errors'],
];

/** Rooms beside the floors: they import nothing of src, and nobody imports them. */
const apart = ['dashboard'];

/** Rooms whose folders stand for one thing each (a wire format, a framework) and do not know each other. */
const parted = ['codecs', 'adapters'];

/** Rooms that may use what only Node has. The others run anywhere. */
const onNode = ['cli', 'gateway', 'store'];

export function floorProblems(files: readonly SourceFile[]): readonly string[] {
  return files.flatMap((source) => {
    const room = roomOf(source.path);
    if (room === undefined)
      return [`${source.path} is in no room: name its room in test/architecture/floors.ts`];
    return importsOf(source).flatMap(({ file }) => {
      if (file === undefined) return [];
      const fault = faultOf(source.path, file);
      return fault === undefined ? [] : [`${source.path} imports ${file}: ${fault}`];
    });
  });
}

export function cycleProblems(files: readonly SourceFile[]): readonly string[] {
  const graph = new Map(
    files.map((source) => [source.path, importsOf(source).flatMap(({ file }) => file ?? [])] as const),
  );
  const done = new Set<string>();
  const problems: string[] = [];
  const visit = (path: string, trail: readonly string[]): void => {
    const start = trail.indexOf(path);
    if (start >= 0) problems.push(`import cycle: ${[...trail.slice(start), path].join(' > ')}`);
    if (start >= 0 || done.has(path)) return;
    for (const next of graph.get(path) ?? []) visit(next, [...trail, path]);
    done.add(path);
  };
  for (const path of graph.keys()) visit(path, []);
  return problems;
}

export function platformProblems(files: readonly SourceFile[]): readonly string[] {
  return files.flatMap((source) => {
    if (onNode.includes(roomOf(source.path) ?? '')) return [];
    return importsOf(source)
      .filter(({ specifier }) => isPlatform(specifier))
      .map(({ specifier }) => `${source.path} imports ${specifier}: only ${onNode.join(', ')} may`);
  });
}

function isPlatform(specifier: string): boolean {
  return specifier.startsWith('node:') || builtinModules.includes(specifier);
}

function faultOf(from: string, to: string): string | undefined {
  const room = roomOf(from);
  const target = roomOf(to);
  if (room === undefined || target === undefined) return 'that is in no room of src';
  if (target === room) return partOf(from, room) === partOf(to, room) ? undefined : partFault(from, to, room);
  if (apart.includes(target)) return `nobody imports ${target}`;
  if (apart.includes(room)) return `${room} imports nothing of src`;
  const distance = floorOf(target) - floorOf(room);
  if (distance > 0) return undefined;
  return distance === 0 ? `${room} and ${target} are rooms of one floor` : `${target} is above ${room}`;
}

/** Inside a parted room, a part may use what lies beside the parts, not the other way round and not another part. */
function partFault(from: string, to: string, room: string): string | undefined {
  if (partOf(to, room) === undefined) return undefined;
  const what = partOf(from, room) ?? 'what all of them share';
  return `${what} and ${partOf(to, room)} of ${room} do not know each other`;
}

function partOf(path: string, room: string): string | undefined {
  return parted.includes(room) ? /^src\/[^/]+\/([^/]+)\//.exec(path)?.[1] : undefined;
}

function roomOf(path: string): string | undefined {
  const name = /^src\/([^/]+?)(?:\.ts)?(?:\/|$)/.exec(path)?.[1];
  if (name === undefined) return undefined;
  const rooms = [...floors.flat(), ...apart];
  return rooms.find((room) => name === room || (path.endsWith(`${name}.ts`) && name.startsWith(`${room}-`)));
}

function floorOf(room: string): number {
  return floors.findIndex((rooms) => rooms.includes(room));
}
