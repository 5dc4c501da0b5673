/**
 * Rebuilds the content of one streamed reply, so that it can be sent back in a continuation. Text that came in pieces is joined; every
 * part with more than text keeps its bytes: "don't merge one part with a signature with another".
 */
import { jsonBytes } from '../../conversation/splice.ts';
import { isRecord } from '../../conversation/arguments.ts';
import { jsonList, withMembers } from '../event-json.ts';
import { type PartBytes, saidIn } from './reply-parts.ts';

export interface ContentRecorder {
  add(parts: readonly PartBytes[]): void;
  /** The content as JSON bytes. */
  turn(): Uint8Array;
}

export function recordContent(): ContentRecorder {
  const done: Uint8Array[] = [];
  let open: { text: string; readonly isThought: boolean } | undefined;
  const close = () => {
    if (open && open.text !== '')
      done.push(jsonBytes({ text: open.text, ...(open.isThought ? { thought: true } : {}) }));
    open = undefined;
  };
  return {
    add(parts) {
      for (const { bytes, value } of parts) {
        const piece = isPlain(value) ? saidIn(value) : undefined;
        if (piece?.text === '') continue;
        if (!piece || piece.isThought !== open?.isThought) close();
        if (!piece) done.push(bytes);
        else open = { text: (open?.text ?? '') + piece.text, isThought: piece.isThought };
      }
    },
    turn() {
      close();
      return withMembers(jsonBytes({ role: 'model' }), { parts: jsonList(done) });
    },
  };
}

/** Text or thought, and nothing beside. */
function isPlain(value: unknown): boolean {
  return isRecord(value) && Object.keys(value).every((key) => key === 'text' || key === 'thought');
}
