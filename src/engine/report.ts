/** Builds the result of the engine for a request, and the report for its receipt. Pure. */
import { newlyFetched } from './at-work.ts';
import type { Codec, RecallTool } from '../codecs/codec.ts';
import { readBeginning } from '../codecs/read-beginning.ts';
import { unremembered } from '../codecs/read-body.ts';
import type { Block, Conversation, KeptReply, Message } from '../conversation/conversation.ts';
import { type Edit, originalIdsOf, originalsOf } from '../conversation/edit.ts';
import { mediaOf } from '../conversation/messages.ts';
import { LeporelloError } from '../errors.ts';
import type { FoldedMedia } from '../recall/tool.ts';
import { beginningOf, compressionsOf, correctedSteps, reservedTokens } from './demand.ts';
import { type OpenedRequest, inTime } from './history.ts';
import type { Draft, FoldPlan } from './plan.ts';
import { isUndone } from './protect.ts';
import type { FinishedBody } from './finish.ts';
import { detailOf } from './inspect.ts';
import { stayedIn } from './shrinks.ts';
import { type EngineState, clientLinksOf, windowKey } from './state.ts';
import {
  type EngineRequest,
  type Identity,
  type PreparedRequest,
  type SummaryJob,
  type UnfoldedOutcome,
  passThrough,
} from './types.ts';
import type { FoldReport, FoldStep } from '../receipts/receipt.ts';
import type { Correction } from '../tokens/calibration.ts';
import type { ConversationCounter } from '../tokens/count-conversation.ts';
import { type OriginalTitle, titlesOf } from '../recall/read-original.ts';
import { strategiesOf, withoutDropped } from '../strategies/lib/editable-texts.ts';
import type { Demand } from '../triggers/trigger.ts';

/** A plan; `heldBack` is the fold that is compared instead of being sent. */
type HeldPlan = FoldPlan & { readonly heldBack?: FoldPlan | undefined };

/** Everything that the report of a request is built from. */
type ReportInput = {
  /** The client's conversation, with the provider's name for the reply that it continues. */
  readonly conversation: Conversation;
  readonly opened: OpenedRequest;
  readonly demand: Demand | undefined;
  readonly planned: HeldPlan | undefined;
  readonly planTime: PreparedRequest['planTime'];
  readonly result: Draft;
  readonly finished: FinishedBody;
  /** Edits that were not sent before. */
  readonly newEdits: readonly Edit[];
  /** See `PreparedRequest`. */
  readonly known: Promise<void>;
  /** Describes, without content, a failure despite which the request is sent. */
  readonly problem: string | undefined;
  readonly summary: SummaryJob | undefined;
  readonly trial: PreparedRequest['trial'];
};

/** Builds the result for the caller of the engine. */
export function preparedFrom(
  engine: EngineState,
  request: EngineRequest,
  sent: ReportInput,
): PreparedRequest {
  const { conversation, opened, planned, result, finished, known, problem, summary, trial } = sent;
  const { fullConversation, memory, calibrator, window, before, input } = opened;
  const { hiddenRecalls, keptReplies, mode } = engine.options;
  const edits = [...result.edits, ...result.shrinks];
  const expected = calibrator.correction.correct(result.tokens);
  const counted = mode === 'observe' ? before : result.tokens;
  return {
    outcome:
      problem !== undefined && edits.length === 0
        ? { status: 'failed', reason: problem }
        : outcomeOf(edits, planned?.steps, sent.demand && !trial?.isControl),
    problem,
    planTime: planned && sent.planTime,
    conversation,
    trial,
    body: finished.body,
    maySendClientBody: conversation.body === request.body,
    identity: identityOf(conversation, memory.clientLinks),
    recallTool: result.offers ? input.recallTool?.name : undefined,
    notesTool: result.offers ? input.recallTool?.notes?.name : undefined,
    wantsJson: conversation.wantsJson,
    original: originalFinder(fullConversation, edits),
    titleOf: titleFinder(fullConversation, edits),
    searched: () => searchIdsOf(result.edits, result.shrinks),
    media: foldedMediaOf(fullConversation, result.edits, input.counter),
    remember: (recall) => hiddenRecalls.record(request.tenant, memory.clientLinks.at(-1)!, recall),
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
      engine.learned.windows.accepted(windowKey(request, conversation), reported);
    },
    summary,
    heldBack: heldBackOf(engine, request, sent),
    detail: () => detailOf(sent),
    report: {
      ...foldReport(sent),
      ...finished.report,
      ...(request.held && { strategies: strategiesOf(result.edits, result.shrinks) }),
    },
  };
}

