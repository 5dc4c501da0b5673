/** Appends to the lists of a body without reading what is in them: messages at the end of a turn, a tool at the end of the tools. */
import type { Conversation, Span } from '../conversation/conversation.ts';
import { scanObject, skipSpace } from '../conversation/json-scan.ts';
import { applySplices, listSplices, type Splice } from '../conversation/splice.ts';
import { LeporelloError } from '../errors.ts';
import { shift } from './write-body.ts';

/** The body with messages added at the end of the array field `key`. */
export function appendMessages(body: Uint8Array, key: string, messages: readonly Uint8Array[]): Uint8Array {
  const field = scanObject(body, skipSpace(body, 0)).members.find((member) => member.key === key);
  if (!field) throw new LeporelloError('not-this-format', `The body has no '${key}' to append to.`);
  const close = field.value.end - 1;
  const last = lastElement(body, field.value);
  const splices = listSplices(
    last ? [last] : [],
    close,
    () => false,
    messages.map((bytes) => ({ before: last ? 1 : 0, bytes })),
  );
  return applySplices(body, splices);
}

/** Where the last element ends matters, not where it starts: white space before the bracket stays behind what is added. */
function lastElement(body: Uint8Array, array: Span): Span | undefined {
  let end = array.end - 1;
  while (isSpace(body[end - 1])) end--;
  return end === array.start + 1 ? undefined : { start: array.start + 1, end };
}

function isSpace(byte: number | undefined): boolean {
  return byte === 32 || byte === 10 || byte === 13 || byte === 9;
}

/** A splice that adds a tool definition behind the client's own. The conversation must offer at least one tool. */
export function appendTool(conversation: Conversation, definition: Uint8Array): Splice {
  for (const block of conversation.preamble) {
    const tools = block.parts
      .filter((part) => part.type === 'tool-definition')
      .map((part) => shift(part.span, block.span.start));
    const [splice] =
      tools.length === 0
        ? []
        : listSplices(tools, block.span.end - 1, () => false, [{ before: tools.length, bytes: definition }]);
    if (splice) return splice;
  }
  throw new LeporelloError('bad-edit', 'The recall tool was to be added to a request that offers no tools.');
}
