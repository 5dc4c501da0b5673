/**
 * THE SPINE. One request: read it, replay the fold made on its prefix, count, ask the triggers, fold where one demands it, check,
 * keep the originals, record the fold, and only then hand over the bytes to send. Whatever fails, the original bytes go out.
 */
import { LRUCache } from 'lru-cache';
import type { Codec, Outline, Reading, RecallTool } from '../codecs/codec.ts';
import type { Conversation } from '../conversation/conversation.ts';
import { type Edit, lastMessageOf } from '../conversation/edit.ts';
import { originalsOf } from '../conversation/original.ts';
import { type Chain, prefixChain } from '../conversation/prefix.ts';
import { LeporelloError } from '../errors.ts';
import type { Ledger } from '../memory/ledger.ts';
import type { Vault } from '../memory/vault.ts';
import { recallToolFor } from '../recall/tool.ts';
import type { Strategy } from '../strategies/strategy.ts';
import {
  type ConversationCounter,
  createConversationCounter,
  createTokenMemo,
} from '../tokens/count-conversation.ts';
import type { TokenCounter } from '../tokens/token-counter.ts';
import { firstDemand, type Trigger } from '../triggers/trigger.ts';
import { newProblems } from './check.ts';
import type { FoldStep } from '../metrics/receipt.ts';
import { type Prepared, unprepared } from './prepared.ts';
import { type Draft, draft, type PlanInput, planFold } from './plan.ts';
import { keptMessages, type Pins, protectionOf } from './protection.ts';
import { whatIsLarge } from './unfit.ts';

export type EngineOptions = {
  readonly vault: Pick<Vault, 'keep' | 'idOf'>;
  readonly ledger: Ledger;
  /** A cryptographic digest of bytes: the identity of prefixes hangs on it. */
  readonly digest: (bytes: Uint8Array) => string;
  readonly triggers: readonly Trigger[];
  readonly strategies: readonly Strategy[];
  readonly counterFor: (model: string | undefined) => Promise<TokenCounter>;
  readonly windowFor: (model: string | undefined) => Promise<ModelWindow>;
  /** Whether to offer the recall tool to requests that have tools. Default true. */
  readonly offerRecall?: boolean | undefined;
  readonly pins?: Pins | undefined;
  /** Smaller tool results (bytes, UTF-8) are never offloaded. Default 1,000. */
  readonly compressionBytesThreshold?: number | undefined;
  /** What is remembered of blocks read before, in blocks. Default 20,000. */
  readonly maxOutlines?: number;
};

/** What a model takes. */
export type ModelWindow = {
  /** Tokens; undefined where nobody knows. */
  readonly tokens: number | undefined;
  /** Whether the reply comes out of the same window, so that room must be left for it. */
  readonly holdsReply: boolean;
};

export interface Engine {
  /** Never rejects: what goes wrong is the outcome `failed`, with the body as it came. */
  prepare(request: EngineRequest): Promise<Prepared>;
}

export type EngineRequest = {
  readonly codec: Codec;
  readonly body: Uint8Array;
  readonly tenant: string;
};