/** Prepares the request with the fold that was held back, to compare it. */
function heldBackOf(
  engine: EngineState,
  request: EngineRequest,
  sent: ReportInput,
): PreparedRequest['heldBack'] {
  const planned = sent.planned?.heldBack;
  if (!planned) return undefined;
  const { draft: result } = planned;
  const report = { ...sent.finished.report, bytesAfter: result.body.length };
  const held = { ...sent, planned, result, finished: { body: result.body, report }, newEdits: [] };
  const strategies = strategiesOf(result.edits, result.shrinks);
  return { strategies, prepared: () => preparedFrom(engine, request, held) };
}

/** Builds the result for a conversation that is not folded because its provider refused our edits. */
export function withoutFolding(
  conversation: Conversation,
  { memory, calibrator, before, found }: OpenedRequest,
): PreparedRequest {
  return {
    ...passThrough(
      conversation.body,
      {
        status: 'untouched',
        reason: isUndone(found) ? 'its folds were undone by the user' : 'folding is disabled after a refusal',
      },
      conversation,
    ),
    identity: identityOf(conversation, memory.clientLinks),
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
  trial,
}: ReportInput): Omit<FoldReport, keyof FinishedBody['report']> {
  const { fullConversation, input, start, calibrator, window, before, wasOffered } = opened;
  const { correction } = calibrator;
  const { counter, recallTool } = input;
  // Tools precede all messages, so adding the recall tool rewrites the whole prompt.
  const isToolNew = result.offers && (!start.offers || wasOffered === false);
  return {
    model: conversation.model,
    counter: counter.name,
    window: window.tokens,
    trigger: demand?.trigger,
    ...(demand && result !== start && { goal: demand.goal, stayed: stayedIn(opened, demand, result) }),
    replayed: start.edits.length,
    ...(start.edits.length > 0 && { fold: opened.found?.fold.id }),
    steps: correctedSteps(planned?.steps ?? [], correction),
    compressions: compressionsOf(newEdits, input, correction),
    shrunk: result.shrinks.length,
    memories: originalIdsOf([...result.edits, ...result.shrinks]),
    hiddenRecalls: fullConversation === conversation ? 0 : countCalls(fullConversation, recallTool),
    tokensBefore: correction.correct(before),
    tokensAfter: correction.correct(result.tokens),
    tokensKept: isToolNew ? 0 : planned && tokensKept(start, planned.draft, counter, correction),
    bytesBefore: conversation.body.length,
    ...(trial && { experiment: trial.isControl ? 'control' : 'folded' }),
    ...(input.fetchedAgain && newlyFetched(fullConversation, input, opened.found?.fold.id)),
    unfit: describeOversize(result, counter, demand?.atMost, correction),
  };
}

// Parts of the result.

function outcomeOf(
  edits: readonly Edit[],
  steps: readonly FoldStep[] | undefined,
  isWanted: boolean | undefined,
): PreparedRequest['outcome'] {
  if (edits.length > 0) return { status: 'compacted' };
  const refused = steps?.find((step) => step.refused !== undefined)?.refused;
  if (refused !== undefined) return { status: 'untouched', reason: refused };
  const noRecall = 'nothing could be recalled: the request has no tools, or asks for several replies';
  const reason = steps ? 'nothing to fold' : isWanted ? noRecall : 'no trigger fired';
  return { status: 'untouched', reason };
}

function countCalls({ messages }: Conversation, tool: RecallTool | undefined): number {
  const parts = messages.flatMap((message) => message.parts);
  return parts.filter((part) => part.type === 'tool-call' && part.name === tool?.name).length;
}

