/** Lists a module's exports, and whether each declaration has a docstring. Uses a real parser. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path/posix';
import { type EcmaScriptModule, parseSync } from 'oxc-parser';

export type Exported = {
  readonly name: string;
  readonly kind: 'value' | 'type';
  readonly documented: boolean;
};

type Statement = { readonly start: number; readonly end: number };
type Parsed = {
  readonly text: string;
  readonly module: EcmaScriptModule;
  readonly comments: readonly Statement[];
};

/** Returns a module's exports in source order; throws for exports without a name (`export *`, a default export). */
export function exportsOf(path: string): readonly Exported[] {
  const { module } = parse(path);
  return module.staticExports.flatMap((statement) =>
    statement.entries.map((entry) => {
      const name = entry.exportName.name;
      if (name === null) throw new Error(`${path} has an export without a name: list the exported names`);
      const kind = entry.isType ? 'type' : 'value';
      return { name, kind, documented: isDocumented(path, name) };
    }),
  );
}

function isDocumented(path: string, name: string): boolean {
  const parsed = parse(path);
  for (const statement of parsed.module.staticExports) {
    const entry = statement.entries.find((candidate) => candidate.exportName.name === name);
    if (entry === undefined) continue;
    const request = entry.moduleRequest?.value;
    if (request === undefined) return followsDocstring(parsed, statement);
    return isDocumented(join(dirname(path), request), entry.importName.name ?? name);
  }
  return false;
}

function followsDocstring({ text, comments }: Parsed, statement: Statement): boolean {
  const before = comments.findLast((comment) => comment.end <= statement.start);
  return (
    before !== undefined &&
    text.startsWith('/**', before.start) &&
    text.slice(before.end, statement.start).trim() === ''
  );
}

const parsed = new Map<string, Parsed>();

function parse(path: string): Parsed {
  const known = parsed.get(path);
  if (known !== undefined) return known;
  if (!existsSync(path)) throw new Error(`${path} does not exist`);
  const text = readFileSync(path, 'utf8');
  const { module, comments } = parseSync(path, text);
  const result = { text, module, comments };
  parsed.set(path, result);
  return result;
}
