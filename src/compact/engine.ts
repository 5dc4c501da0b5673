/**
 * THE SPINE. One request: read it, replay the fold made on its prefix, count, ask the triggers, fold where one demands it, check,
 * keep the originals, record the fold, and only then hand over the bytes to send. Whatever fails, the original bytes go out.
 */
import { LRUCache } from 'lru-cache';
import type { Codec, Outline, Reading, RecallTool } from '../codecs/codec.ts';
import type { SeenBodies } from '../codecs/seen-bodies.ts';
import type { Conversation } from '../conversation/conversation.ts';
import type { Edit } from '../conversation/edit.ts';
import { originalsOf } from '../conversation/original.ts';
import { type Chain, prefixChain } from '../conversation/prefix.ts';
import { LeporelloError } from '../errors.ts';
import type { Ghosts } from '../memory/ghosts.ts';
import type { KeptReplies } from '../memory/kept-replies.ts';
import type { Ledger } from '../memory/ledger.ts';
import type { Vault } from '../memory/vault.ts';
import { recallToolFor } from '../recall/tool.ts';
import type { Strategy } from '../strategies/strategy.ts';
import { type Calibration, createCalibration } from '../tokens/calibration.ts';
import { createConversationCounter, createTokenMemo, type TokenMemo } from '../tokens/count-conversation.ts';
import type { TokenCounter } from '../tokens/token-counter.ts';
import { type Demand, type Economy, firstDemand, type Trigger } from '../triggers/trigger.ts';
import type { FoldStep } from '../metrics/receipt.ts';
import { correctedEconomy, correctedSteps, demandInCounts, gaugeOf } from './corrected.ts';
import { deadWeight } from './dead-weight.ts';
import { dropReasoning } from './drop-reasoning.ts';
import { withGhosts } from './ghosts.ts';
import { identityOf, tokensKept } from './identity.ts';
import { withKeptReply } from './kept-replies.ts';
import { type Prepared, unprepared } from './prepared.ts';
import { type PlanInput, planFold } from './plan.ts';
import { type Pins, protectionOf } from './protection.ts';
import { createSender, type Send, type SenderOptions } from './sender.ts';
import { type FoldMemory, leaveAlone, rememberFold, replayFold } from './replay.ts';
import { whatIsLarge } from './unfit.ts';

export type EngineOptions = SenderOptions & {
  readonly vault: Pick<Vault, 'keep' | 'idOf'>;
  readonly ledger: Ledger;
  readonly ghosts: Ghosts;
  readonly keptReplies: KeptReplies;
  /** A cryptographic digest of bytes: the identity of prefixes hangs on it. */
  readonly digest: (bytes: Uint8Array) => string;
  /** Bodies read before. Without them each is scanned and digested whole. */
  readonly seen?: SeenBodies | undefined;
  readonly triggers: readonly Trigger[];
  readonly strategies: readonly Strategy[];
  readonly counterFor: (model: string | undefined) => Promise<TokenCounter>;
  readonly windowFor: (model: string | undefined) => Promise<ModelWindow>;
  /** What prompt tokens cost relative to those that are not cached; undefined where nobody knows. Default: nobody knows. */
  readonly pricesFor?: (model: string | undefined) => Promise<Pick<Economy, 'read' | 'write'> | undefined>;
  /** What is known of how far counts are off. Default: one of its own, with the usual bounds. */
  readonly calibration?: Calibration | undefined;
  /** `observe` reckons everything and changes nothing: the report says what would have been sent. Default `fold`. */
  readonly mode?: EngineMode | undefined;
  /** Whether to offer the recall tool to requests that have tools. Default true. */
  readonly offerRecall?: boolean | undefined;
  readonly pins?: Pins | undefined;
  /** Smaller tool results (bytes, UTF-8) are never offloaded. Default 1,000. */
  readonly compressionBytesThreshold?: number | undefined;
  /** How much is remembered of blocks read before, in parts of some 200 bytes. Default 400,000. */
  readonly maxParts?: number;
};

export type EngineMode = 'fold' | 'observe';

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
  /**
   * Folds this conversation from here on only where it would not fit, for when its provider took it only without our edits. Never
   * rejects.
   */
  leaveAlone(request: EngineRequest): Promise<void>;
  /** Takes in the tokens a provider reported for a prompt that was sent without `prepare`. Never rejects. */
  learn(request: EngineRequest, reported: number): Promise<void>;
}

