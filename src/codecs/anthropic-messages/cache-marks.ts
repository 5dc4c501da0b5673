/**
 * `cache_control` marks: up to where this provider is to cache a prompt. It caches only what is marked, at most four times a request, and
 * never at thinking or at an empty text. Marks stand on blocks: a field at the top that does the same is not taken by every host of the API.
 * https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching
 */
import type { Span } from '../../conversation/conversation.ts';
import { type Member, scanArray, scanObject, skipSpace } from '../../conversation/json-scan.ts';
import { applySplices, type Splice } from '../../conversation/splice.ts';
import { markKey, usualMarkMs } from '../client-marks.ts';
import type { CacheMarks } from '../codec.ts';
import { startsWith, stringAt, uniqueMembers } from '../read-body.ts';

const encoder = new TextEncoder();
const mark = encoder.encode(`,"${markKey}":{"type":"ephemeral"}`);
const [textStart, textEnd] = [encoder.encode('[{"type":"text","text":'), encoder.encode('}]')];

export const cacheMarks: CacheMarks = {
  keptMs: usualMarkMs,
  set(body, behind, known = []) {
    const spans = known.map(({ span }) => span);
    const { members } = scanObject(body, skipSpace(body, 0), new Set(['messages']), () => spans);
    const valueOf = (name: string) => members.find((member) => member.key === name)?.value;
    const messages = members.find((member) => member.key === 'messages')?.elements ?? [];
    const preamble = lastOfSystem(body, valueOf('system')) ?? lastOfTools(body, valueOf('tools'));
    const places = [preamble, ...behind.map((index) => lastOfMessages(body, messages, index))];
    const set = new Map(places.flatMap((place) => (place ? [[place.at, place.splices] as const] : [])));
    return { body: applySplices(body, [...set.values()].flat()), count: set.size };
  },
};

/** A block that can be marked: where it stands, and what is put there. */
type MarkPlace = { readonly at: number; readonly splices: readonly Splice[] };

function lastOfSystem(body: Uint8Array, system: Span | undefined): MarkPlace | undefined {
  return system && lastOfContent(body, system);
}

/** Tools that are loaded when they are searched for stand outside the cached prefix, and take no mark. */
function lastOfTools(body: Uint8Array, tools: Span | undefined): MarkPlace | undefined {
  if (!tools || !startsWith(body, tools, '[')) return undefined;
  const last = scanArray(body, tools.start).elements.findLast((tool) => {
    const members = startsWith(body, tool, '{') ? scanObject(body, tool.start).members : [];
    return members.length > 0 && !members.some((member) => member.key === 'defer_loading');
  });
  return last && markedObject(last, scanObject(body, last.start).members);
}

/** Behind the message of this index, or as near before its end as a mark may stand. */
function lastOfMessages(body: Uint8Array, messages: readonly Span[], index: number): MarkPlace | undefined {
  for (let at = Math.min(index, messages.length - 1); at >= 0; at--) {
    const byKey = uniqueMembers(scanObject(body, messages[at]!.start).members);
    const content = byKey?.get('content')?.value;
    // A system message may be taken out again by the provider.
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

/** A string has no place for a mark; one text block says the same. */
function markedText({ start, end }: Span): MarkPlace {
  const splices = [
    { span: { start, end: start }, bytes: textStart },
    { span: { start: end, end }, bytes: mark },
    { span: { start: end, end }, bytes: textEnd },
  ];
  return { at: start, splices };
}
