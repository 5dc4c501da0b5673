/**
 * The determinism guard: what is sent must begin with all that was sent before, but for folds. It only looks, and reports; the digests of
 * two requests are all it needs.
 */
import { lastMessageOf } from '../conversation/edit.ts';
import { leavesOriginals } from '../conversation/original.ts';
import { commonMessages, type SentRequest } from './last-sent.ts';
import type { Draft } from './plan.ts';

type Sent = Pick<SentRequest, 'messages' | 'preamble' | 'offers'>;

/**
 * The first message sent otherwise than in the request before, though the client's own are the same; undefined where there is none, or
 * where a fold explains it: one made now or, by another gateway, in between. A fold only ever adds edits to those there are. One right
 * behind the messages explains it, too: some formats make one content of two that it made neighbours. 0 where the recall tool went, or
 * came with nothing to recall: it stands ahead of all messages.
 */
export function unstableFrom(
  last: SentRequest,
  now: Sent,
  { edits, shrinks }: Pick<Draft, 'edits' | 'shrinks'>,
): number | undefined {
  const isNeeded = () => leavesOriginals(edits) || leavesOriginals(shrinks);
  // Where the client changed its tools or its model, all is written anew anyway.
  const isFlipped = last.offers !== now.offers && last.preamble === now.preamble;
  if (isFlipped && !(now.offers && isNeeded())) return 0;
  const common = commonMessages(last.messages, now.messages);
  if (common === last.messages.length) return undefined;
  const onThem = edits.filter((edit) => lastMessageOf(edit) <= last.length).length;
  return onThem > last.edits ? undefined : common;
}
