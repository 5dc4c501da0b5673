/**
 * Reads the arguments of a recall, and answers it as text for the model: the original, the requested part of it, or what a search finds. Does no
 * I/O except through `lookup` and `titleOf`; whatever the model sends, the answer is a sentence it can act on.
 */
import { type CountTokens, clip, longestFit } from '../conversation/messages.ts';
import { isRecord } from '../conversation/json-scan.ts';
import { openSlices, runInSlices } from '../conversation/steps.ts';
import { selectPath } from './json-path.ts';
import { readOriginal, type OriginalTitle } from './read-original.ts';
import {
  type TextSpan,
  type Unit,
  countLines,
  locate,
  parseRange,
  spellPlace,
  spellRange,
  unitOf,
} from './text-ranges.ts';
import { searchPage } from './search.ts';
import type { Readers } from './unknown-id.ts';
import type { Searched } from './whole-matches.ts';

// Arguments of the tool, read as leniently as possible without guessing: models send numbers as strings, arrays for ranges, ids in quotes

export type RecallArguments =
  | {
      readonly of: 'one';
      readonly id: string;
      readonly query: string | undefined;
      /** As the model sent it, a list joined by commas; `parseRange` reads it. */
      readonly lines: string | undefined;
      readonly path: string | undefined;
    }
  | {
      readonly of: 'several';
      readonly ids: readonly string[];
      readonly query: string | undefined;
      readonly lines: string | undefined;
      readonly path: string | undefined;
    }
  | { readonly of: 'all'; readonly query: string };

type ParsedArguments =
  | { readonly status: 'ok'; readonly value: RecallArguments }
  /** A sentence for the model that says the right form. */
  | { readonly status: 'bad'; readonly why: string };

const form =
  'Send a JSON object with the id of a stub, such as {"id":"ID"}, and if only a part is wanted "query":"words", ' +
  '"lines":"10-40" or "path":"$.items[0]".';

/** Characters. It also bounds how much the patterns below scan. */
const maxIdLength = 200;

/** Ids that one call may name. */
const maxIds = 8;

export function parseArguments(argumentsJson: string): ParsedArguments {
  const sent = unwrapped(argumentsJson);
  const fields: Record<string, unknown> = isRecord(sent) ? sent : { id: sent };
  const [named, query, lines, path] = [
    fields['id'] ?? fields['context_id'] ?? fields['ids'],
    fields['query'],
    fields['lines'],
    fields['path'],
  ].map(textOf);
  const ids = idsIn(named ?? '');
  const [id] = ids;
  // Models that write code take `path` for the path of a file.
  const isFile = path !== undefined && !path.trim().startsWith('$');
  if (id !== undefined) {
    const part =
      isFile && query !== undefined
        ? { query: `${query} ${path}`, lines, path: undefined }
        : { query, lines, path };
    return {
      status: 'ok',
      value: ids.length === 1 ? { of: 'one', id, ...part } : { of: 'several', ids, ...part },
    };
  }
  const words = [query, isFile ? path : undefined].filter((one) => one !== undefined).join(' ');
  return words === ''
    ? { status: 'bad', why: `No id was given. ${form}` }
    : { status: 'ok', value: { of: 'all', query: words } };
}

/** Returns the ids in a text: several, if it is a list of them, else the text itself as one id; none if it is empty. */
function idsIn(text: string): readonly string[] {
  const pieces = text
    .slice(0, maxIds * maxIdLength)
    .split(/[\s,;]+/)
    .map(cleanId)
    .filter((piece) => piece !== '' && piece !== 'or' && piece !== 'and');
  if (pieces.length > 1 && pieces.every((piece) => /^[A-Za-z.:-]*[\d_][\w.:-]*$/.test(piece)))
    return [...new Set(pieces)].slice(0, maxIds);
  const id = cleanId(text);
  return id === '' ? [] : [id];
}