/** An engine from its parts; `createLeporello` has the usual ones. What it remembers of blocks is bounded by `maxOutlines`. */
export function createEngine(options: EngineOptions): Engine {
  const outlines = new LRUCache<string, Outline>({ max: options.maxOutlines ?? 20_000 });
  const reading: Reading = { digest: options.digest, outlines };
  const memo = createTokenMemo();
  const chains = new LRUCache<string, Chain>({ max: 500 });
  const toolCosts = new Map<string, number>();

  return {
    async prepare(request) {
      const { body, codec } = request;
      let conversation: Conversation;
      try {
        conversation = codec.read(body, reading);
      } catch (error) {
        const unread = LeporelloError.isInstance(error) && error.code === 'not-this-format';
        return unprepared(body, { status: unread ? 'untouched' : 'failed', reason: reasonOf(error) });
      }
      try {
        const counter = await options.counterFor(conversation.model);
        const window = await options.windowFor(conversation.model);
        return await compact(
          request,
          conversation,
          createConversationCounter({ counter, memo }),
          counter,
          window,
        );
      } catch (error) {
        return unprepared(body, { status: 'failed', reason: reasonOf(error) }, conversation);
      }
    },
  };

  async function compact(
    { codec, tenant }: EngineRequest,
    conversation: Conversation,
    conversationCounter: ConversationCounter,
    counter: TokenCounter,
    window: ModelWindow,
  ): Promise<Prepared> {
    const recallTool = offeredTool(conversation);
    const input: PlanInput = {
      codec,
      reading,
      conversation,
      counter: conversationCounter,
      protects: protectionOf(conversation, options.pins ?? { tools: [], texts: [] }, recallTool?.name),
      idOf: (original) => options.vault.idOf(tenant, original),
      recallTool,
      compressionBytesThreshold: options.compressionBytesThreshold ?? 1_000,
      toolCosts,
    };
    const links = linksOf(conversation, `${tenant} ${codec.name}`);
    const { replayed, start } = await replay(input, tenant, links);
    const demand = firstDemand(options.triggers, {
      tokens: start.tokens,
      window: window.tokens,
      reserved: reservedTokens(conversation, window),
      messages: start.messages,
    });
    const planned = demand && planFold(input, start, demand, options.strategies);
    const result = planned?.draft ?? start;
    if (planned && result !== start) await remember(tenant, conversation, links, start, result);
    const tokensBefore = conversationCounter.total(conversation);
    return {
      outcome: outcomeOf(result, planned?.steps),
      body: result.body,
      recallTool: recallTool?.name,
      original: originalFinder(conversation, result.edits),
      counter,
      report: {
        model: conversation.model,
        counter: counter.name,
        window: window.tokens,
        trigger: demand?.trigger,
        replayed,
        steps: planned?.steps ?? [],
        memories: memoriesOf(result.edits),
        tokensBefore,
        tokensAfter: result.tokens,
        bytesBefore: conversation.body.length,
        bytesAfter: result.body.length,
        unfit:
          demand?.atMost !== undefined && result.tokens > demand.atMost
            ? whatIsLarge(result.sent, conversationCounter, result.tokens, demand.atMost)
            : undefined,
      },
    };
  }

  /** A conversation that goes on starts as it did the turn before. */
  function linksOf(conversation: Conversation, root: string): readonly string[] {
    const key = [root, ...conversation.messages.slice(0, 2).map((message) => message.canonical)].join(' ');
    const chain = prefixChain(conversation, root, options.digest, chains.get(key));
    chains.set(key, chain);
    return chain.links;
  }

  function offeredTool(conversation: Conversation): RecallTool | undefined {
    const offers =
      options.offerRecall !== false && conversation.toolNames.length > 0 && conversation.replies === 1;
    return offers ? recallToolFor(conversation.toolNames) : undefined;
  }

  /** The conversation under the newest fold on its chain. A fold that no longer leads to a valid request is left out. */
  async function replay(
    input: PlanInput,
    tenant: string,
    links: readonly string[],
  ): Promise<{ replayed: number; start: Draft }> {
    const untouched = draft(input, []);
    const found = await options.ledger.find(tenant, links);
    if (!found || !isReplayable(input.conversation, found)) return { replayed: 0, start: untouched };
    const start = draft(input, found.fold.edits);
    const broken = newProblems(input.codec.rules, input.conversation, start.sent);
    return broken.length > 0 ? { replayed: 0, start: untouched } : { replayed: start.edits.length, start };
  }

  /** Originals before anything is sent; the fold after them, so that no fold ever points at nothing. */
  async function remember(
    tenant: string,
    conversation: Conversation,
    links: readonly string[],
    start: Draft,
    result: Draft,
  ): Promise<void> {
    const kept = new Set(start.edits);
    const originals = originalsOf(
      conversation,
      result.edits.filter((edit) => !kept.has(edit)),
    );
    await options.vault.keep(
      tenant,
      [...originals].map(([id, original]) => ({ id, original })),
    );
    const lastTouched = Math.max(...result.edits.map(lastMessageOf));
    await options.ledger.record(tenant, links, lastTouched + 1, result.edits);
  }
}

/**
 * A fold found by its whole chain is replayed as it is. One found by a shorter prefix (the client went back, or rewrote its newest
 * message) must not reach what is newest here.
 */
function isReplayable(
  conversation: Conversation,
  found: { fold: { length: number; edits: readonly Edit[] }; matched: number },
): boolean {
  if (found.matched >= found.fold.length) return true;
  const kept = keptMessages(conversation);
  return found.fold.edits.every((edit) => edit.kind === 'insert-message' || !kept.has(lastMessageOf(edit)));
}

/** Tokens kept free for the reply: what the client asks for, but no more than a quarter of the window, so that a fold stays possible. */
function reservedTokens(conversation: Conversation, window: ModelWindow): number {
  if (!window.holdsReply) return 0;
  return Math.min(
    conversation.maxOutputTokens ?? 1_024,
    Math.floor((window.tokens ?? Number.POSITIVE_INFINITY) / 4),
  );
}

function outcomeOf(result: Draft, steps: readonly FoldStep[] | undefined): Prepared['outcome'] {
  if (result.edits.length > 0) return { status: 'compacted' };
  const refused = steps?.find((step) => step.refused !== undefined)?.refused;
  if (refused !== undefined) return { status: 'untouched', reason: refused };
  return { status: 'untouched', reason: steps ? 'nothing to fold' : 'no trigger fired' };
}

function memoriesOf(edits: readonly Edit[]): readonly string[] {
  return [...new Set(edits.flatMap((edit) => (edit.kind === 'insert-message' ? [] : (edit.memory ?? []))))];
}

function originalFinder(
  conversation: Conversation,
  edits: readonly Edit[],
): (id: string) => Uint8Array | undefined {
  let originals: ReadonlyMap<string, Uint8Array> | undefined;
  return (id) => {
    originals ??= originalsOf(conversation, edits);
    return originals.get(id);
  };
}

/** Our own errors say no content; of others only the kind is told. */
function reasonOf(error: unknown): string {
  if (LeporelloError.isInstance(error)) return `${error.code}: ${error.message}`;
  return error instanceof Error ? `unexpected ${error.name}` : 'unexpected error';
}
