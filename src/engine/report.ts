/** Builds what the engine returns for a request, and the report for its receipt. Pure. */
import type { RecallTool } from '../codecs/codec.ts';
import type { Conversation } from '../conversation/conversation.ts';
import type { Edit } from '../conversation/edit.ts';
import { originalIdsOf, originalsOf } from '../conversation/original.ts';
import { beginningOf, compressionsOf, correctedSteps, reservedTokens } from './demand.ts';
import { type OpenedRequest, windowKey } from './history.ts';
import type { Draft, Planned } from './plan.ts';
import type { Sending } from './send.ts';
import type { EngineState } from './state.ts';
import { type EngineRequest, type Identity, type Prepared, type SummaryJob, passThrough } from './types.ts';
import type { FoldReport, FoldStep } from '../receipts/receipt.ts';
import type { Correction } from '../tokens/calibration.ts';
import type { ConversationCounter } from '../tokens/count-conversation.ts';
import type { Demand } from '../triggers/trigger.ts';

/** All that is known of a request when it is sent. */
export type SentResult = {
  /** As the client sent it. */
  readonly conversation: Conversation;
  readonly opened: OpenedRequest;
  readonly demand: Demand | undefined;
  readonly planned: Planned | undefined;
  readonly result: Draft;
  readonly sending: Sending;
  /** Edits that were not sent before. */
  readonly newEdits: readonly Edit[];
  readonly known: Promise<void>;
  /** A failure in spite of which the request is sent, in words without content. */
  readonly problem: string | undefined;
  readonly summary: SummaryJob | undefined;
};

/** Builds what the caller of the engine gets. */
export function preparedFrom(engine: EngineState, request: EngineRequest, sent: SentResult): Prepared {
  const { conversation, opened, planned, result, sending, known, problem, summary } = sent;
  const { fullConversation, memory, calibrator, window, before, input } = opened;
  const { links } = memory;
  const { hiddenRecalls, keptReplies, mode } = engine.options;
  const edits = [...result.edits, ...result.shrinks];
  const expected = calibrator.correction.correct(result.tokens);
  const counted = mode === 'observe' ? before : result.tokens;
  return {
    outcome:
      problem !== undefined && edits.length === 0
        ? { status: 'failed', reason: problem }
        : outcomeOf(edits, planned?.steps),
    problem,
    body: sending.body,
    maySendClientBody: conversation.body === request.body,
    identity: identityOf(conversation, links),
    recallTool: result.offers ? input.recallTool?.name : undefined,
    original: originalFinder(fullConversation, edits),
    searched: searchedOf(result.edits, result.shrinks),
    remember: (hiddenRecall) => hiddenRecalls.record(request.tenant, links.at(-1)!, hiddenRecall),
    keepReply: (knownAs, reply) => keptReplies.record(request.tenant, knownAs, reply),
    room:
      window.tokens === undefined
        ? undefined
        : window.tokens - reservedTokens(fullConversation, window, false) - expected,
    counter: opened.tokenCounter,
    prompt: { counted, original: before, expected: calibrator.correction.correct(counted) },
    known,
    reportPromptTokens(reported) {
      calibrator.learn(counted, reported);
      engine.windows.accepted(windowKey(request, conversation), reported);
    },
    summary,
    report: { ...foldReport(sent), ...sending.report },
  };
}

/** Returns a request whose conversation is not folded, because its provider refused our edits. */
export function withoutFolding(
  conversation: Conversation,
  { memory, calibrator, before }: OpenedRequest,
): Prepared {
  return {
    ...passThrough(conversation.body, { status: 'untouched', reason: 'left alone' }, conversation),
    identity: identityOf(conversation, memory.links),
    reportPromptTokens: (reported) => calibrator.learn(before, reported),
  };
}

function foldReport({
  conversation,
  opened,
  demand,
  planned,
  result,
  newEdits,
}: SentResult): Omit<FoldReport, keyof Sending['report']> {
  const { fullConversation, input, start, calibrator, window, before, wasOffered } = opened;
  const { correction } = calibrator;
  const { counter, recallTool } = input;
  // The tool definition precedes all messages, so adding it rewrites everything.
  const isToolNew = result.offers && (!start.offers || wasOffered === false);
  return {
    model: conversation.model,
    counter: counter.name,
    window: window.tokens,
    trigger: demand?.trigger,
    replayed: start.edits.length,
    steps: correctedSteps(planned?.steps ?? [], correction),
    compressions: compressionsOf(newEdits, input, correction),
    shrunk: result.shrinks.length,
    memories: originalIdsOf([...result.edits, ...result.shrinks]),
    hiddenRecalls: fullConversation === conversation ? 0 : callsOf(fullConversation, recallTool),
    tokensBefore: correction.correct(before),
    tokensAfter: correction.correct(result.tokens),
    tokensKept: isToolNew ? 0 : planned && tokensKept(start, planned.draft, counter, correction),
    bytesBefore: conversation.body.length,
    unfit: whatIsLarge(result, counter, demand?.atMost, correction),
  };
}

