/**
 * Answers a call of the recall tool that names no original: a model sends half an id, the number of a message in a summary, the id of a call, a path or
 * a title instead. The answer says so, and gives what it most likely meant, else a list of what can be read. Loaded when such a call
 * comes. Does no I/O except through `lookup` and `titleOf`.
 */
import { type CountTokens, clip } from '../conversation/messages.ts';
import { openSlices } from '../conversation/steps.ts';
import { type OriginalTitle, readOriginal } from './read-original.ts';
import { countLines } from './text-ranges.ts';

/** The parts of a `RecallRequest` that a guess needs; see there. */
type NamelessRecall = {
  readonly lookup: (id: string) => string | undefined | Promise<string | undefined>;
  readonly titleOf?: (id: string) => OriginalTitle | undefined | Promise<OriginalTitle | undefined>;
  readonly all?: readonly string[];
  readonly store?: string | undefined;
  readonly maxTokens: number;
  readonly countTokens: CountTokens;
};

/** Reads originals, or searches all of them, as any other call does. */
export type Readers = {
  /** Reads these originals, or these lines of each. */
  readonly read: (ids: readonly string[], lines: string | undefined, maxTokens: number) => Promise<string>;
  readonly search: (query: string, maxTokens: number) => Promise<string>;
};

/** An original, with its title. */
type Known = { readonly id: string; readonly title: OriginalTitle | undefined };

type Guess = { readonly why: string; readonly ids: readonly string[]; readonly lines?: string };

/** Answers a call for an unknown id, with at most `maxTokens`. */
export async function answerUnknownId(
  request: NamelessRecall,
  asked: { readonly id: string; readonly query: string | undefined },
  { read, search }: Readers,
): Promise<string> {
  const { maxTokens, countTokens } = request;
  const { store } = request;
  const head = `No memory with id ${JSON.stringify(asked.id.slice(0, 80).toWellFormed())} in ${store ?? 'this conversation'}`;
  const known = await knownTo(request);
  if (known.length === 0)
    return clip(`${head}. ${store === undefined ? onlyStubs : neverOrExpired}`, maxTokens, countTokens);
  const after = async (begin: string, answer: (room: number) => Promise<string>): Promise<string> => {
    const room = maxTokens - countTokens(`${begin}\n`);
    return clip(room > 0 ? `${begin}\n${await answer(room)}` : begin, maxTokens, countTokens);
  };
  const guess = await guessed(request, known, asked.id);
  if (guess !== undefined)
    return after(`${head}. ${guess.why}:`, (room) => read(guess.ids, guess.lines, room));
  const own = isId(asked.id) || numberForm.test(asked.id) ? undefined : asked.id;
  const words = [asked.query, own].filter((text) => text !== undefined).join(' ');
  return words === ''
    ? after(`${head}.`, (room) => listOf(request, known, room))
    : after(`${head}. A search of all that was folded:`, (room) => search(words, room));
}

const onlyStubs =
  'Only ids that stand in its stubs can be read; asking again will not help. Go on with what is there.';
const neverOrExpired =
  'It was never there, or has expired: by default, an original is kept for 30 days after its last use. Asking again will not help.';

/** Answers a search that found nothing in the texts: with the newest original whose title has the query, or a path in it, else with a list. */
export async function answerNoMatch(
  request: NamelessRecall,
  { query, why }: { readonly query: string; readonly why: string },
  read: Readers['read'],
): Promise<string> {
  const { maxTokens, countTokens } = request;
  const known = await knownTo(request);
  const paths = query.split(/\s+/).filter((chunk) => chunk.includes('/'));
  const guess = [query.trim(), ...paths].flatMap((text) => titledBy(known, text) ?? [])[0];
  if (guess === undefined) return listAfter(request, why);
  const begin = `${why.slice(0, why.indexOf('. Use ') + 1)} ${guess.why}:\n`;
  const room = maxTokens - countTokens(begin);
  return clip(room > 0 ? `${begin}${await read(guess.ids, undefined, room)}` : begin, maxTokens, countTokens);
}

/** Returns a list of what can be read, to put behind a sentence; an empty text if there is nothing. */
export async function listAfter(request: NamelessRecall, sentence: string): Promise<string> {
  const { maxTokens, countTokens } = request;
  const known = await knownTo(request);
  const room = maxTokens - countTokens(`${sentence}\n`);
  const list = known.length === 0 || room <= 0 ? '' : `\n${await listOf(request, known, room)}`;
  return clip(`${sentence}${list}`, maxTokens, countTokens);
}

async function knownTo({ all = [], titleOf }: NamelessRecall): Promise<readonly Known[]> {
  const known = await Promise.all(all.map(async (id) => ({ id, title: await titleOf?.(id) })));
  return known.toSorted((one, other) => (other.title?.message ?? 0) - (one.title?.message ?? 0));
}

/** Originals that a list names at most. */
const maxListed = 12;

const maxTitle = 120;

async function listOf(request: NamelessRecall, known: readonly Known[], room: number): Promise<string> {
  const lines = await Promise.all(
    known.slice(0, maxListed).map(async ({ id, title }) => {
      const text = title?.text ?? (await contentsOf(request, id));
      return `${id} · ${text.slice(0, maxTitle).toWellFormed()}`;
    }),
  );
  const more = known.length > maxListed ? `\nand ${known.length - maxListed} older` : '';
  const list = `Folded in ${request.store ?? 'this conversation'}, the newest first:\n${lines.join('\n')}${more}`;
  return clip(list, room, request.countTokens);
}

