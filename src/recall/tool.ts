/**
 * Defines the tool by which the model recalls originals, reads its arguments, and answers one call: the original, or the requested part of
 * it, as text for the model. The definition is sent with every request, so every word of it is paid for each turn; and it must
 * never change within a conversation, or the cached prefix is lost. Does no I/O except through `lookup`; whatever the model sends,
 * the answer is a sentence it can act on.
 */
import type { RecallTool } from '../codecs/codec.ts';
import type { RecalledMedia } from '../conversation/conversation.ts';
import { type CountTokens, clip, longestFit } from '../conversation/messages.ts';
import { isRecord } from '../conversation/json-scan.ts';
import { selectPath } from './json-path.ts';
import {
  type TextSpan,
  type Unit,
  countLines,
  locate,
  parseRange,
  readOriginal,
  spellPlace,
  spellRange,
  unitOf,
} from './read-original.ts';
import { type Searched, searchPage } from './search.ts';

const usualName = 'read_memory';

/**
 * Returns the tool under a name that the client does not use: `read_memory`, else `leporello_read_memory`, else that with `_2`,
 * `_3`. The same names give the same tool. A `query` without an id is possible where the stubs of the conversation are known.
 */
export function recallToolFor(
  takenNames: readonly string[],
  by: 'id' | 'id or query' = 'id or query',
): RecallTool {
  const name = freeName(new Set(takenNames));
  return name === usualName ? usualTools[by] : toolNamed(name, by);
}

function toolNamed(name: string, by: 'id' | 'id or query'): RecallTool {
  return by === 'id'
    ? { name, description, parameters: { ...parameters, required: ['id'] } }
    : { name, description: `${description}; query without id searches all`, parameters };
}

const description = 'Reads what a stub stands for, or a part: lines 10-40, path $.a[0]';

const textType = { type: 'string' } as const;

// Plain types and no defaults, so that strict and lax providers accept it alike; arguments are read leniently.
const parameters = {
  type: 'object',
  properties: { id: textType, query: textType, lines: textType, path: textType },
} as const;

/** Nearly every request gets one of these objects, so that its definition is spelled once. */
const usualTools = { id: toolNamed(usualName, 'id'), 'id or query': toolNamed(usualName, 'id or query') };

function freeName(taken: ReadonlySet<string>): string {
  if (!taken.has(usualName)) return usualName;
  const own = `leporello_${usualName}`;
  let name = own;
  for (let number = 2; taken.has(name); number++) name = `${own}_${number}`;
  return name;
}

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

export function parseArguments(argumentsJson: string): ParsedArguments {
  const sent = unwrapped(argumentsJson);
  const fields: Record<string, unknown> = isRecord(sent) ? sent : { id: sent };
  const id = cleanId(textOf(fields['id']) ?? '');
  const [query, lines, path] = [fields['query'], fields['lines'], fields['path']].map(textOf);
  if (id !== '') return { status: 'ok', value: { of: 'one', id, query, lines, path } };
  // Lines and paths refer to one text.
  if (query === undefined || lines !== undefined || path !== undefined)
    return { status: 'bad', why: `No id was given. ${form}` };
  return { status: 'ok', value: { of: 'all', query } };
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
   * literal that holds one), or an array of whole messages. Undefined for an id that is unknown in this conversation.
   */
  readonly lookup: (id: string) => string | undefined | Promise<string | undefined>;
  /** Ids to search when a query names none, the most likely first. Default: none, the query has to name one. */
  readonly all?: readonly string[];
  /** Tokens of the answer; below 100 the hint how to read the rest may not fit. */
  readonly maxTokens: number;
  readonly countTokens: CountTokens;
};

/**
 * Returns the text for the model, at most `maxTokens` of it. `path` is followed first, then `lines` (of what the path gave), then
 * `query` within those; without an id `query` searches everything. Rejects only when `lookup` does.
 */
export async function resolveRecall(request: RecallRequest): Promise<string> {
  const { maxTokens, countTokens } = request;
  const sentence = (text: string): string => clip(text, maxTokens, countTokens);
  const parsed = parseArguments(request.argumentsJson);
  if (parsed.status === 'bad') return sentence(parsed.why);
  const asked = parsed.value;
  if (asked.of === 'all') return searchAll(request, asked.query);

  const stored = await request.lookup(asked.id);
  if (stored === undefined) return sentence(unknownId(asked.id));
  const original = readOriginal(stored);
  const chosen = asked.path === undefined ? undefined : selectPath(original.json, asked.path);
  if (chosen?.status === 'missed') return sentence(`${chosen.why} ${sizeOf(original.text)}`);

  const text = chosen?.text ?? original.text;
  const within = spanOf(text, asked.lines);
  if ('why' in within) return sentence(within.why);
  const options = { maxTokens, countTokens };
  const next = (lines: string) => argumentsFor(asked, lines);
  return asked.query === undefined
    ? pageOf(text, within, { ...options, callFor: next })
    : searchPage([{ id: undefined, text, within, callFor: next }], asked.query, options);
}

