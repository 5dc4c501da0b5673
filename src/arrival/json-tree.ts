/**
 * Reads JSON as text: every number, string and key keeps its spelling, and members keep their order, also those with the same name. As strict
 * as `JSON.parse`, with a limit on depth. Pure.
 */

/** A JSON value. A scalar is its text. */
export type JsonNode = string | JsonArray | JsonObject;
export type JsonArray = { readonly items: readonly JsonNode[] };
/** Keys are JSON strings with quotes; `values` have the same indices. */
export type JsonObject = { readonly keys: readonly string[]; readonly values: readonly JsonNode[] };

/** A value, and the offset of its end (exclusive), or of the first error. */
export type JsonRead = { readonly node: JsonNode | undefined; readonly end: number };

const maxDepth = 50;

export function isObject(node: JsonNode): node is JsonObject {
  return typeof node !== 'string' && 'keys' in node;
}

/** Reads the value that begins at `start`; returns no node if there is none, or if it is nested too deeply. */
export function readJson(text: string, start: number): JsonRead {
  const reader = createReader(text, start);
  return { node: reader.value(0), end: reader.at() };
}

/** Writes a value without white space. */
export function compact(node: JsonNode): string {
  if (typeof node === 'string') return node;
  const pieces: string[] = [];
  const write = (value: JsonNode): void => {
    if (typeof value === 'string') {
      pieces.push(value);
    } else if (isObject(value)) {
      for (const [at, key] of value.keys.entries()) {
        pieces.push(at === 0 ? '{' : ',', key, ':');
        write(value.values[at]!);
      }
      pieces.push(value.keys.length === 0 ? '{}' : '}');
    } else {
      for (const [at, item] of value.items.entries()) {
        pieces.push(at === 0 ? '[' : ',');
        write(item);
      }
      pieces.push(value.items.length === 0 ? '[]' : ']');
    }
  };
  write(node);
  return pieces.join('');
}

function createReader(text: string, start: number) {
  let at = start;

  const skip = (): void => {
    while (isSpace(text.charCodeAt(at))) at++;
  };
  /** Reads the next sign if it is this one; returns whether it was. */
  const next = (sign: string): boolean => {
    skip();
    if (text[at] !== sign) return false;
    at++;
    return true;
  };
  const match = (pattern: RegExp): boolean => {
    pattern.lastIndex = at;
    if (!pattern.test(text)) return false;
    at = pattern.lastIndex;
    return true;
  };

  const value = (depth: number): JsonNode | undefined => {
    skip();
    const first = text[at];
    if (first === '"') return string();
    const from = at;
    if (first !== '{' && first !== '[') return match(word) ? text.slice(from, at) : undefined;
    if (depth > maxDepth) return undefined;
    at++;
    return first === '{' ? object(depth) : array(depth);
  };
  const object = (depth: number): JsonObject | undefined => {
    const keys: string[] = [];
    const values: JsonNode[] = [];
    if (next('}')) return { keys, values };
    do {
      skip();
      const key = text[at] === '"' ? string() : undefined;
      if (key === undefined || !next(':')) return undefined;
      const member = value(depth + 1);
      if (member === undefined) return undefined;
      keys.push(key);
      values.push(member);
    } while (next(','));
    return next('}') ? { keys, values } : undefined;
  };
  const array = (depth: number): JsonArray | undefined => {
    const items: JsonNode[] = [];
    if (next(']')) return { items };
    do {
      const item = value(depth + 1);
      if (item === undefined) return undefined;
      items.push(item);
    } while (next(','));
    return next(']') ? { items } : undefined;
  };
  /** Reads a string. Unnecessary escapes are decoded: `\u2019` has five tokens, the sign itself one. */
  const string = (): string | undefined => {
    const from = at++;
    let isEscaped = false;
    while (match(plain) && text[at] !== '"') {
      isEscaped ||= text[at + 1] === 'u';
      if (!match(escape)) return undefined;
    }
    const literal = text.slice(from, ++at);
    return isEscaped ? literal.replace(writtenOut, writeOut) : literal;
  };

  return { value, at: () => at };
}

// oxlint-disable-next-line no-control-regex
const plain = /[^"\\\u0000-\u001f]*/y;
const escape = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;
const word = /(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?![\w.])/y;

/** Matches escapes to decode. Escaped backslashes match too, so that the text after them is not taken for an escape. */
const writtenOut = /\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}/g;

function writeOut(escaped: string): string {
  if (escaped === '\\\\') return escaped;
  const sign = JSON.parse(`"${escaped}"`) as string;
  return /^[\p{L}\p{N}\p{P}\p{S}]$/u.test(sign) && !/["\\]/.test(sign) ? sign : escaped;
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
}