/** Describes an original without a title: by its number of messages and the first of them, or by its first line. */
async function contentsOf({ lookup }: NamelessRecall, id: string): Promise<string> {
  const { text, sections } = readOriginal((await lookup(id)) ?? '');
  const [, count, first = ''] = /^1 of (\d+) · (.*)$/s.exec(sections[0]?.heading ?? '') ?? [];
  const [line = ''] = text
    .slice(sections[0]?.start ?? 0, 1_000)
    .trimStart()
    .split('\n');
  return count === undefined
    ? line
    : `${count} messages, the first: ${first.startsWith('call ') ? first : `${first}: ${line}`}`;
}

/** Returns the originals that an unknown id may mean, and why; undefined when none fits. */
async function guessed(
  request: NamelessRecall,
  known: readonly Known[],
  given: string,
): Promise<Guess | undefined> {
  const close = known.filter(({ id }) => isClose(given, id));
  if (close.length === 1) return { why: `The closest is ${close[0]!.id}`, ids: [close[0]!.id] };
  const [, from, to = from] = numberForm.exec(given) ?? [];
  if (from !== undefined) return messagesAt(request, known, Number(from), Number(to));
  const ofCall = known.filter(({ title }) => title?.callId === given).map(({ id }) => id);
  if (ofCall.length > 0)
    return { why: `It is the id of a call, to which ${ofCall.join(' and ')} belongs`, ids: ofCall };
  return (
    titledBy(known, given) ??
    (/^[A-Za-z_-]*\d[\w-]*$/.test(given) ? callAt(request, known, given) : undefined)
  );
}

/** Matches the number of a message, or of the first and the last of several. */
const numberForm = /^(?:messages?|steps?|#)?\s*(\d{1,6})(?:\s*[-–]\s*(\d{1,6}))?$/i;

/** Returns the newest original whose title has a text, such as a path. */
function titledBy(known: readonly Known[], text: string): Guess | undefined {
  if (text.length < minTitle) return undefined;
  const [newest, ...others] = known.flatMap(({ id, title }) => (title?.text?.includes(text) ? [id] : []));
  if (newest === undefined) return undefined;
  const more = others.length === 0 ? '' : `; others: ${others.slice(0, maxListed).join(', ')}`;
  return { why: `${newest} is the newest about it${more}`, ids: [newest] };
}

/** Characters of a title that is searched for, and of the beginning of an id that stands for it. */
const minTitle = 4;
const minStart = 8;

/** True for a text that is an id rather than words. */
function isId(text: string): boolean {
  return /^(?:mem|call|toolu|fc)[_-]\w+$/i.test(text);
}

/** True if an id was cut, or differs in two characters at most. */
function isClose(given: string, id: string): boolean {
  if (given.length >= minStart && (id.startsWith(given) || given.includes(id))) return true;
  if (!isId(given) || Math.abs(given.length - id.length) > 2) return false;
  let start = 0;
  while (start < id.length && given[start] === id[start]) start++;
  let end = 0;
  while (end < Math.min(id.length, given.length) - start && given.at(-1 - end) === id.at(-1 - end)) end++;
  return Math.max(given.length, id.length) - start - end <= 2;
}

/** Finds messages by their numbers, as summaries count those that they stand for; only those in the original of the first. */
async function messagesAt(
  request: NamelessRecall,
  known: readonly Known[],
  from: number,
  to: number,
): Promise<Guess | undefined> {
  const slices = openSlices();
  let before = 0;
  for (const { id, title } of known.toReversed()) {
    if (title?.text !== undefined) continue;
    await slices.pause();
    const pages = pagesIn((await request.lookup(id)) ?? '');
    const count = Math.max(0, ...pages.keys());
    const [first, last] = [pages.get(from - before), pages.get(Math.min(Math.max(from, to) - before, count))];
    if (first !== undefined && last !== undefined)
      return {
        why: `Message ${from} of those that were taken out is in ${id}`,
        ids: [id],
        lines: `${first.split('-')[0]}-${last.split('-')[1]}`,
      };
    before += count;
  }
  return undefined;
}

/** Finds the message that makes or answers a call, by the id of the call. */
async function callAt(
  { lookup }: NamelessRecall,
  known: readonly Known[],
  callId: string,
): Promise<Guess | undefined> {
  const slices = openSlices();
  const spelled = JSON.stringify(callId);
  for (const { id, title } of known) {
    if (title?.text !== undefined) continue;
    await slices.pause();
    const stored = (await lookup(id)) ?? '';
    if (!stored.includes(spelled)) continue;
    const pages = pagesIn(stored);
    const holding = (JSON.parse(stored) as readonly unknown[]).flatMap((message, index) => {
      const lines = JSON.stringify(message).includes(spelled) ? pages.get(index + 1) : undefined;
      return lines === undefined ? [] : [lines];
    });
    const [from, to] = [holding[0]?.split('-')[0], holding.at(-1)?.split('-')[1]];
    if (from !== undefined)
      return { why: `It is the id of a call in ${id}`, ids: [id], lines: `${from}-${to}` };
  }
  return undefined;
}

/** Returns the lines of each message in an original of several, by the number of the message. */
function pagesIn(stored: string): ReadonlyMap<number, string> {
  const { text, sections } = readOriginal(stored);
  const starts = new Map<number, { from: number; to: number }>();
  let line = 1;
  let at = 0;
  for (const { start, end, heading } of sections) {
    const head = start - `── ${heading} ──\n`.length;
    line += countLines(text.slice(at, head));
    const to = line + countLines(text.slice(head, end)) - 1;
    const number = Number(/^\d+/.exec(heading)?.[0]);
    starts.set(number, { from: starts.get(number)?.from ?? line, to });
    line = to + 1;
    at = end;
  }
  return new Map(Array.from(starts, ([number, { from, to }]) => [number, `${from}-${to}`]));
}