export type EngineRequest = {
  readonly codec: Codec;
  readonly body: Uint8Array;
  readonly tenant: string;
  /** Says that nobody waits any more: then nothing more is planned, and no fold is recorded that was not sent. Default: never. */
  readonly isTooLate?: () => boolean;
  /** Why the provider refused what was sent before for this request. */
  readonly refusal?: Refusal;
};

/** Too long: folds to so many tokens at most, whatever the triggers say. Reasoning: takes it out. */
export type Refusal =
  | { readonly reason: 'too long'; readonly atMost: number }
  | { readonly reason: 'reasoning' };

/** An engine from its parts; `createLeporello` has the usual ones. What it remembers of blocks is bounded by `maxParts`. */
export function createEngine(options: EngineOptions): Engine {
  // By size, not by count: what one block remembers grows with its parts.
  const outlines = new LRUCache<string, Outline>({
    maxSize: options.maxParts ?? 400_000,
    sizeCalculation: (outline) => 1 + outline.parts.length,
  });
  const workshop: Workshop = {
    options,
    reading: { digest: options.digest, outlines, seen: options.seen },
    counts: createTokenMemo(),
    chains: new LRUCache<string, Chain>({ maxSize: 400_000, sizeCalculation: (chain) => chain.links.length }),
    toolCosts: new Map(),
    calibration: options.calibration ?? createCalibration(),
    send: createSender(options),
  };
  return {
    async prepare(request) {
      let conversation: Conversation | undefined;
      try {
        conversation = request.codec.read(request.body, workshop.reading);
        const kept = { ...request, reading: workshop.reading, keptReplies: options.keptReplies };
        conversation = await withKeptReply(kept, conversation);
        const prepared = await compact(workshop, request, conversation);
        return options.mode === 'observe' ? observed(prepared, request, conversation) : prepared;
      } catch (error) {
        const status = isUnread(error) ? 'untouched' : 'failed';
        // Not what came where that goes on from a private call, for no provider takes it.
        const body = conversation?.body ?? request.body;
        return unprepared(body, { status, reason: reasonOf(error) }, conversation);
      }
    },
    async leaveAlone(request) {
      try {
        const conversation = request.codec.read(request.body, workshop.reading);
        // One without its history begins like many others, and no fold is ever made of it.
        if (conversation.goesOnFrom !== undefined) return;
        await leaveAlone(foldMemory(workshop, request, conversation));
      } catch {
        // Then the next refusal is met anew.
      }
    },
    async learn(request, reported) {
      try {
        const conversation = request.codec.read(request.body, workshop.reading);
        const counter = await options.counterFor(conversation.model);
        const { links } = foldMemory(workshop, request, conversation);
        const counts = createConversationCounter({ counter, memo: workshop.counts });
        gaugeOf(workshop.calibration, request.tenant, conversation, links).learn(
          counts.total(conversation),
          reported,
        );
      } catch {
        // Then it teaches nothing.
      }
    },
  };
}

/** The client's own bytes, with the report of what would have been sent. */
function observed(prepared: Prepared, { body }: EngineRequest, conversation: Conversation): Prepared {
  const { report, prompt, learn, identity } = prepared;
  return { ...unprepared(body, { status: 'observed' }, conversation), report, prompt, learn, identity };
}

/** What an engine has at hand for every request: its parts, and what it remembers of earlier ones. */
type Workshop = {
  readonly options: EngineOptions;
  readonly reading: Reading;
  readonly counts: TokenMemo;
  readonly chains: LRUCache<string, Chain>;
  readonly toolCosts: Map<string, number>;
  readonly calibration: Calibration;
  readonly send: Send;
};

