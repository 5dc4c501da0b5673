/**
 * Shares what engines learn from requests and reports between threads, so that a conversation that grows from one thread into another keeps its
 * cache marks and its calibration. The main thread has all of it. A thread takes over what concerns a request before it decides, and tells
 * the main thread at once what it learns itself.
 */
import { packedRequest } from '../../engine/finish.ts';
import type { Learned, LearnedKeys, PackedRequest } from '../../engine/types.ts';
import type { CountReport, KnownCalibration, WindowKey } from '../../tokens/calibration.ts';
import type { Remote } from './calls.ts';

/** Functions of the main thread. */
export type LearnedFunctions = ReturnType<typeof offerLearned>;

/** Hashes that are asked for at most: those of the newest messages. One turn of a client seldom adds more. */
const maxLinks = 500;

/** Returns the functions that give other threads what the main thread has learned, and take what they learn. */
export function offerLearned({ calibration, windows, lastSent }: Learned) {
  return {
    learnedFor({ tokens: { model, conversation }, window, links }: LearnedKeys): LearnedData {
      return {
        tokens: calibration.known(model, conversation),
        limit: windows.find(window),
        sent: lastSent.packed(links),
      };
    },
    learnTokens: (model: string, conversation: string | undefined, report: CountReport): void =>
      calibration.learn(model, conversation, report),
    learnWindow: (key: WindowKey, limit: number): void => windows.learn(key, limit),
    acceptedPrompt: (key: WindowKey, prompt: number): void => windows.accepted(key, prompt),
    learnSent: (sent: PackedRequest, replaced: string | undefined): void => lastSent.adopt(sent, replaced),
  };
}

type LearnedData = {
  readonly tokens: KnownCalibration;
  readonly limit: number | undefined;
  readonly sent: PackedRequest | undefined;
};

/** Returns what a thread has learned, shared with the main thread. While that does not answer, the thread uses what it has itself. */
export function sharedLearned(own: Learned, parent: () => Remote<LearnedFunctions>): Learned {
  const { calibration, windows, lastSent } = own;
  return {
    calibration: {
      ...calibration,
      learn(model, conversation, report) {
        calibration.learn(model, conversation, report);
        told(parent().learnTokens(model, conversation, report));
      },
    },
    windows: {
      ...windows,
      learn(key, limit) {
        windows.learn(key, limit);
        told(parent().learnWindow(key, limit));
      },
      accepted(key, prompt) {
        windows.accepted(key, prompt);
        told(parent().acceptedPrompt(key, prompt));
      },
    },
    lastSent: {
      ...lastSent,
      record(links, request, found) {
        lastSent.record(links, request, found);
        told(parent().learnSent(packedRequest(links.at(-1)!, request), found && links[found.matched]));
      },
    },
    async load(keys) {
      const { tokens, window, links } = keys;
      // The main thread has every request that this thread has, so only a longer one is asked for.
      const newer = links.slice((lastSent.find(links)?.matched ?? 0) + 1).slice(-maxLinks);
      try {
        const learned = await parent().learnedFor({ ...keys, links: newer });
        calibration.adopt(tokens.model, tokens.conversation, learned.tokens);
        windows.adopt(window, learned.limit);
        if (learned.sent) lastSent.adopt(learned.sent);
      } catch {
        // The request is prepared with what this thread has learned itself.
      }
    },
  };
}

/** Ignores a call that fails: the main thread then knows less. */
function told(call: Promise<void>): void {
  void call.catch(() => undefined);
}
