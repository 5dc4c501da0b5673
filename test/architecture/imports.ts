/** Lists the modules that a file imports or re-exports, types included. Uses a real parser. */
import { dirname, join } from 'node:path/posix';
import { type EcmaScriptModule, parseSync } from 'oxc-parser';
import type { SourceFile } from './source-file.ts';

/** `file` is the target of a relative import as a path in the repository; undefined for packages. */
export type Import = { readonly specifier: string; readonly file: string | undefined };

export function importsOf(source: SourceFile): readonly Import[] {
  const { module } = parseSync(source.path, source.text);
  const specifiers = new Set([
    ...staticSpecifiers(module),
    ...dynamicSpecifiers(module, source.text),
    ...typeImports(source.text),
  ]);
  return [...specifiers].map((specifier) => ({
    specifier,
    file: specifier.startsWith('.') ? inRepository(source, specifier) : undefined,
  }));
}

/** Returns the files that a file imports or re-exports when it is loaded, as paths in the repository. */
export function staticImportsOf(source: SourceFile): readonly string[] {
  return staticSpecifiers(parseSync(source.path, source.text).module)
    .filter((specifier) => specifier.startsWith('.'))
    .map((specifier) => inRepository(source, specifier));
}

/** Returns the files that a file loads with `import()`, as paths in the repository. */
export function lateImportsOf(source: SourceFile): readonly string[] {
  return dynamicSpecifiers(parseSync(source.path, source.text).module, source.text)
    .filter((specifier) => specifier.startsWith('.'))
    .map((specifier) => inRepository(source, specifier));
}

/** Returns the files that an entry loads, directly or indirectly, in the order of `files`. */
export function reachableFrom(
  entries: readonly string[],
  files: readonly SourceFile[],
): readonly SourceFile[] {
  const byPath = new Map(files.map((source) => [source.path, source]));
  const reached = new Set<string>();
  const visit = (path: string): void => {
    const source = byPath.get(path);
    if (source === undefined || reached.has(path)) return;
    reached.add(path);
    for (const { file } of importsOf(source)) if (file !== undefined) visit(file);
  };
  for (const entry of entries) visit(entry);
  return files.filter(({ path }) => reached.has(path));
}

/** Finds `import('./x.ts').Name` in types, which the parser does not list as an import. */
function typeImports(text: string): readonly string[] {
  return [...text.matchAll(/\bimport\(\s*'([^']+)'\s*\)/g)].flatMap((match) => match[1] ?? []);
}

function inRepository(source: SourceFile, specifier: string): string {
  return join(dirname(source.path), specifier);
}

/** Each specifier once. */
function staticSpecifiers(module: EcmaScriptModule): readonly string[] {
  return [
    ...new Set([
      ...module.staticImports.map((statement) => statement.moduleRequest.value),
      ...module.staticExports.flatMap((statement) =>
        statement.entries.flatMap((entry) => entry.moduleRequest?.value ?? []),
      ),
    ]),
  ];
}

function dynamicSpecifiers(module: EcmaScriptModule, text: string): readonly string[] {
  return module.dynamicImports.map(({ moduleRequest: { start, end } }) => text.slice(start + 1, end - 1));
}