/** Returns the ids that a recall without an id searches: the newest folds first, shrinks last, and none whose message was dropped later. */
export function searchIdsOf(folds: readonly Edit[], shrinks: readonly Edit[]): readonly string[] {
  const kept = withoutDropped([...shrinks, ...folds]);
  return originalIdsOf(kept.filter(({ kind }) => kind !== 'replace-media')).toReversed();
}

/** Returns the images, documents and sounds that these edits replace, by id. */
function foldedMediaOf(
  conversation: Conversation,
  edits: readonly Edit[],
  counter: ConversationCounter,
): PreparedRequest['media'] {
  const found = new Map<string, FoldedMedia>();
  for (const edit of edits) {
    if (edit.kind !== 'replace-media') continue;
    const message = conversation.messages[edit.message]!;
    const part = message.parts[edit.part]!;
    const media = mediaOf(part)[edit.media]!;
    const name = media.kind === 'other' ? 'file' : media.kind;
    const tokens = counter.media(conversation, message, media);
    found.set(edit.memory, { name, tokens, inResult: part.type === 'tool-result' });
  }
  return found;
}

/** Finds originals of this request by id. They are read from the conversation on the first call. */
function originalFinder(conversation: Conversation, edits: readonly Edit[]): PreparedRequest['original'] {
  let originals: ReadonlyMap<string, Uint8Array> | undefined;
  return (id) => {
    originals ??= originalsOf(conversation, edits);
    return originals.get(id);
  };
}

/** Finds the titles of originals. They are made on the first call. */
function titleFinder(conversation: Conversation, edits: readonly Edit[]): PreparedRequest['titleOf'] {
  let titles: ReadonlyMap<string, OriginalTitle> | undefined;
  return (id) => {
    titles ??= titlesOf(conversation, edits);
    return titles.get(id);
  };
}

// The identity of a conversation, and the tokens of its prompt that a fold leaves in the provider's cache.

/** Identifies a conversation by the prefix hashes of the client's messages. */
function identityOf(conversation: Conversation, clientLinks: readonly string[]): Identity {
  const { previousReplyId, sessionKey } = conversation;
  const beginning = beginningOf(conversation, clientLinks);
  return {
    links: previousReplyId === undefined ? clientLinks : [],
    // The first hash covers no message: all conversations of a tenant share it.
    beginning: beginning === clientLinks[0] ? undefined : beginning,
    session: sessionKey,
  };
}

