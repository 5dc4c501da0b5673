/**
 * Reads the paths a model writes: names, indices, slices and wildcards. Filters, scripts and `..` are not understood: they
 * would need an evaluator, and a query finds values by name as well. Pure; nothing in a path is ever evaluated.
 */

export type PathStep =
  | { readonly type: 'name'; readonly name: string }
  /** Negative: from the end. */
  | { readonly type: 'index'; readonly index: number }
  | { readonly type: 'slice'; readonly from: number; readonly to: number | undefined }
  | { readonly type: 'every' };

type ParsedPath =
  | { readonly status: 'ok'; readonly steps: readonly PathStep[] }
  | { readonly status: 'bad'; readonly reason: string };

// Each step may scan what is left of the value, so the number of steps is what keeps a hostile path from being quadratic.
const mostSteps = 64;
const mostCharacters = 1_000;

const quoted = /\s*\[\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")\s*\]/y;
const bracketed = /\s*\[\s*([^\]'"]*?)\s*\]/y;
const dotted = /\.?([^.[\]]+)/y;

/** Takes `$.a.b[0].c`, `a.b[-1]`, `['x y']`, `[*]`, `.*`, `[2:5]`; also `a.0` for an index and `[a]` for a name. */
export function parsePath(path: string): ParsedPath {
  const text = path.trim();
  if (text.length > mostCharacters) return { status: 'bad', reason: 'the path is too long' };
  const steps: PathStep[] = [];
  let at = /^\$(?=[.[]|$)/.test(text) ? 1 : 0;
  while (at < text.length) {
    const found = stepAt(text, at);
    if ('reason' in found) return { status: 'bad', reason: found.reason };
    steps.push(found.step);
    at = found.end;
    if (steps.length > mostSteps) return { status: 'bad', reason: 'the path has too many steps' };
  }
  return { status: 'ok', steps };
}

/** The path in its full spelling, for messages. */
export function spellPath(steps: readonly PathStep[]): string {
  return `$${steps.map(spellStep).join('')}`;
}

/** True for paths that may name more than one value. */
export function isMany(steps: readonly PathStep[]): boolean {
  return steps.some((step) => step.type === 'every' || step.type === 'slice');
}

type Found = { readonly step: PathStep; readonly end: number } | { readonly reason: string };

function stepAt(text: string, at: number): Found {
  if (text.startsWith('..', at)) return { reason: '".." is not supported' };
  const key = match(quoted, text, at);
  if (key !== null) {
    return { step: { type: 'name', name: unquote(key[1] ?? key[2] ?? '') }, end: quoted.lastIndex };
  }
  const inside = match(bracketed, text, at)?.[1];
  if (inside !== undefined) return stepInBrackets(inside, bracketed.lastIndex);
  const name = match(dotted, text, at)?.[1]?.trim();
  if (name === undefined || name === '')
    return { reason: `cannot be read at ${JSON.stringify(text.slice(at, at + 20))}` };
  return { step: name === '*' ? { type: 'every' } : { type: 'name', name }, end: dotted.lastIndex };
}

function stepInBrackets(inside: string, end: number): Found {
  if (inside === '*') return { step: { type: 'every' }, end };
  if (/^-?\d{1,15}$/.test(inside)) return { step: { type: 'index', index: Number(inside) }, end };
  const slice = /^(-?\d{1,15})?\s*:\s*(-?\d{1,15})?$/.exec(inside);
  if (slice !== null) {
    const to = slice[2] === undefined ? undefined : Number(slice[2]);
    return { step: { type: 'slice', from: Number(slice[1] ?? 0), to }, end };
  }
  if (/^[\w$-]+$/.test(inside)) return { step: { type: 'name', name: inside }, end };
  return { reason: `"[${inside.slice(0, 20)}]" is not supported` };
}

function spellStep(step: PathStep): string {
  switch (step.type) {
    case 'name':
      return /^[A-Za-z_]\w*$/.test(step.name) ? `.${step.name}` : `[${JSON.stringify(step.name)}]`;
    case 'index':
      return `[${step.index}]`;
    case 'slice':
      return `[${step.from}:${step.to ?? ''}]`;
    case 'every':
      return '[*]';
  }
}

function match(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

/** Escapes in a quoted name are those of JSON, and `\'` between single quotes. */
function unquote(inner: string): string {
  if (!inner.includes('\\')) return inner;
  const literal = inner.replaceAll(/\\.|"/g, (sign) =>
    sign === '"' ? String.raw`\"` : sign === "\\'" ? "'" : sign,
  );
  try {
    return JSON.parse(`"${literal}"`) as string;
  } catch {
    return inner;
  }
}
