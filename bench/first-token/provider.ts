/**
 * Runs the scripted provider in its own process. It streams short texts with a pause before each text except the first, and reports on
 * request when it wrote them, in milliseconds of the clock that all processes of a machine share.
 */
import { EventEmitter } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { startFakeProvider } from '../../test/support/fake-provider/fake-provider.ts';
import type { ScriptRequest, Turn, TurnPart } from '../../test/support/fake-provider/script.ts';
import { now } from './clock.ts';
import { createThinkTimes, thinking } from './think-times.ts';

/** The times of one request and its response at the provider. */
export type Exchange = {
  /** When the provider had received and validated the request. */
  readonly asked: number;
  /** When it began to write each part. */
  readonly wrote: readonly number[];
  /** True if the request offered the recall tool. */
  readonly offered: boolean;
};

/** Texts in one response; each is one delta. */
export const texts = 10;
const pauseMs = 2;
/** About the time that a model takes to write a call. */
const callMs = 20;

/** Returns a text that occurs in no request. */
export function mark(text: number): string {
  return `word-${String(text).padStart(2, '0')} `;
}
export const markBeforeRecall = 'before ';

/** The thinking provider answers requests with this turn number or a higher one at once. */
export const quickFrom = 50_000_000;

/**
 * - `quick` answers at once.
 * - `recalling` first recalls an original that the request has a stub of.
 * - `thinking` waits before it sends anything, even its status line. Four consecutive turn numbers get the same time.
 */
export const providerKinds = ['quick', 'recalling', 'thinking'] as const;
export type ProviderKind = (typeof providerKinds)[number];

/** Messages to the provider. It answers each with the exchanges since the last one. */
export type ProviderMessage = 'take exchanges' | 'warm up' | 'measure';

/** Serves until the parent process exits. During a warm-up the quick provider writes without pauses. */
export async function serveProvider(kind: ProviderKind): Promise<void> {
  // The scripted provider adds a listener for the end of the stream in each pause.
  EventEmitter.defaultMaxListeners = 0;
  let exchanges: Exchange[] = [];
  const replyTo = replies[kind]();
  let isWarmUp = false;
  const provider = await startFakeProvider({
    script: (request) => {
      const wrote: number[] = [];
      const asked = now();
      exchanges.push({
        asked,
        wrote,
        offered: JSON.stringify(request.body['tools']).includes('"read_memory"'),
      });
      return replyTo(request, wrote, isWarmUp ? 0 : pauseMs);
    },
  });
  process.on('message', (message: ProviderMessage) => {
    if (message !== 'take exchanges') isWarmUp = message === 'warm up';
    process.send?.(exchanges);
    exchanges = [];
  });
  process.on('disconnect', () => process.exit());
  process.send?.(provider.url);
}

type ReplyTo = (request: ScriptRequest, wrote: number[], pause: number) => Turn | Promise<Turn>;

const replies: Readonly<Record<ProviderKind, () => ReplyTo>> = {
  quick: () => (_, wrote, pause) => timed(textParts, pause, wrote),
  recalling: () => (request, wrote, pause) => recallOf(request, wrote) ?? timed(textParts, pause, wrote),
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

/** Returns the turn that recalls; undefined once the recall was answered. */
function recallOf(request: ScriptRequest, wrote: number[]): Turn | undefined {
  const body = JSON.stringify(request.body);
  const [id] = /mem_[0-9a-z]{16}/.exec(body) ?? [];
  if (id === undefined || body.includes(recallId)) return undefined;
  const call: TurnPart = { type: 'tool-call', id: recallId, name: 'read_memory', arguments: { id } };
  return timed([{ type: 'text', text: markBeforeRecall }, call], callMs, wrote);
}

const recallId = 'call_recall';

/** Returns a turn that records when each part is written: the fake provider reads `pauseBeforePart` just before it writes the part. */
function timed(parts: readonly TurnPart[], ms: number, wrote: number[]): Turn {
  const pauses: Record<number, Promise<void>> = {};
  for (const part of parts.keys()) {
    Object.defineProperty(pauses, part, {
      get: async () => {
        if (part > 0 && ms > 0) await sleep(ms);
        wrote[part] = now();
      },
    });
  }
  return { type: 'turn', parts, pauseBeforePart: pauses };
}