/** Returns the tokens in front of the first message that a fold changed: system, tools and unchanged messages. Undefined without a fold. */
function tokensKept(
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

// Requests that no valid fold brings under the window. The description names places, never content.

/** Describes a request that is too large, for example "41200 tokens remain, 32000 fit: message 0 (system) 30100, tools 9000." Undefined when it fits. */
function describeOversize(
  { sent, tokens }: Draft,
  counter: ConversationCounter,
  atMost: number | undefined,
  { correct }: Correction,
): string | undefined {
  const needed = correct(tokens);
  if (atMost === undefined || needed <= atMost) return undefined;
  // The calibrated total differs from the count, so each part is shown with its share of that total.
  const share = (counted: number): number => Math.round((counted * needed) / tokens);
  const blocks = sent.preamble.map((block) => ({ block, size: counter.block(sent, block) }));
  let largest: { readonly block: Block | Message; readonly size: number }[] = largestOf(blocks);
  for (const message of sent.messages) {
    const size = counter.message(sent, message.index);
    if (largest.length === namedBlocks && size <= largest.at(-1)!.size) continue;
    largest = largestOf([...largest, { block: message, size }]);
  }
  const named = largest.map(({ block, size }) => `${nameOf(block)} ${share(size)}`).join(', ');
  return `${needed} tokens remain, ${atMost} fit: ${named}.`;
}

/** The number of blocks that are named. */
const namedBlocks = 3;

/** Returns the largest, the first of equal ones. */
function largestOf<T extends { readonly size: number }>(blocks: readonly T[]): T[] {
  return blocks.toSorted((a, b) => b.size - a.size).slice(0, namedBlocks);
}

function nameOf(block: Block | Message): string {
  if ('index' in block) return `message ${block.index} (${block.role})`;
  return block.parts[0]?.type === 'tool-definition' ? 'tools' : 'system';
}

// Requests that are sent without a fold: a client's bypass, or a fold that was not ready in time. The client's own bytes are sent, except for the
// reply that they continue: after a hidden recall, the provider may know that reply by another name, and accepts no other (decision 30).

/** Returns the request without a fold; see `Engine.unfolded`. */
export async function unfolded(
  engine: EngineState,
  request: EngineRequest,
  outcome: UnfoldedOutcome,
  waitMs: number,
): Promise<PreparedRequest> {
  const { codec, body } = request;
  // The list of messages is incomplete, so it must not be remembered as the conversation's.
  const beginning = await readBeginning(codec, body, { ...engine.reading, seen: undefined });
  if (!beginning) return passThrough(body, outcome);
  const named = codec.continueReply && beginning.previousReplyId;
  const kept = named === undefined ? 'none' : await keptReply(engine, request.tenant, named, waitMs);
  const continued = typeof kept === 'string' ? undefined : await continuedBody(codec, body, kept);
  const isUncertain = kept !== 'none' && !continued;
  const reason = isUncertain
    ? `${outcome.reason}; it continues the reply that it names, because the store did not answer in time whether the provider knows another name`
    : outcome.reason;
  return {
    ...passThrough(continued ?? body, { ...outcome, reason }, beginning),
    maySendClientBody: continued === undefined,
    identity: { ...identityOf(beginning, clientLinksOf(engine, request, beginning)), links: [] },
  };
}

/** Finds how to continue from a reply: in the memory of this process, or in the store if it answers in time. */
async function keptReply(
  { options: { keptReplies } }: EngineState,
  tenant: string,
  named: string,
  waitMs: number,
): Promise<KeptReply | 'none' | 'not known'> {
  const remembered = keptReplies.known(tenant, named);
  if (remembered) return remembered;
  if (waitMs === 0) return 'not known';
  try {
    return (await inTime({ leftMs: () => waitMs }, keptReplies.find(tenant, named))) ?? 'none';
  } catch {
    return 'not known';
  }
}

/** Returns the body that continues from the kept reply; undefined when it cannot be written. */
async function continuedBody(
  codec: Codec,
  body: Uint8Array,
  kept: KeptReply,
): Promise<Uint8Array | undefined> {
  try {
    const changed = codec.continueReply?.({ body }, kept);
    const beginning = changed && (await readBeginning(codec, changed, unremembered));
    return beginning?.previousReplyId === kept.name ? changed : undefined;
  } catch {
    return undefined;
  }
}

/** Describes an error without content of the conversation: our own message, or only the kind of another error. Undefined without an error. */
export function problemIn(error: unknown): string | undefined {
  if (error === undefined) return undefined;
  if (LeporelloError.isInstance(error)) return `${error.code}: ${error.message}`;
  return error instanceof Error ? `unexpected ${error.name}` : 'unexpected error';
}

/** Returns the plan; or none, if a shadow holds its strategies. A fold that the request needs is always made. */
export function withoutHeld(
  { held }: EngineRequest,
  { input, start }: Pick<OpenedRequest, 'input' | 'start'>,
  demand: Demand | undefined,
  plan: FoldPlan | undefined,
): HeldPlan | undefined {
  if (!held || demand?.force !== false) return plan;
  if (!plan?.steps.some(({ edits, strategy }) => edits > 0 && strategy !== 'repair-edit')) return plan;
  const { sets, allBut = false } = held;
  const strategy = strategiesOf(plan.draft.edits, plan.draft.shrinks);
  const { model } = input.conversation;
  const isNamed = sets.some((hold) => hold.model === model && hold.strategies === strategy);
  // Edits that leave nothing out have no strategy here.
  if (isNamed === allBut || strategy === '') return plan;
  const why = allBut ? 'are not shown to be harmless yet' : 'were shown to change what the model does next';
  const steps = [{ strategy, edits: 0, tokensSaved: 0, refused: `held: its folds ${why}` }];
  return { draft: start, steps, heldBack: allBut ? plan : undefined };
}