async function compact(
  workshop: Workshop,
  request: EngineRequest,
  conversation: Conversation,
): Promise<Prepared> {
  const { options } = workshop;
  const tokenCounter = await options.counterFor(conversation.model);
  const window = await options.windowFor(conversation.model);
  const asCame = foldMemory(workshop, request, conversation);
  const asSent = await rehydrated(workshop, request, conversation, asCame);
  const input = planInput(workshop, request, asSent, tokenCounter);
  const memory = asSent === conversation ? asCame : foldMemory(workshop, request, asSent, 'with ghosts');
  const { start, alone } = await replayFold(input, memory);
  const gauge = gaugeOf(workshop.calibration, request.tenant, conversation, asCame.links);
  const { correction } = gauge;
  const before = input.counter.total(conversation);
  const prices = await options.pricesFor?.(conversation.model);
  const state = {
    economy:
      prices &&
      correctedEconomy({ ...prices, dead: (usedFor) => deadWeight(input, start, usedFor) }, correction),
    tokens: correction.correct(start.tokens),
    window: window.tokens,
    reserved: reservedTokens(asSent, window, input.recallTool !== undefined),
    messages: start.messages,
  };
  const { refusal } = request;
  const demand =
    refusal?.reason === 'too long' ? overflowDemand(refusal.atMost) : firstDemand(options.triggers, state);
  const planned =
    refusal?.reason === 'reasoning'
      ? dropReasoning(input, start)
      : demand && (demand.force || !alone)
        ? planFold(input, start, demandInCounts(demand, correction), options.strategies)
        : undefined;
  if (alone && !planned && start.edits.length === 0) {
    const learn = (reported: number) => gauge.learn(before, reported);
    return {
      ...unprepared(conversation.body, { status: 'untouched', reason: 'left alone' }, conversation),
      identity: identityOf(conversation, asCame.links),
      learn,
    };
  }
  const result = planned?.draft ?? start;
  if (input.isTooLate())
    throw new LeporelloError('deadline', 'Folding took longer than it may; the original goes out.');
  if (result !== start) await rememberFold(memory, asSent, start.edits, { edits: result.edits, alone });
  const { counter } = input;
  const expected = correction.correct(result.tokens);
  const draft = { ...result, tokens: expected };
  const { links } = asCame;
  const sending = workshop.send({ request, conversation, links, whole: asSent, draft, prices, alone });
  const counted = options.mode === 'observe' ? before : result.tokens;
  return {
    outcome: outcomeOf(result.edits, planned?.steps),
    body: sending.body,
    mayGoAsItCame: conversation.body === request.body,
    identity: identityOf(conversation, asCame.links),
    recallTool: input.recallTool?.name,
    original: originalFinder(asSent, result.edits),
    remember: (ghost) => options.ghosts.record(asCame.tenant, asCame.links.at(-1)!, ghost),
    keepReply: (knownAs, reply) => options.keptReplies.record(asCame.tenant, knownAs, reply),
    room:
      window.tokens === undefined
        ? undefined
        : window.tokens - reservedTokens(asSent, window, false) - expected,
    counter: tokenCounter,
    prompt: { counted, came: before, expected: correction.correct(counted) },
    learn: (reported) => gauge.learn(counted, reported),
    report: {
      model: conversation.model,
      counter: counter.name,
      window: window.tokens,
      trigger: demand?.trigger,
      replayed: start.edits.length,
      steps: correctedSteps(planned?.steps ?? [], correction),
      memories: memoriesOf(result.edits),
      ghosts: asSent === conversation ? 0 : callsOf(asSent, input.recallTool),
      tokensBefore: correction.correct(before),
      tokensAfter: expected,
      tokensKept: planned && tokensKept(start, planned.draft, counter, correction),
      bytesBefore: conversation.body.length,
      ...sending.report,
      unfit: whatIsLarge(result, counter, demand?.atMost, correction),
    },
  };
}

/** Recalls of earlier requests are put back only where the tool they were made with is offered. */
async function rehydrated(
  { options, reading }: Workshop,
  { codec }: EngineRequest,
  conversation: Conversation,
  { ledger, tenant, links }: FoldMemory,
): Promise<Conversation> {
  if (!offeredTool(options, conversation)) return conversation;
  return withGhosts({ codec, reading, ghosts: options.ghosts, ledger, tenant, links }, conversation);
}

function planInput(
  { options, reading, counts, toolCosts }: Workshop,
  { codec, tenant, isTooLate = () => false }: EngineRequest,
  conversation: Conversation,
  counter: TokenCounter,
): PlanInput {
  const recallTool = offeredTool(options, conversation);
  return {
    codec,
    reading,
    conversation,
    counter: createConversationCounter({ counter, memo: counts }),
    protects: protectionOf(conversation, options.pins ?? { tools: [], texts: [] }, recallTool?.name),
    idOf: (original) => options.vault.idOf(tenant, original),
    recallTool,
    compressionBytesThreshold: options.compressionBytesThreshold ?? 1_000,
    toolCosts,
    isTooLate,
  };
}