// The outcome.

export function outcomeOf(
  edits: readonly Edit[],
  steps: readonly FoldStep[] | undefined,
): Prepared['outcome'] {
  if (edits.length > 0) return { status: 'compacted' };
  const refused = steps?.find((step) => step.refused !== undefined)?.refused;
  if (refused !== undefined) return { status: 'untouched', reason: refused };
  return { status: 'untouched', reason: steps ? 'nothing to fold' : 'no trigger fired' };
}

export function callsOf({ messages }: Conversation, tool: RecallTool | undefined): number {
  const parts = messages.flatMap((message) => message.parts);
  return parts.filter((part) => part.type === 'tool-call' && part.name === tool?.name).length;
}

/** What a search looks through: what was folded last first, what was only made smaller last, and nothing that went again with its message. */
export function searchedOf(folds: readonly Edit[], shrinks: readonly Edit[]): readonly string[] {
  const gone = new Set(
    folds.flatMap((edit) =>
      edit.kind === 'drop-message' && edit.memory !== undefined ? [edit.message] : [],
    ),
  );
  const wentAgain = (edit: Edit) =>
    (edit.kind === 'replace-text' && gone.has(edit.at.message)) ||
    (edit.kind === 'replace-input' && gone.has(edit.message));
  return originalIdsOf([...shrinks, ...folds].filter((edit) => !wentAgain(edit))).toReversed();
}

export function originalFinder(conversation: Conversation, edits: readonly Edit[]): Prepared['original'] {
  let originals: ReadonlyMap<string, Uint8Array> | undefined;
  return (id) => {
    originals ??= originalsOf(conversation, edits);
    return originals.get(id);
  };
}

// The identity of a conversation, and the tokens that a fold leaves in the provider's cache.

/** `links` are those of the prefix chain of the conversation as the client sent it. */
export function identityOf(conversation: Conversation, links: readonly string[]): Identity {
  const { previousReplyId, sessionKey } = conversation;
  const beginning = beginningOf(conversation, links);
  return {
    links: previousReplyId === undefined ? links : [],
    // The first link stands for no message: all conversations of a tenant share it.
    beginning: beginning === links[0] ? undefined : beginning,
    session: sessionKey,
  };
}

/** Tokens ahead of the first message that a fold changed: system, tools and what stays as it was. Undefined when it changed none. */
export function tokensKept(
  before: Draft,
  after: Draft,
  counter: ConversationCounter,
  { correct }: Correction,
): number | undefined {
  if (after === before) return undefined;
  const { messages } = after.sent;
  const first = messages.findIndex(
    ({ canonical }, index) => canonical !== before.sent.messages[index]?.canonical,
  );
  const rewritten = first < 0 ? [] : messages.slice(first);
  return correct(
    rewritten.reduce((left, { index }) => left - counter.message(after.sent, index), after.tokens),
  );
}

// Requests that no legal fold brings under the window. Names places, never content.

/** For example: "41,200 tokens stay, 32,000 fit: message 0 (system) 30,100, tools 9,000." Undefined for what fits. */
export function whatIsLarge(
  { sent, tokens }: Draft,
  counter: ConversationCounter,
  atMost: number | undefined,
  { correct }: Correction,
): string | undefined {
  const needed = correct(tokens);
  if (atMost === undefined || needed <= atMost) return undefined;
  // Of what a count leaves out nobody knows where it stands: each part is told with its share of it.
  const share = (counted: number): number => Math.round((counted * needed) / tokens);
  const blocks = sent.preamble.map((block) => ({
    what: block.parts[0]?.type === 'tool-definition' ? 'tools' : 'system',
    size: counter.block(sent, block),
  }));
  const messages = sent.messages.map((message) => ({
    what: `message ${message.index} (${message.role})`,
    size: counter.message(sent, message.index),
  }));
  const largest = [...blocks, ...messages].toSorted((a, b) => b.size - a.size).slice(0, 3);
  const named = largest.map(({ what, size }) => `${what} ${share(size)}`).join(', ');
  return `${needed} tokens stay, ${atMost} fit: ${named}.`;
}
