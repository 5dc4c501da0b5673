/**
 * The scripted provider in a process of its own. It streams short texts with a pause before each but the first, and tells on request when
 * it wrote them, by the clock that all processes of a machine share.
 */
import { EventEmitter } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { startFakeProvider } from '../../src/testing/fake-provider/fake-provider.ts';
import type { ScriptRequest, Turn, TurnPart } from '../../src/testing/fake-provider/script.ts';
import { now } from './clock.ts';

/** One request and its answer, as the provider saw them. */
export type Told = {
  /** When the request had come whole and was found valid. */
  readonly asked: number;
  /** Just before the first event of each part was written. */
  readonly wrote: readonly number[];
  /** Whether the request offered the recall tool. */
  readonly offered: boolean;
};

/** Texts in one answer; each is one delta. */
export const texts = 20;
const pauseMs = 2;
/** About what a model takes to write a call. */
const callMs = 20;

/** Marks that stand in no request. */
export function mark(text: number): string {
  return `word-${String(text).padStart(2, '0')} `;
}
export const markBeforeRecall = 'before ';

/** Serves until the parent goes. With `recalls` it first reads a memory that the request has a stub of. */
export async function serveProvider(recalls: boolean): Promise<void> {
  // In each pause of a stream the scripted provider listens anew for its end.
  EventEmitter.defaultMaxListeners = 0;
  let told: Told[] = [];
  const provider = await startFakeProvider({
    script: (request) => {
      const wrote: number[] = [];
      const asked = now();
      told.push({ asked, wrote, offered: JSON.stringify(request.body['tools']).includes('"read_memory"') });
      return (recalls ? recallOf(request, wrote) : undefined) ?? timed(textParts, pauseMs, wrote);
    },
  });
  process.on('message', () => {
    process.send?.(told);
    told = [];
  });
  process.on('disconnect', () => process.exit());
  process.send?.(provider.url);
}

const textParts: readonly TurnPart[] = Array.from({ length: texts }, (_, text) => ({
  type: 'text',
  text: mark(text),
}));

/** Undefined once the recall was answered. */
function recallOf(request: ScriptRequest, wrote: number[]): Turn | undefined {
  const body = JSON.stringify(request.body);
  const [id] = /mem_[0-9a-z]{16}/.exec(body) ?? [];
  if (id === undefined || body.includes(recallId)) return undefined;
  const call: TurnPart = { type: 'tool-call', id: recallId, name: 'read_memory', arguments: { id } };
  return timed([{ type: 'text', text: markBeforeRecall }, call], callMs, wrote);
}

const recallId = 'call_recall';

/** The pause before a part is asked for when its turn has come: that is how we know when. */
function timed(parts: readonly TurnPart[], ms: number, wrote: number[]): Turn {
  const pauses: Record<number, Promise<void>> = {};
  for (const part of parts.keys()) {
    Object.defineProperty(pauses, part, {
      get: async () => {
        if (part > 0) await sleep(ms);
        wrote[part] = now();
      },
    });
  }
  return { type: 'turn', parts, pauseBeforePart: pauses };
}
