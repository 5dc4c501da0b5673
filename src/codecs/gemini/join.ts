/**
 * Keeps user and model in alternation: contents of one side that an edit made neighbours become one, the parts of the later behind
 * those of the earlier, byte for byte. "Please ensure that multiturn requests alternate between user and model." What the client
 * itself sent side by side stays so.
 */
import type { Span } from '../../conversation/conversation.ts';
import { scanArray, scanObject, skipSpace } from '../../conversation/json-scan.ts';
import { applySplices, concatBytes, listSplices, type Splice } from '../../conversation/splice.ts';
import { startsWith, stringAt } from '../read-body.ts';
import { namedMembers } from './names.ts';

/** One content of a written body: inserted by us, or the client's of this index. */
export type Origin = number | 'inserted';

type Content = {
  readonly span: Span;
  readonly side: string;
  readonly parts: readonly Span[];
  readonly hasOnlyParts: boolean;
  readonly answers: boolean;
};

const comma = new TextEncoder().encode(',');

/** `origins` says of each content of the body where it comes from. */
export function joinNeighbours(body: Uint8Array, origins: readonly Origin[]): Uint8Array {
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
  let head = 0;
  for (let at = 1; at < elements.length; at++) {
    const before = [head, ...(heads.get(head) ?? [])].map((index) => contents[index]);
    if (seams[at] !== true || !mayJoin(before, contents[at], standsApart(contents, origins, at))) {
      head = at;
      continue;
    }
    heads.set(head, [...(heads.get(head) ?? []), at]);
    gone.add(at);
  }
  const close = (field?.value.end ?? 1) - 1;
  const additions = [...heads].map(([first, others]): Splice => {
    const end = contents[first]!.parts.at(-1)!.end;
    const bytes = concatBytes(others.flatMap((at) => [comma, innerBytes(body, contents[at]!)]));
    return { span: { start: end, end }, bytes };
  });
  return applySplices(body, [...additions, ...listSplices(elements, close, (at) => gone.has(at))]);
}

function isNewSeam(before: Origin | undefined, origin: Origin): boolean {
  if (before === undefined) return false;
  return before === 'inserted' || origin === 'inserted' || origin !== before + 1;
}

/**
 * Behind results the user's own words stay a content of their own, with whatever we inserted in front of them: "the model was
 * reading the trailing text as a continuation of the tool result" (hermes-agent #79791). Providers take these two side by side.
 */
function standsApart(
  contents: readonly (Content | undefined)[],
  origins: readonly Origin[],
  at: number,
): boolean {
  let next = at;
  while (origins[next] === 'inserted') next++;
  const content = contents[next];
  return content !== undefined && content.side === 'user' && !content.answers;
}

function mayJoin(
  before: readonly (Content | undefined)[],
  content: Content | undefined,
  apart: boolean,
): boolean {
  const first = before[0];
  if (!first || !content || first.side !== content.side || !content.hasOnlyParts) return false;
  if (first.parts.length === 0 || content.parts.length === 0) return false;
  return !(apart && before.some((one) => one?.answers));
}

/** Undefined for what is not understood. */
function readContent(body: Uint8Array, span: Span): Content | undefined {
  const named = namedMembers(body, span);
  const list = named?.get('parts')?.value;
  if (!named || !list || !startsWith(body, list, '[')) return undefined;
  const said = stringAt(body, named.get('role')) ?? '';
  const parts = scanArray(body, list.start).elements;
  return {
    span,
    side: said === 'model' ? 'model' : 'user',
    parts,
    hasOnlyParts: [...named.keys()].every((name) => name === 'role' || name === 'parts'),
    answers: parts.some((part) => namedMembers(body, part)?.has('functionResponse')),
  };
}

function innerBytes(body: Uint8Array, { parts }: Content): Uint8Array {
  return body.subarray(parts[0]!.start, parts.at(-1)!.end);
}
