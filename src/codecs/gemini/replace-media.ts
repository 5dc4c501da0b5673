/**
 * Spells stubs in place of images, documents and sounds. A part of the user's becomes a text. A response holds media in two places: among its
 * parts, which may hold nothing else, so that the stubs become texts in its object; and as MCP spells them, in that object.
 */
import type { Conversation, Span } from '../../conversation/conversation.ts';
import {
  type Splice,
  concatBytes,
  jsonBytes,
  listSplices,
  scanArray,
  scanObject,
} from '../../conversation/json-scan.ts';
import { groupBy } from '../../es2024.ts';
import { withMembers } from '../shared-json.ts';
import { type MediaStub, type MessageEdits, mediaSplices, shift } from '../write-body.ts';
import { namedMembers } from './read-part.ts';

/** Returns the splices that put the stubs of one content in their places. */
export function replaceMedia(
  { message, media }: MessageEdits,
  { body }: Pick<Conversation, 'body'>,
): readonly Splice[] {
  return [...groupBy(media, ({ edit }) => edit.part)].flatMap(([index, stubs]) => {
    const part = message.parts[index]!;
    if (part.type !== 'tool-result') return mediaSplices(stubs, (text) => jsonBytes({ text }));
    const held = namedMembers(body, shift(part.span, message.span.start))?.get('functionResponse')?.value;
    const list = namedMembers(body, held)?.get('parts')?.value;
    const isInList = ({ span }: MediaStub) =>
      list !== undefined && list.start < span.start && span.end < list.end;
    const texts = mediaSplices(
      stubs.filter((stub) => !isInList(stub)),
      (text) => jsonBytes({ type: 'text', text }),
    );
    const inList = stubs.filter(isInList);
    return held && list && inList.length > 0
      ? [...texts, ...responseSplices(body, held, list, inList)]
      : texts;
  });
}

/** Moves the stubs of a response's parts into its object. Without parts left, the list is removed, too. */
function responseSplices(
  body: Uint8Array,
  held: Span,
  list: Span,
  stubs: readonly MediaStub[],
): readonly Splice[] {
  const gone = new Set(stubs.map(({ span }) => span.start));
  const { elements } = scanArray(body, list.start);
  const isGone = (element: Span) => gone.has(element.start);
  const { members } = scanObject(body, held.start);
  const response = namedMembers(body, held)?.get('response');
  const texts = jsonBytes(stubs.map(({ edit }) => edit.stub));
  const close = held.end - 1;
  const spans = members.map(({ span }) => span);
  const isEmpty = elements.every(isGone);
  const isList = (index: number) => isEmpty && members[index]!.value.start === list.start;
  const added = response
    ? []
    : [{ before: members.length, bytes: named('response', withMembers(jsonBytes({}), { folded: texts })) }];
  return [
    ...listSplices(spans, close, isList, added),
    ...(isEmpty ? [] : listSplices(elements, list.end - 1, (index) => isGone(elements[index]!))),
    ...(response ? memberSplices(body, response.value, texts) : []),
  ];
}

/** Adds a member under a name that the object does not have. */
function memberSplices(body: Uint8Array, object: Span, value: Uint8Array): readonly Splice[] {
  const { members, span } = scanObject(body, object.start);
  const keys = new Set(members.map(({ key }) => key));
  let key = 'folded';
  for (let number = 2; keys.has(key); number++) key = `folded_${number}`;
  const spans = members.map((member) => member.span);
  return listSplices(spans, span.end - 1, () => false, [
    { before: members.length, bytes: named(key, value) },
  ]);
}

function named(key: string, value: Uint8Array): Uint8Array {
  return concatBytes([jsonBytes(key), colon, value]);
}

const colon = new TextEncoder().encode(':');
