/** Chooses the tools of a recorded body that a fixture needs: the called ones, and one of each shape. Pure. */
import type { Span } from '../../src/conversation/conversation.ts';
import {
  type Member,
  type Splice,
  listSplices,
  scanArray,
  scanObject,
} from '../../src/conversation/json-scan.ts';

const maxTools = 5;
const toolLists: ReadonlySet<string> = new Set(['tools', 'functionDeclarations']);

/** Returns splices that remove the other tools from every list of tools, also in namespaces. */
export function toolsToDrop(body: Uint8Array): readonly Splice[] {
  const called = namesOutside(body, { start: 0, end: body.length });
  return dropsIn(body, { start: 0, end: body.length }, undefined, called);
}

function dropsIn(
  body: Uint8Array,
  span: Span,
  key: string | undefined,
  called: ReadonlySet<string>,
): readonly Splice[] {
  const inside = (spans: readonly (readonly [Span, string | undefined])[]) =>
    spans.flatMap(([value, name]) => dropsIn(body, value, name, called));
  const members = membersOf(body, span);
  if (members) return inside(members.map((member) => [member.value, member.key]));
  const elements = elementsOf(body, span);
  if (key === undefined || !toolLists.has(key) || !elements.every((one) => membersOf(body, one)))
    return inside(elements.map((one) => [one, undefined]));
  const kept = keptOf(
    elements.map((one) => shapeOf(body, one)),
    called,
  );
  return [
    ...listSplices(elements, span.end - 1, (index) => !kept.has(index)),
    ...inside(elements.flatMap((one, index) => (kept.has(index) ? [[one, undefined] as const] : []))),
  ];
}

type Shape = { readonly names: readonly string[]; readonly keys: string; readonly words: readonly string[] };

/** Keeps the first, the last, the called and one of each set of keys; then tools with a schema keyword that the others lack. */
function keptOf(shapes: readonly Shape[], called: ReadonlySet<string>): ReadonlySet<number> {
  const kept = new Set<number>();
  const keys = new Set<string>();
  for (const [index, shape] of shapes.entries()) {
    const isEnd = index === 0 || index === shapes.length - 1;
    if (isEnd || !keys.has(shape.keys) || shape.names.some((name) => called.has(name))) kept.add(index);
    keys.add(shape.keys);
  }
  const words = new Set([...kept].flatMap((index) => shapes[index]!.words));
  for (const [index, shape] of shapes.entries()) {
    if (kept.size >= maxTools || shape.words.every((word) => words.has(word))) continue;
    kept.add(index);
    for (const word of shape.words) words.add(word);
  }
  return kept;
}

function shapeOf(body: Uint8Array, tool: Span): Shape {
  const value = parsed(body, tool);
  const inner = isRecord(value['function']) ? value['function'] : value;
  return {
    names: namesIn(value),
    keys: JSON.stringify([value['type'], Object.keys(value), Object.keys(inner)]),
    words: schemaWords(value),
  };
}

/** Returns a schema's keywords and types without the names of parameters. */
function schemaWords(value: unknown, key = ''): readonly string[] {
  if (Array.isArray(value)) return [`${key}[]`, ...value.flatMap((one) => schemaWords(one, key))];
  if (!isRecord(value)) return key === 'type' ? [`${key}=${String(value)}`] : [];
  const isNames = key === 'properties';
  return Object.entries(value).flatMap(([name, inner]) => [
    ...(isNames ? [] : [name]),
    ...schemaWords(inner, isNames ? '' : name),
  ]);
}

/** Returns the names outside the lists of tools: those of calls and their results. */
function namesOutside(body: Uint8Array, span: Span): ReadonlySet<string> {
  const names = new Set<string>();
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) value.forEach(visit);
    if (!isRecord(value)) return;
    for (const [key, inner] of Object.entries(value)) {
      if (key === 'name' && typeof inner === 'string') names.add(inner);
      if (!toolLists.has(key)) visit(inner);
    }
  };
  visit(parsed(body, span));
  return names;
}

/** Returns a tool's names; a namespace has its own name and those of its tools. */
function namesIn(tool: Readonly<Record<string, unknown>>): readonly string[] {
  const inner = [tool['function'], ...Object.values(tool).filter(Array.isArray).flat()].filter(isRecord);
  return [tool, ...inner].flatMap(({ name }) => (typeof name === 'string' ? [name] : []));
}

function membersOf(body: Uint8Array, span: Span): readonly Member[] | undefined {
  return body[span.start] === '{'.charCodeAt(0) ? scanObject(body, span.start).members : undefined;
}

function elementsOf(body: Uint8Array, span: Span): readonly Span[] {
  return body[span.start] === '['.charCodeAt(0) ? scanArray(body, span.start).elements : [];
}

function parsed(body: Uint8Array, span: Span): Record<string, unknown> {
  return JSON.parse(new TextDecoder().decode(body.subarray(span.start, span.end))) as Record<string, unknown>;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
