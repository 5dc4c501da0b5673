/** A summary that was written ahead of its fold: whether it is of what goes now, and whose words the summary made with it has. Pure. */
import type { Message } from '../conversation/conversation.ts';
import type { Compression } from '../receipts/compression.ts';
import { proseOf } from '../outline/read-body.ts';
import type { FoldView } from './strategy.ts';

export type WrittenAhead =
  /** With the messages that go beside those it is of. */
  | { readonly body: string; readonly rest: readonly Message[] }
  /** Why there is none where one was to be written. */
  | { readonly body: undefined; readonly problem: string | undefined };

export function writtenAhead({ ready, notReady }: FoldView, dropped: readonly Message[]): WrittenAhead {
  if (!ready) return { body: undefined, problem: notReady?.() };
  const rest = dropped.filter(({ index }) => index < ready.from || index >= ready.upTo);
  const covered = dropped.length - rest.length;
  if (covered * 2 >= ready.upTo - ready.from) return { body: ready.body, rest };
  // Of what was folded before; or of more than goes now.
  const problem = covered === 0 ? notReady?.() : 'the summary that was ready is of more than goes now';
  return { body: undefined, problem };
}

/** Where there is little room, what the user demanded may have left none to what was written ahead. */
export function wordsOf(ahead: WrittenAhead, body: string): Pick<Compression, 'by' | 'problem'> {
  if (ahead.body === undefined) return { by: 'extractive', problem: ahead.problem };
  const prose = proseOf(ahead.body);
  const stands = new Set(proseOf(body));
  if (prose.length > 0 && !prose.some((line) => stands.has(line)))
    return { by: 'extractive', problem: 'no room was left for the words that were ready' };
  return { by: ahead.rest.length === 0 ? 'summarizer' : 'both', problem: undefined };
}
