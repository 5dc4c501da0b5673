/** How a codec with a list of messages and a list of tools writes: what only it knows is how it spells them. */
import { applySplices } from '../conversation/splice.ts';
import { appendTool } from './append.ts';
import type { Codec, RecallTool } from './codec.ts';
import { type MessageWriter, messageSplices } from './write-body.ts';

/** The `write` of such a codec: edits and the recall tool spliced in, every other byte as it came. */
export function bodyWriter(
  writer: MessageWriter,
  toolDefinition: (tool: RecallTool) => Uint8Array,
): Codec['write'] {
  return function write(conversation, edits, extra = {}) {
    const splices = [...messageSplices(conversation, edits, writer)];
    if (extra.recallTool) splices.push(appendTool(conversation, toolDefinition(extra.recallTool)));
    return applySplices(conversation.body, splices);
  };
}
