/**
 * Keeps user and model alternating after edits. Contents of one side that an edit made neighbors are joined: the parts of the
 * later one follow those of the earlier one, byte for byte. Between contents of the user that must not be joined, a short reply
 * of the model replaces the removed ones. "Please ensure that multiturn requests alternate between user and model." Neighbors
 * that the client itself sent stay as they are.
 */
import type { Conversation, Span } from '../../conversation/conversation.ts';
import type { Edit } from '../../conversation/edit.ts';
import { oneStep } from '../../conversation/steps.ts';
import {
  type Insertion,
  type Splice,
  applySplices,
  concatBytes,
  jsonBytes,
  listSplices,
  scanArray,
  scanObject,
  skipSpace,
} from '../../conversation/json-scan.ts';
import { startsWith, stringAt } from '../read-body.ts';
import { droppedMessages } from '../write-body.ts';
import { namedMembers } from './read-part.ts';

/** The origin of a content in a written body: inserted by us, or the client's content of this index. */
export type ContentOrigin = number | 'inserted';

type WrittenContent = {
  readonly span: Span;
  readonly side: string;
  readonly parts: readonly Span[];
  readonly isList: boolean;
  readonly hasOnlyParts: boolean;
  readonly answers: boolean;
};

const comma = new TextEncoder().encode(',');

/** Replaces removed replies of the model between results and words of the user, which must neither meet nor be joined. */
const foldedReply = jsonBytes({ role: 'model', parts: [{ text: '[Earlier replies are folded.]' }] });

/** Joins contents of the body; `origins` has one entry for each. */
export function joinNeighbours(body: Uint8Array, origins: readonly ContentOrigin[]): Uint8Array {
  const seams = origins.map((origin, at) => isNewSeam(origins[at - 1], origin));
  if (!seams.includes(true)) return body;
  const field = scanObject(body, skipSpace(body, 0), new Set(['contents'])).members.find(
    ({ key }) => key === 'contents',
  );
  const elements = field?.elements ?? [];
  const contents = elements.map((span, at) =>
    seams[at] === true || seams[at + 1] === true ? readContent(body, span) : undefined,
  );
  const heads = new Map<number, number[]>();
  const gone = new Set<number>();
  const between: Insertion[] = [];
  const apart = separateContents(contents, origins);
  let head = { at: 0, others: [] as number[], answers: contents[0]?.answers === true };
  for (let at = 1; at < elements.length; at++) {
    const content = contents[at];
    const mayStay = apart[at] === true && head.answers;
    if (seams[at] !== true || mayStay || !mayJoin(contents[head.at], content)) {
      const before = contents[head.others.at(-1) ?? head.at];
      if (seams[at] === true && before?.side === 'user' && content?.side === 'user')
        between.push({ before: at, bytes: foldedReply });
      head = { at, others: [], answers: content?.answers === true };
      continue;
    }
    head.others.push(at);
    head.answers ||= content?.answers === true;
    heads.set(head.at, head.others);
    gone.add(at);
  }
  const close = (field?.value.end ?? 1) - 1;
  const additions = [...heads].map(([first, others]): Splice => {
    const end = contents[first]!.parts.at(-1)!.end;
    const bytes = concatBytes(others.flatMap((at) => [comma, innerBytes(body, contents[at]!)]));
    return { span: { start: end, end }, bytes };
  });
  return applySplices(body, [...additions, ...listSplices(elements, close, (at) => gone.has(at), between)]);
}

function isNewSeam(before: ContentOrigin | undefined, origin: ContentOrigin): boolean {
  if (before === undefined) return false;
  return before === 'inserted' || origin === 'inserted' || origin !== before + 1;
}

/**
 * Returns which contents stay separate from results ahead of them. Behind results the user's own words stay a content of their
 * own, together with anything we inserted ahead of them: "the model was reading the trailing text as a continuation of the tool
 * result" (hermes-agent #79791).
 */
function separateContents(
  contents: readonly (WrittenContent | undefined)[],
  origins: readonly ContentOrigin[],
): readonly boolean[] {
  const apart: boolean[] = [];
  for (let at = origins.length - 1; at >= 0; at--) {
    const content = contents[at];
    const isWord = content !== undefined && content.side === 'user' && !content.answers;
    apart[at] = origins[at] === 'inserted' ? (apart[at + 1] ?? false) : isWord;
  }
  return apart;
}

function mayJoin(first: WrittenContent | undefined, content: WrittenContent | undefined): boolean {
  if (!first || !content || first.side !== content.side || !content.hasOnlyParts) return false;
  if (!first.isList || !content.isList) return false;
  return first.parts.length > 0 && content.parts.length > 0;
}

/** Returns undefined for anything but an object. */
function readContent(body: Uint8Array, span: Span): WrittenContent | undefined {
  const named = namedMembers(body, span);
  if (!named) return undefined;
  const list = named.get('parts')?.value;
  const isList = list !== undefined && startsWith(body, list, '[');
  const said = stringAt(body, named.get('role')) ?? '';
  // A single part may be given without brackets.
  const parts = !list ? [] : isList ? scanArray(body, list.start).elements : [list];
  return {
    span,
    side: said === 'model' ? 'model' : 'user',
    parts,
    isList,
    hasOnlyParts: [...named.keys()].every((name) => name === 'role' || name === 'parts'),
    answers: parts.some((part) => namedMembers(body, part)?.has('functionResponse')),
  };
}

function innerBytes(body: Uint8Array, { parts }: WrittenContent): Uint8Array {
  return body.subarray(parts[0]!.start, parts.at(-1)!.end);
}

/** Returns the origin of each content of the written body, in order. */
export function originsAfter(conversation: Conversation, edits: readonly Edit[]): readonly ContentOrigin[] {
  const gone = droppedMessages(conversation, edits);
  const inserted = new Map<number, number>();
  for (const edit of edits)
    if (edit.kind === 'insert-message') inserted.set(edit.before, (inserted.get(edit.before) ?? 0) + 1);
  return oneStep(() => {
    const origins: ContentOrigin[] = [];
    for (const { index } of conversation.messages) {
      for (let count = inserted.get(index) ?? 0; count > 0; count--) origins.push('inserted');
      if (!gone.has(index)) origins.push(index);
    }
    return origins;
  });
}