/** Returns the value sent, even if it was encoded as JSON twice; undefined for anything but an object or a bare id. */
function unwrapped(argumentsJson: string): unknown {
  let value: unknown = argumentsJson;
  for (let layer = 0; layer < 2 && typeof value === 'string'; layer++) {
    const inner = parsedJson(value);
    if (inner === undefined) return isBareId(value) ? value : undefined;
    value = inner.value;
  }
  return value;
}

function parsedJson(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

function isBareId(text: string): boolean {
  return text.length <= maxIdLength && /^[\s\w"'`<>[\]:=.-]+$/.test(text);
}

/**
 * Returns a text, a number or a short list of them as text; undefined for nothing, and the type's name (which is no range or
 * path) for anything else.
 */
function textOf(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'string') return value.trim() === '' ? undefined : value;
  if (typeof value === 'number') return String(value);
  if (!Array.isArray(value)) return typeof value;
  const items = value.slice(0, 8).map((item) => (typeof item === 'number' ? String(item) : item));
  return items.length === 0
    ? undefined
    : items.map((item) => (typeof item === 'string' ? item : typeof item)).join(',');
}

/** Models copy ids together with their surroundings in the stub. */
function cleanId(id: string): string {
  return bare(bare(id.trim().slice(0, maxIdLength)).replace(/^id\s*[:=]/i, ''));
}

function bare(text: string): string {
  return text.replaceAll(/^[\s"'`<>[\](){},.;]+|[\s"'`<>[\](){},.;]+$/g, '');
}

// Answers

export type RecallRequest = {
  /** The arguments of the call as the model wrote them. */
  readonly argumentsJson: string;
  /**
   * Returns the original as exact JSON: a string literal whose decoded text was removed, the arguments of a call (an object, or a
   * literal that holds one), or an array of whole messages. Undefined for an unknown id.
   */
  readonly lookup: (id: string) => string | undefined | Promise<string | undefined>;
  /** Returns the title of an original, which searches rank by and answers show. Default: no original has one. */
  readonly titleOf?: (id: string) => OriginalTitle | undefined | Promise<OriginalTitle | undefined>;
  /** Describes the store that all originals come from, in an answer to an unknown id. Default: they are those of one conversation. */
  readonly store?: string | undefined;
  /** Ids to search when a query names none, the newest first. Default: none, the query has to name one. */
  readonly all?: readonly string[];
  /** Tokens of the answer; below 100 the hint how to read the rest may not fit. */
  readonly maxTokens: number;
  readonly countTokens: CountTokens;
  /** True for a text that the request still shows. Default: it shows none. */
  readonly isShown?: (text: string) => boolean;
};

/**
 * Returns the text for the model, at most `maxTokens` of it. `path` is followed first, then `lines` (of what the path gave), then
 * `query` within those; without an id `query` searches everything. Rejects only when `lookup` does.
 */
export async function resolveRecall(request: RecallRequest): Promise<string> {
  const parsed = parseArguments(request.argumentsJson);
  if (parsed.status === 'bad') return withList(request, parsed.why);
  const asked = parsed.value;
  if (asked.of === 'all') return searchAll(request, request.all ?? [], asked.query);
  if (asked.of === 'one') return answerOne(request, asked);
  return answerSeveral(request, asked);
}

async function answerSeveral(
  request: RecallRequest,
  asked: RecallArguments & { readonly of: 'several' },
): Promise<string> {
  const { maxTokens, countTokens } = request;
  if (asked.query !== undefined) return searchAll(request, asked.ids, asked.query);
  let answers = '';
  for (const [index, id] of asked.ids.entries()) {
    const head = `${answers === '' ? '' : '\n'}── ${id} ──\n`;
    const left = maxTokens - countTokens(answers + head);
    const room = Math.floor(left / (asked.ids.length - index));
    if (room > 0)
      answers += head + (await answerOne({ ...request, maxTokens: room }, { ...asked, of: 'one', id }));
  }
  return clip(answers, maxTokens, countTokens);
}

async function answerOne(
  request: RecallRequest,
  asked: RecallArguments & { readonly of: 'one' },
): Promise<string> {
  const { lookup, titleOf, maxTokens, countTokens, isShown } = request;
  const sentence = (text: string): string => clip(text, maxTokens, countTokens);
  const stored = await lookup(asked.id);
  if (stored === undefined) return answerUnknown(request, asked);
  const title = await titleOf?.(asked.id);
  const original = readOriginal(stored, title?.isCall);
  const chosen = asked.path === undefined ? undefined : selectPath(original.json, asked.path);
  // Models that write code take `path` for the path of a file, which the id says already.
  if (chosen?.status === 'missed' && asked.path?.includes('/'))
    return answerOne(request, { ...asked, path: undefined });
  if (chosen?.status === 'missed') return sentence(`${chosen.why} ${sizeOf(original.text)}`);

  const text = chosen?.text ?? original.text;
  const within = spanOf(text, asked.lines);
  if ('why' in within) return sentence(within.why);
  const options = { maxTokens, countTokens, isShown };
  const callFor = (lines: string) => argumentsFor(asked, lines);
  if (asked.query === undefined) return pageOf(text, within, { ...options, callFor });
  const sections = chosen === undefined ? original.sections : [];
  const source = { id: undefined, text, within, title: title?.text, sections, order: 0, callFor };
  return runInSlices(searchPage([source], asked.query, options), openSlices());
}

/** True for an answer to a call for an unknown id or for none, whatever it gives in its place. */
export function isMiss(answer: string): boolean {
  return /^No (?:memory with id|id was given)/.test(answer);
}

async function answerUnknown(
  request: RecallRequest,
  asked: RecallArguments & { readonly of: 'one' },
): Promise<string> {
  // Loaded on demand: nearly all calls name an original.
  const { answerUnknownId } = await import('./unknown-id.ts');
  return answerUnknownId(request, asked, readersOf(request, asked));
}

/** Returns what reads originals in place of those that a call named. `asked` says which part of them. */
function readersOf(
  request: RecallRequest,
  asked: (RecallArguments & { readonly of: 'one' }) | undefined,
): Readers {
  return {
    read(ids, lines = asked?.lines, maxTokens) {
      // Nothing is guessed a second time if one of these has expired meanwhile.
      const own = { ...request, all: [], maxTokens };
      const part = { query: asked?.query, path: asked?.path, lines };
      const [id = ''] = ids;
      return ids.length === 1
        ? answerOne(own, { of: 'one', id, ...part })
        : answerSeveral(own, { of: 'several', ids, ...part });
    },
    search: (words, maxTokens) => searchAll({ ...request, maxTokens }, request.all ?? [], words),
  };
}

/** Returns a sentence that says why there is no answer, and behind it a list of what can be read. */
async function withList(request: RecallRequest, sentence: string): Promise<string> {
  const { listAfter } = await import('./unknown-id.ts');
  return listAfter(request, sentence);
}

async function searchAll(request: RecallRequest, ids: readonly string[], query: string): Promise<string> {
  const { lookup, titleOf, maxTokens, countTokens, isShown } = request;
  if (ids.length === 0) return clip(nothingToSearch, maxTokens, countTokens);
  const stored = await Promise.all(ids.map((id) => Promise.all([lookup(id), titleOf?.(id)])));
  const slices = openSlices();
  const sources: Searched[] = [];
  for (const [index, [held, title]] of stored.entries()) {
    if (held === undefined) continue;
    await slices.pause();
    const id = ids[index]!;
    const { text, sections } = readOriginal(held, title?.isCall);
    const within = { start: 0, end: text.length };
    const callFor = (lines: string) => argumentsFor({ id }, lines);
    const order = title?.message ?? -index;
    sources.push({ id, text, within, title: title?.text, sections, order, callFor });
  }
  const page = await runInSlices(searchPage(sources, query, { maxTokens, countTokens, isShown }), slices);
  if (!page.startsWith('No match for "')) return page;
  const { answerNoMatch } = await import('./unknown-id.ts');
  return answerNoMatch(request, { query, why: page }, readersOf(request, undefined).read);
}

function spanOf(text: string, lines: string | undefined): TextSpan | { readonly why: string } {
  if (lines === undefined) return { start: 0, end: text.length };
  const range = parseRange(lines);
  if (range === undefined) {
    const given = JSON.stringify(lines).slice(0, 60).toWellFormed();
    return {
      why: `lines ${given} not understood: use one range, such as "10-40", "10", "100-" or "-20". ${sizeOf(text)}`,
    };
  }
  return locate(text, range) ?? { why: `Out of range. ${sizeOf(text)}` };
}

function sizeOf(text: string): string {
  const lines = countLines(text);
  return `The text has ${lines} ${lines === 1 ? 'line' : 'lines'}, ${text.length} characters.`;
}

const nothingToSearch =
  'No id was given, and there is nothing to search without one. Send the id of a stub: {"id":"ID","query":"words"}.';

function argumentsFor(
  { id, path }: { readonly id: string; readonly path?: string | undefined },
  lines: string,
): string {
  return JSON.stringify({ id, path, lines });
}

type PageOptions = {
  readonly maxTokens: number;
  readonly countTokens: CountTokens;
  /** Returns the arguments, as JSON, of the call that reads the given range. */
  readonly callFor: (lines: string) => string;
};

/**
 * Lays out a part of a text under a token cap: the text, then one line that says which part it is and how to call for the rest. A
 * whole text that fits comes back without that line. Following the calls to their end and joining the results (pieces in lines by
 * `\n`, pieces in characters directly) gives back exactly the part.
 */
function pageOf(text: string, wanted: TextSpan, options: PageOptions): string {
  const { maxTokens, countTokens } = options;
  const isWhole = wanted.start === 0 && wanted.end === text.length;
  if (isWhole && longestFit(text, wanted, maxTokens, countTokens) === wanted.end) return text;

  const total = { lines: countLines(text), characters: text.length };
  const likely = lastLine(
    text,
    wanted.start,
    { end: wanted.end, unit: 'characters', rest: wanted },
    total,
    options,
  );
  let room = maxTokens - countTokens(likely);
  while (room > 0) {
    const cut = cutAt(text, wanted, longestFit(text, wanted, room, countTokens));
    if (cut.rest !== undefined && cut.rest.start === wanted.start) break;
    const page = `${text.slice(wanted.start, cut.end)}\n${lastLine(text, wanted.start, cut, total, options)}`;
    const over = countTokens(page) - maxTokens;
    if (over <= 0) return page;
    room = Math.min(room - Math.max(1, over), cut.rest === undefined ? room : Math.ceil(room * 0.99));
  }
  return clip('[The cap on what one call may return is too small to read this.]', maxTokens, countTokens);
}

type PageCut = { readonly end: number; readonly unit: Unit; readonly rest: TextSpan | undefined };

/** Ends the page after a line if possible, else after a code point. */
function cutAt(text: string, wanted: TextSpan, fitting: number): PageCut {
  if (fitting >= wanted.end) return { end: wanted.end, unit: unitOf(text, wanted), rest: undefined };
  const before = text.lastIndexOf('\n', Math.min(fitting, wanted.end - 2));
  if (before < wanted.start) {
    return { end: fitting, unit: 'characters', rest: { start: fitting, end: wanted.end } };
  }
  const rest = { start: before + 1, end: wanted.end };
  // A page that began within a line keeps the line break at its end: nothing else would show it.
  const beganWithLine = wanted.start === 0 || text[wanted.start - 1] === '\n';
  return beganWithLine ? { end: before, unit: 'lines', rest } : { end: before + 1, unit: 'characters', rest };
}

function lastLine(
  text: string,
  start: number,
  cut: PageCut,
  total: Readonly<Record<Unit, number>>,
  { callFor }: PageOptions,
): string {
  const place = spellPlace(text, { start, end: cut.end }, cut.unit);
  const noun = cut.unit === 'characters' ? 'Characters' : place.includes('-') ? 'Lines' : 'Line';
  const rest = cut.rest === undefined ? '' : ` For the rest: ${callFor(spellRange(text, cut.rest))}`;
  return `[${noun} ${place} of ${total[cut.unit]}.${rest}]`;
}
