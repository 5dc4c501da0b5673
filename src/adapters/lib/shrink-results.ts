/**
 * Shortens tool results before they enter the messages of a framework, when they would fill the window. It knows the tokens of the request that a
 * call came from, if the model is wrapped by an adapter; otherwise it counts the messages. The original is stored.
 */
import { unremembered } from '../../codecs/read-body.ts';
import { textOf, textsOf } from '../../conversation/messages.ts';
import { lastUser } from '../../conversation/turns.ts';
import { type Leporello, partsOf } from '../../library/leporello.ts';
import type { Summarizer } from '../../outline/summarizer.ts';
import { conversationCounter } from '../../tokens/count-conversation.ts';
import { loadTokenCounter } from '../../tokens/load-counter.ts';
import { FALLBACK_WINDOW, loadModelInfo } from '../../tokens/models.ts';
import { requestOfCall } from './model-call.ts';
import { frameworkCodec } from './wire-body.ts';

export type ResultShrinkOptions = {
  /** The model, for its window and its tokens. Default: the model that made the call, if an adapter sent its request. */
  readonly model?: string;
  /** The window in tokens. Default: that of the model. */
  readonly windowTokens?: number;
  /** A result is shortened if the request would then fill more than this share of the window. Default 0.85. */
  readonly triggerShare?: number;
  /** The share of the window to which results are shortened. Default 0.8. */
  readonly targetShare?: number;
  /** The question that decides which items are relevant. Default: the newest message of the user. */
  readonly question?: string;
  /** Rewrites items in fewer words. Default: some of their sentences are left out. */
  readonly summarizer?: Summarizer;
  /** Milliseconds to wait for the summarizer. Default 10,000. */
  readonly waitMs?: number;
  /** The owner of the originals. Default `local`. */
  readonly tenant?: string;
};

type NewToolResult = {
  readonly callId: string;
  readonly tool: string;
  readonly result: unknown;
  /** Returns the messages so far as a body of the engine. */
  readonly body: () => Uint8Array;
};

/** Returns a function that gives a result back, or a shorter text. If shortening fails, the result stays as it is. */
export function resultShrinker(leporello: Leporello, options: ResultShrinkOptions = {}) {
  const { triggerShare = 0.85, targetShare = 0.8, tenant, summarizer, waitMs } = options;
  const { models = {} } = partsOf(leporello).options;

  async function spaceFor({ callId, body }: NewToolResult) {
    const conversation = frameworkCodec.read(body(), unremembered);
    const sent = requestOfCall(leporello, callId);
    const model = options.model ?? sent?.model;
    const counter = await loadTokenCounter(model, models);
    const { window, maxInput } = await loadModelInfo(model, models);
    const windowTokens = options.windowTokens ?? sent?.window ?? maxInput ?? window ?? FALLBACK_WINDOW;
    const used = sent?.tokens ?? conversationCounter(counter).total(conversation);
    const asked = lastUser(conversation);
    const message = asked === undefined ? undefined : conversation.messages[asked]!;
    const words = message?.parts.flatMap((part) =>
      part.type === 'text' ? textsOf(part).map((span) => textOf(conversation.body, message, span)) : [],
    );
    return { counter, windowTokens, used, results: sent?.calls ?? 1, question: words?.join('\n') ?? '' };
  }

  return async function shrink(arrived: NewToolResult): Promise<unknown> {
    const { tool, result } = arrived;
    try {
      const text = typeof result === 'string' ? result : JSON.stringify(result);
      // A text of fewer characters than this has never filled a window.
      if (text === undefined || text.length < minCharacters) return result;
      const { counter, windowTokens, used, results, question } = await spaceFor(arrived);
      if (counter.count(text) <= (triggerShare * windowTokens - used) / results) return result;
      const { text: shorter, memory } = await leporello.compressResult({
        text,
        tool,
        question: options.question ?? question,
        budget: { tokens: targetShare * windowTokens - used, results },
        ...(summarizer && { summarizer }),
        ...(waitMs !== undefined && { waitMs }),
        ...(tenant !== undefined && { tenant }),
      });
      return memory === undefined ? result : shorter;
    } catch {
      // A result is never lost because it could not be shortened: the fold before the next request makes room.
      return result;
    }
  };
}

const minCharacters = 2_000;
