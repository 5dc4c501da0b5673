/** Describes a client's requests in figures, and the differences of two runs in words. Pure. */
import { isObject, objectsIn, parseJson } from '../../support/fake-provider/json.ts';
import type { JsonObject } from '../../support/fake-provider/script.ts';
import { offeredTools } from '../offered-tools.ts';
import type { Exchange } from '../tap.ts';

/** Figures of one run of a client that reads a file and answers. */
export type Figures = {
  /** Tools of the first request that offers any, without deferred ones. */
  readonly tools: number;
  /** Tools whose definitions the model gets only after a search finds them. */
  readonly deferred: number;
  /** UTF-8 bytes of that request's body. */
  readonly bytes: number;
  /** UTF-8 bytes of the tool definitions in that body. */
  readonly toolBytes: number;
  /** UTF-8 bytes of all model calls of the run, including side calls. */
  readonly allBytes: number;
  readonly calls: number;
};

/** Returns the first request that offers tools and wants an answer; Codex sends one before it that wants none. */
export function mainRequest(exchanges: readonly Exchange[]): Exchange | undefined {
  return exchanges.find(({ request }) => {
    const body = bodyOf(request);
    return body !== undefined && body['generate'] !== false && offeredTools(body).length > 1;
  });
}

export function figuresOf(exchanges: readonly Exchange[]): Figures | undefined {
  const main = mainRequest(exchanges);
  const body = bodyOf(main?.request ?? '');
  if (!main || !body) return undefined;
  const calls = exchanges.filter(({ request }) => isModelCall(bodyOf(request)));
  const definitions = [
    ...objectsIn(body['tools']),
    ...objectsIn(body['input']).filter(({ type }) => type === 'additional_tools'),
  ];
  const deferred = objectsIn(body['tools']).filter((tool) => tool['defer_loading'] === true).length;
  return {
    tools: offeredTools(body).length - deferred,
    deferred,
    bytes: Buffer.byteLength(main.request),
    toolBytes: definitions.reduce((sum, tool) => sum + Buffer.byteLength(JSON.stringify(tool)), 0),
    allBytes: calls.reduce((sum, { request }) => sum + Buffer.byteLength(request), 0),
    calls: calls.length,
  };
}

function isModelCall(body: JsonObject | undefined): boolean {
  return body !== undefined && ['messages', 'input', 'contents'].some((key) => body[key] !== undefined);
}

/** Returns the differences from `base` to `now`: tools, fields, breakpoints and headers. */
export function differences(base: Exchange, now: Exchange): readonly string[] {
  const from = bodyOf(withoutRun(base.request)) ?? {};
  const to = bodyOf(withoutRun(now.request)) ?? {};
  const fields = [...new Set([...Object.keys(from), ...Object.keys(to)])];
  return [
    ...setDifference('tools', toolNames(from), toolNames(to)),
    ...fields
      .filter((key) => key !== 'tools' && JSON.stringify(from[key]) !== JSON.stringify(to[key]))
      .map((key) => `body.${key}: ${shortened(from[key])} → ${shortened(to[key])}`),
    ...changed('cache marks', marksIn(base.request), marksIn(now.request)),
    ...changed('target', base.target, now.target),
    ...headerDifferences(headersOf(base), headersOf(now)),
  ];
}

/** Replaces values that differ in each run: folders, ids, times. */
function withoutRun(text: string): string {
  return text
    .replaceAll(/\/[\w/.-]*\/home-\w{6}/g, '~')
    .replaceAll(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'UUID')
    .replaceAll(/ses_\w{26}|\bcch=\w+/g, 'SESSION')
    .replaceAll(/\b[0-9a-f]{64}\b/g, 'DIGEST')
    .replaceAll(/\b\d{13}\b/g, 'TIME');
}

function toolNames(body: JsonObject): readonly string[] {
  return offeredTools(body).map(({ name }) => name);
}

function setDifference(what: string, from: readonly string[], to: readonly string[]): readonly string[] {
  const gone = from.filter((one) => !to.includes(one));
  const added = to.filter((one) => !from.includes(one));
  return [
    ...(gone.length > 0 ? [`${what} gone (${gone.length}): ${gone.join(', ')}`] : []),
    ...(added.length > 0 ? [`${what} added (${added.length}): ${added.join(', ')}`] : []),
  ];
}

function changed(what: string, from: string, to: string): readonly string[] {
  return from === to ? [] : [`${what}: ${from} → ${to}`];
}

function marksIn(request: string): string {
  const marks = request.match(/"cache_control":\{[^}]*\}/g) ?? [];
  return `${marks.length} ${[...new Set(marks)].join(' ')}`.trim();
}

/** Headers that are ignored because they depend on the host, the length or the run. */
const passing = /^(?:host|connection|content-length|date|authorization|x-api-key|x-goog-api-key)$/;

function headersOf({ headers }: Exchange): ReadonlyMap<string, string> {
  const pairs = headers.flatMap((name, at) =>
    at % 2 === 0 ? [[name.toLowerCase(), withoutRun(headers[at + 1] ?? '')] as const] : [],
  );
  return new Map(pairs.filter(([name]) => !passing.test(name)));
}

function headerDifferences(
  from: ReadonlyMap<string, string>,
  to: ReadonlyMap<string, string>,
): readonly string[] {
  return [...new Set([...from.keys(), ...to.keys()])].flatMap((name) => {
    const [was, is] = [from.get(name), to.get(name)];
    if (was === is) return [];
    if (was !== undefined && is !== undefined && was.includes(',')) {
      return setDifference(`header ${name}:`, was.split(/, */), is.split(/, */));
    }
    return [`header ${name}: ${was ?? 'none'} → ${is ?? 'none'}`];
  });
}

function shortened(value: unknown): string {
  if (value === undefined) return 'none';
  const text = JSON.stringify(value);
  return text.length <= 160 ? text : `${Buffer.byteLength(text)} bytes`;
}

function bodyOf(request: string): JsonObject | undefined {
  const body = request === '' ? undefined : parseJson(Buffer.from(request));
  return isObject(body) ? body : undefined;
}