function foldMemory(
  workshop: Workshop,
  { codec, tenant }: EngineRequest,
  conversation: Conversation,
  kind = 'as it came',
): FoldMemory {
  const { vault, ledger, mode } = workshop.options;
  const root = `${tenant} ${codec.name}`;
  if (mode !== 'observe')
    return { vault, ledger, tenant, links: linksOf(workshop, conversation, root, kind) };
  // What is only observed was never sent: nobody who folds may find it, and there is no original to keep.
  const links = linksOf(workshop, conversation, `observed ${root}`, kind);
  return { vault: { keep: () => Promise.resolve() }, ledger, tenant, links };
}

/** Some way below what the provider takes, so that the next turn does not overflow again. */
function overflowDemand(atMost: number): Demand {
  return {
    trigger: 'overflow',
    goal: { unit: 'tokens', target: Math.floor(atMost * 0.8) },
    atMost,
    force: true,
  };
}

/** A conversation that goes on starts as it did the turn before; so does the `kind` of it that has ghost turns. */
function linksOf(
  { options, chains }: Workshop,
  conversation: Conversation,
  root: string,
  kind: string,
): readonly string[] {
  const key = [root, kind, ...conversation.messages.slice(0, 2).map((message) => message.canonical)].join(
    ' ',
  );
  const chain = prefixChain(conversation, root, options.digest, chains.get(key));
  chains.set(key, chain);
  return chain.links;
}

/** Side calls without tools (titles, routing) are not the conversation; for several replies recalls could not be answered apart. */
function offeredTool(options: EngineOptions, conversation: Conversation): RecallTool | undefined {
  const offers =
    options.offerRecall !== false && conversation.toolNames.length > 0 && conversation.replies === 1;
  return offers ? recallToolFor(conversation.toolNames) : undefined;
}

/**
 * Tokens kept free: for the reply what the client asks for, but no more than a quarter of the window, so that a fold stays possible;
 * and a twentieth for what the model may recall on the way to it.
 */
function reservedTokens(conversation: Conversation, window: ModelWindow, recalls: boolean): number {
  const size = window.tokens ?? Number.POSITIVE_INFINITY;
  const reply = window.holdsReply ? Math.min(conversation.maxOutputTokens ?? 1_024, Math.floor(size / 4)) : 0;
  return reply + (recalls ? Math.min(8_000, Math.floor(size / 20)) : 0);
}

function outcomeOf(edits: readonly Edit[], steps: readonly FoldStep[] | undefined): Prepared['outcome'] {
  if (edits.length > 0) return { status: 'compacted' };
  const refused = steps?.find((step) => step.refused !== undefined)?.refused;
  if (refused !== undefined) return { status: 'untouched', reason: refused };
  return { status: 'untouched', reason: steps ? 'nothing to fold' : 'no trigger fired' };
}

function callsOf({ messages }: Conversation, tool: RecallTool | undefined): number {
  const parts = messages.flatMap((message) => message.parts);
  return parts.filter((part) => part.type === 'tool-call' && part.name === tool?.name).length;
}

function memoriesOf(edits: readonly Edit[]): readonly string[] {
  return [...new Set(edits.flatMap((edit) => (edit.kind === 'insert-message' ? [] : (edit.memory ?? []))))];
}

function originalFinder(conversation: Conversation, edits: readonly Edit[]): Prepared['original'] {
  let originals: ReadonlyMap<string, Uint8Array> | undefined;
  return (id) => {
    originals ??= originalsOf(conversation, edits);
    return originals.get(id);
  };
}

function isUnread(error: unknown): boolean {
  return LeporelloError.isInstance(error) && error.code === 'not-this-format';
}

/** Our own errors say no content; of others only the kind is told. */
function reasonOf(error: unknown): string {
  if (LeporelloError.isInstance(error)) return `${error.code}: ${error.message}`;
  return error instanceof Error ? `unexpected ${error.name}` : 'unexpected error';
}