async function searchAll(
  { lookup, all = [], maxTokens, countTokens }: RecallRequest,
  query: string,
): Promise<string> {
  if (all.length === 0) return clip(nothingToSearch, maxTokens, countTokens);
  const found = await Promise.all(all.map(async (id) => ({ id, stored: await lookup(id) })));
  const sources = found.flatMap(({ id, stored }): readonly Searched[] => {
    if (stored === undefined) return [];
    const { text } = readOriginal(stored);
    return [
      { id, text, within: { start: 0, end: text.length }, callFor: (lines) => argumentsFor({ id }, lines) },
    ];
  });
  return searchPage(sources, query, { maxTokens, countTokens });
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

function unknownId(id: string): string {
  const shown = JSON.stringify(id.slice(0, 80).toWellFormed());
  return (
    `No memory with id ${shown} in this conversation. Only ids that stand in its stubs can be read; ` +
    'asking again will not help. Go on with what is there.'
  );
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
    room = Math.min(room - over, cut.rest === undefined ? room : Math.ceil(room * 0.99));
  }
  return clip('[The cap on what one call may return is too small to read this.]', maxTokens, countTokens);
}

type Cut = { readonly end: number; readonly unit: Unit; readonly rest: TextSpan | undefined };

/** Ends the page after a line if possible, else after a code point. */
function cutAt(text: string, wanted: TextSpan, fitting: number): Cut {
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
  cut: Cut,
  total: Readonly<Record<Unit, number>>,
  { callFor }: PageOptions,
): string {
  const place = spellPlace(text, { start, end: cut.end }, cut.unit);
  const noun = cut.unit === 'characters' ? 'Characters' : place.includes('-') ? 'Lines' : 'Line';
  const rest = cut.rest === undefined ? '' : ` For the rest: ${callFor(spellRange(text, cut.rest))}`;
  return `[${noun} ${place} of ${total[cut.unit]}.${rest}]`;
}

// Answers for a prepared request: a model that sees a stub may read its original.

/** The part of a prepared request that recalls are answered from. */
type RecallSource = {
  /** Counts the tokens of the answer; if undefined, its characters are counted. */
  readonly counter: { count(text: string): number } | undefined;
  readonly original: (id: string) => Uint8Array | undefined;
  /** Does the same as `original` when the originals are held elsewhere; undefined when `original` has them all. */
  readonly lookUpOriginal?: (id: string) => Promise<Uint8Array | undefined>;
  /** The ids that a recall without an id searches, the most likely first. */
  readonly searched: readonly string[];
  /** The images and documents among the originals, by id. */
  readonly media?: ReadonlyMap<string, FoldedMedia> | undefined;
};

/** An image or document that a fold took out. */
export type FoldedMedia = Pick<RecalledMedia, 'inResult'> & {
  /** The noun that stubs and answers use. */
  readonly name: string;
  readonly tokens: number;
};

export type RecallText = {
  /** The text for the model: the original, a part of it, or a sentence that says why there is none. */
  readonly text: string;
  /** True when there was an original for the id, or originals to search. */
  readonly found: boolean;
  /** Tokens of the text and the media. */
  readonly tokens: number;
  /** The image or document that the answer gives back besides its text. */
  readonly media?: readonly RecalledMedia[];
};

/** Answers a recall with at most `maxTokens` of text or an image or document of that size, for any arguments. */
export async function answerRecall(
  request: RecallSource,
  argumentsJson: string,
  maxTokens: number,
): Promise<RecallText> {
  const count = (text: string) => request.counter?.count(text) ?? text.length;
  const given = await recallMedia(request, argumentsJson, maxTokens);
  if (given) return { ...given, found: true, tokens: count(given.text) + given.tokens };
  let found = false;
  const text = await resolveRecall({
    argumentsJson,
    async lookup(id) {
      const original = await (request.lookUpOriginal ?? request.original)(id);
      found ||= original !== undefined;
      return original && new TextDecoder().decode(original);
    },
    all: request.searched,
    maxTokens,
    countTokens: count,
  });
  return { text, found, tokens: count(text) };
}

/** Returns the image or document that the call names as it was; undefined when it names something else. */
async function recallMedia(
  { media, lookUpOriginal, original }: RecallSource,
  argumentsJson: string,
  maxTokens: number,
): Promise<Pick<RecallText, 'text' | 'tokens' | 'media'> | undefined> {
  const parsed = media && media.size > 0 ? parseArguments(argumentsJson) : undefined;
  const id = parsed?.status === 'ok' && parsed.value.of === 'one' ? parsed.value.id : '';
  const folded = media?.get(id);
  const stored = folded && (await (lookUpOriginal ?? original)(id));
  if (!folded || !stored) return undefined;
  const { name, tokens, inResult } = folded;
  if (tokens > maxTokens)
    return { text: `The ${name} takes about ${tokens} tokens; there is room for ${maxTokens}.`, tokens: 0 };
  const json = new TextDecoder().decode(stored);
  return { text: `The ${name} of ${id}, as it was:`, tokens, media: [{ json, inResult }] };
}
