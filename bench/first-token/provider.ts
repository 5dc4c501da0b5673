/**
 * The scripted provider in a process of its own. It streams short texts with a pause before each but the first, and tells on request when
 * it wrote them, by the clock that all processes of a machine share.
 */
import { EventEmitter } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { startFakeProvider } from '../../test/support/fake-provider/fake-provider.ts';
import type { ScriptRequest, Turn, TurnPart } from '../../test/support/fake-provider/script.ts';
import { now } from './clock.ts';
import { createThinkTimes, thinking } from './think-times.ts';

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

/** The turn number of a request from which on the thinking provider answers at once. */
export const quickFrom = 50_000_000;

/**
 * - `quick` answers at once.
 * - `recalling` first reads a memory that the request has a stub of.
 * - `thinking` takes its time before it says anything, its status line too; four turn numbers in a row get the same time.
 */
export const providerKinds = ['quick', 'recalling', 'thinking'] as const;
export type ProviderKind = (typeof providerKinds)[number];

/** Serves until the parent goes. */
export async function serveProvider(kind: ProviderKind): Promise<void> {
  // In each pause of a stream the scripted provider listens anew for its end.
  EventEmitter.defaultMaxListeners = 0;
  let told: Told[] = [];
  const replyTo = replies[kind]();
  const provider = await startFakeProvider({
    script: (request) => {
      const wrote: number[] = [];
      const asked = now();
      told.push({ asked, wrote, offered: JSON.stringify(request.body['tools']).includes('"read_memory"') });
      return replyTo(request, wrote);
    },
  });
  process.on('message', () => {
    process.send?.(told);
    told = [];
  });
  process.on('disconnect', () => process.exit());
  process.send?.(provider.url);
}

type ReplyTo = (request: ScriptRequest, wrote: number[]) => Turn | Promise<Turn>;

const replies: Readonly<Record<ProviderKind, () => ReplyTo>> = {
  quick: () => (_, wrote) => timed(textParts, pauseMs, wrote),
  recalling: () => (request, wrote) => recallOf(request, wrote) ?? timed(textParts, pauseMs, wrote),
  thinking: () => {
    const thinkTime = createThinkTimes(thinking);
    return async ({ body }) => {
      const number = Number(/Go on with (\d{8})/.exec(JSON.stringify(body))?.[1]);
      if (number < quickFrom) await sleep(thinkTime(Math.floor(number / 4)));
      return { type: 'turn', parts: textParts.slice(0, 1) };
    };
  },
};

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
