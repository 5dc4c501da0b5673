/**
 * Import rules: a module imports only lower layers, and modules of one layer do not import each other.
 * There are no import cycles, and only some modules import Node's platform modules.
 */
import { builtinModules } from 'node:module';
import { importsOf } from './imports.ts';
import type { SourceFile } from './source-file.ts';

/** The layers, highest first. A module is a folder of src, or a file `NAME.ts` or `NAME-*.ts` directly in src. */
const layers: readonly (readonly string[])[] = [
  ['cli'],
  ['adapters'],
  ['gateway', 'replay', 'index'],
  ['library', 'trajectory', 'page', 'experiment'],
  ['engine'],
  ['strategies', 'recall'],
  ['receipts'],
  ['triggers', 'codecs', 'outline', 'store', 'tokens', 'arrival'],
  ['checks'],
  ['conversation', 'errors'],
  ['caches', 'es2024'],
];

/** Modules with one folder per wire format; these folders must not import each other. */
const split = ['codecs'];

/** Modules that may import Node's platform modules. The others run on any platform. */
const nodeModules = ['cli', 'gateway', 'store'];

export function layerProblems(files: readonly SourceFile[]): readonly string[] {
  return files.flatMap((source) => {
    const module = moduleOf(source.path);
    if (module === undefined)
      return [`${source.path} is in no module: name its module in test/architecture/layers.ts`];
    return importsOf(source).flatMap(({ file }) => {
      if (file === undefined) return [];
      const violation = violationOf(source.path, file);
      return violation === undefined ? [] : [`${source.path} imports ${file}: ${violation}`];
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
    if (nodeModules.includes(moduleOf(source.path) ?? '')) return [];
    return importsOf(source)
      .filter(({ specifier }) => isPlatform(specifier))
      .map(({ specifier }) => `${source.path} imports ${specifier}: only ${nodeModules.join(', ')} may`);
  });
}

function isPlatform(specifier: string): boolean {
  return specifier.startsWith('node:') || builtinModules.includes(specifier);
}

function violationOf(from: string, to: string): string | undefined {
  const module = moduleOf(from);
  const target = moduleOf(to);
  if (module === undefined || target === undefined) return 'that is in no module of src';
  if (target === module)
    return partOf(from, module) === partOf(to, module) ? undefined : partViolation(from, to, module);
  const distance = layerOf(target) - layerOf(module);
  if (distance > 0) return undefined;
  return distance === 0 ? `${module} and ${target} are modules of one layer` : `${target} is above ${module}`;
}

/** In a split module, a part may import shared code. Shared code must not import a part, and parts must not import each other. */
function partViolation(from: string, to: string, module: string): string | undefined {
  if (partOf(to, module) === undefined) return undefined;
  const what = partOf(from, module) ?? 'shared code';
  return `${what} and ${partOf(to, module)} of ${module} must not import each other`;
}

function partOf(path: string, module: string): string | undefined {
  return split.includes(module) ? /^src\/[^/]+\/([^/]+)\//.exec(path)?.[1] : undefined;
}

function moduleOf(path: string): string | undefined {
  const name = /^src\/([^/]+?)(?:\.ts)?(?:\/|$)/.exec(path)?.[1];
  if (name === undefined) return undefined;
  return layers
    .flat()
    .find((module) => name === module || (path.endsWith(`${name}.ts`) && name.startsWith(`${module}-`)));
}

function layerOf(module: string): number {
  return layers.findIndex((modules) => modules.includes(module));
}
