/**
 * Sets `cache_control` marks, which say how much of the prompt this provider caches. It caches only what is marked, takes at most
 * four marks a request, and none on thinking or an empty text. Marks are set on blocks, because not every host of the API accepts
 * the top-level field. https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching
 */
import type { Block, Span } from '../../conversation/conversation.ts';
import {
  type Member,
  type Splice,
  applySplices,
  scanArray,
  scanObject,
  skipSpace,
} from '../../conversation/json-scan.ts';
import { markKey, usualMarkMs } from '../shared-json.ts';
import type { CacheMarks } from '../codec.ts';
import { startsWith, stringAt, uniqueMembers } from '../read-body.ts';
import { shift } from '../write-body.ts';

const encoder = new TextEncoder();
const mark = encoder.encode(`,"${markKey}":{"type":"ephemeral"}`);
const [textStart, textEnd] = [encoder.encode('[{"type":"text","text":'), encoder.encode('}]')];

export const cacheMarks: CacheMarks = {
  keptMs: usualMarkMs,
  set(body, after, known = []) {
    const spansIn = (list: number) => movedTo(skipSpace(body, list + 1), known);
    const { members } = scanObject(body, skipSpace(body, 0), new Set(['messages']), spansIn);
    const valueOf = (name: string) => members.find((member) => member.key === name)?.value;
    const messages = members.find((member) => member.key === 'messages')?.elements ?? [];
    const preamble = lastOfSystem(body, valueOf('system')) ?? lastOfTools(body, valueOf('tools'));
    const places = [preamble, ...after.map((index) => lastOfMessages(body, messages, index))];
    const set = new Map(places.flatMap((place) => (place ? [[place.at, place.splices] as const] : [])));
    return { body: applySplices(body, [...set.values()].flat()), count: set.size };
  },
};

/** Returns the spans of the messages in a body where the first one starts at `start`. */
function movedTo(start: number, messages: readonly Block[]): readonly Span[] {
  const by = start - (messages[0]?.span.start ?? start);
  return messages.map(({ span }) => (by === 0 ? span : shift(span, by)));
}

/** A block that can be marked: its position, and the splices that mark it. */
type MarkPlace = { readonly at: number; readonly splices: readonly Splice[] };

function lastOfSystem(body: Uint8Array, system: Span | undefined): MarkPlace | undefined {
  return system && lastOfContent(body, system);
}

/** Tools that are loaded on demand are outside the cached prefix, and take no mark. */
function lastOfTools(body: Uint8Array, tools: Span | undefined): MarkPlace | undefined {
  if (!tools || !startsWith(body, tools, '[')) return undefined;
  const last = scanArray(body, tools.start).elements.findLast((tool) => {
    const members = startsWith(body, tool, '{') ? scanObject(body, tool.start).members : [];
    return members.length > 0 && !members.some((member) => member.key === 'defer_loading');
  });
  return last && markedObject(last, scanObject(body, last.start).members);
}

/** Returns the end of the message of this index, or the nearest earlier place where a mark is allowed. */
function lastOfMessages(body: Uint8Array, messages: readonly Span[], index: number): MarkPlace | undefined {
  for (let at = Math.min(index, messages.length - 1); at >= 0; at--) {
    const byKey = uniqueMembers(scanObject(body, messages[at]!.start).members);
    const content = byKey?.get('content')?.value;
    // The provider may remove a system message again.
    if (!content || stringAt(body, byKey.get('role')) === 'system') continue;
    const place = lastOfContent(body, content);
    if (place) return place;
  }
  return undefined;
}

function lastOfContent(body: Uint8Array, content: Span): MarkPlace | undefined {
  if (startsWith(body, content, '"')) return isEmpty(content) ? undefined : markedText(content);
  if (!startsWith(body, content, '[')) return undefined;
  for (const block of scanArray(body, content.start).elements.toReversed()) {
    const members = startsWith(body, block, '{') ? scanObject(body, block.start).members : [];
    if (isMarkable(body, uniqueMembers(members))) return markedObject(block, members);
  }
  return undefined;
}

const markable: ReadonlySet<string | undefined> = new Set([
  'text',
  'tool_use',
  'tool_result',
  'image',
  'document',
  'search_result',
]);

/** "cache_control cannot be set for empty text blocks"; thinking has no such field. */
function isMarkable(body: Uint8Array, byKey: ReadonlyMap<string, Member> | undefined): boolean {
  const type = stringAt(body, byKey?.get('type'));
  const text = byKey?.get('text')?.value;
  return markable.has(type) && (type !== 'text' || (text !== undefined && !isEmpty(text)));
}

function isEmpty(literal: Span): boolean {
  return literal.end - literal.start <= 2;
}

function markedObject(object: Span, members: readonly Member[]): MarkPlace {
  const { end } = members.at(-1)!.span;
  return { at: object.start, splices: [{ span: { start: end, end }, bytes: mark }] };
}

/** A string has no place for a mark, so it becomes one text block, which means the same. */
function markedText({ start, end }: Span): MarkPlace {
  const splices = [
    { span: { start, end: start }, bytes: textStart },
    { span: { start: end, end }, bytes: mark },
    { span: { start: end, end }, bytes: textEnd },
  ];
  return { at: start, splices };
}
