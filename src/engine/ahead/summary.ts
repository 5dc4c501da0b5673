/**
 * Requests summaries, and texts of items and records, ahead of the fold that will need them. A few requests before a trigger fires, this module predicts
 * what the fold would remove, and the caller has a model write about it in the background. A fold that is made earlier uses extracts instead.
 */
import type { Conversation, Message } from '../../conversation/conversation.ts';
import { lastMessageOf } from '../../conversation/edit.ts';
import { beginsReply } from '../../conversation/turns.ts';
import { demandInCounts, firstDemand } from '../demand.ts';
import type { OpenedRequest } from '../history.ts';
import { type Draft, type PlanInput, viewOf } from '../plan.ts';
import { hasWayBack } from '../protect.ts';
import { type EngineState, type FoldMemory, type SummaryNotes, placeForClient } from '../state.ts';
import type { textsJob } from './texts.ts';
import type { SummaryAheadOptions, SummaryJob, TextsAhead } from '../types.ts';
import { reasonOf } from '../../errors.ts';
import type { SummaryRequest } from '../../outline/summarizer.ts';
import { editableTexts, freeUnits, remainingTokens } from '../../strategies/lib/editable-texts.ts';
import { summarySteps } from '../../strategies/lib/summaries.ts';
import type { FoldView } from '../../strategies/strategy.ts';
import type { Demand, Trigger, TriggerState } from '../../triggers/trigger.ts';

/**
 * Summaries are written when a trigger is expected to fire within so many requests. A summary takes about three, and one that is written earlier is mostly
 * replaced by a newer one, or not needed.
 */
const requestsAhead = 6;

/** The newest requests, in number, whose growth is expected to continue. */
const requestsMeasured = 10;

/** The number of newest units that are never summarized. */
const unitsLeft = 3;
/** Fewer new tokens than this are not worth a call of a model. */
const minNewTokens = 1_500;
/** The share of the tokens to be removed that must be new since the last summary. */
const minNewShare = 0.9;
/** The tokens that the user's own instructions may add to the aim. */
const maxRuleTokens = 2_000;

/** Returns the summary or the texts that the next fold will need; undefined when none should be written now. */
export function summaryFor(
  { options, summaryNotes }: EngineState,
  opened: OpenedRequest,
  result: Draft,
): SummaryJob | undefined {
  const { foldingDisabled, state, memory, input, calibrator } = opened;
  const { summaries, texts, triggers, mode } = options;
  const isControl = opened.found?.fold.trial?.isControl === true;
  const isFree = !foldingDisabled && !isControl && hasWayBack(options, input.conversation, 'now');
  if ((!summaries && !texts) || !isFree || mode === 'observe') return undefined;
  const growth = growthOf(result.sent, input.counter);
  const within = (requests: number): ExpectedFold | undefined => {
    const grown = scaled(growth, requests / requestsAhead);
    const ahead = demandAhead(triggers, state, {
      ...grown,
      tokens: grown.tokens * calibrator.correction.slope,
    });
    return ahead && { demand: demandInCounts(ahead, calibrator.correction), growth: grown };
  };
  const expected = within(requestsAhead);
  if (!expected) return undefined;
  const summary =
    summaries && summaryJob({ ...summaries, notes: summaryNotes }, memory, input, result, expected);
  if (summary || !texts) return summary;
  const requests = [1, 2, 3].find((one) => within(one));
  if (requests === undefined) return undefined;
  return textsAheadOf({ ...options, texts }, opened, result, within(requests)!, requests);
}

function scaled({ tokens, messages }: ExpectedGrowth, share: number): ExpectedGrowth {
  return { tokens: tokens * share, messages: messages * share };
}

/** The expected demand and growth until the fold. */
type ExpectedFold = { readonly demand: Demand; readonly growth: ExpectedGrowth };

/** New messages after which texts are looked for again: those of about two requests. */
const messagesBetween = 4;

/**
 * Returns the job of writing texts for a fold that is expected after so many requests. The fold is planned only when the job is claimed, after the
 * request was sent.
 */
function textsAheadOf(
  { texts, strategies }: Pick<EngineState['options'], 'strategies'> & { readonly texts: TextsAhead },
  opened: OpenedRequest,
  draft: Draft,
  { demand, growth }: ExpectedFold,
  requests: number,
): SummaryJob | undefined {
  const { tenant, fullLinks } = opened.memory;
  const { unit, target, ...rest } = demand.goal;
  const now = draft[unit];
  // The newest results stay, and what comes before them is folded like the messages that are here now.
  const share = now / (now + (growth[unit] * (requests - 1)) / requests);
  const missing = Math.ceil((now + growth[unit] - target) * share);
  // Many conversations begin alike: only the newest prefixes tell them apart.
  const recent = fullLinks.slice(-messagesBetween).map((link) => `${tenant}/${link}`);
  if (missing <= 0 || recent.some((link) => texts.planned.has(link))) return undefined;
  texts.planned.set(recent.at(-1)!, opened.input.conversation.messages.length);
  const goal = { ...rest, unit, target: Math.max(1, now - missing) };
  const keyOf = (link: string) => `texts ${tenant}/${link}`;
  let job: ReturnType<typeof textsJob> | undefined;
  const planned = async () => {
    const { textsJob: open } = await import('./texts.ts');
    return (job ??= open({ texts, strategies, opened }, draft, { ...demand, goal }));
  };
  return {
    writes: 'texts',
    key: keyOf(fullLinks.at(-1)!),
    earlier: () => new Set(fullLinks.slice(1, -1).map(keyOf)),
    tokens: unit === 'tokens' ? missing : 0,
    claim: async (forMs) => (await planned()).claim(forMs),
    write: async (summarizer, signal) => (await planned()).write(summarizer, signal),
  };
}

/** The growth of a conversation that is expected until the summary is needed, in plain counts. */
type ExpectedGrowth = { readonly tokens: number; readonly messages: number };

/** Predicts the growth from the newest requests: from the messages since the tenth newest reply. */
function growthOf(sent: Conversation, counter: PlanInput['counter']): ExpectedGrowth {
  const { messages } = sent;
  const replies = messages.filter((_, at) => beginsReply(messages, at));
  const from = replies.at(-requestsMeasured)?.index ?? 0;
  const share = requestsAhead / Math.max(1, Math.min(replies.length, requestsMeasured));
  const newest = messages.slice(from);
  const tokens = newest.reduce((sum, { index }) => sum + counter.message(sent, index), 0);
  return { tokens: share * tokens, messages: share * newest.length };
}

/** Predicts the demand after this growth; undefined while no trigger would fire. Tokens that no fold can remove are assumed not to grow. */
function demandAhead(
  triggers: readonly Trigger[],
  state: TriggerState,
  growth: ExpectedGrowth,
): Demand | undefined {
  const { economy: _, idleMs: __, fixed = 0, ...grown } = state;
  return firstDemand(triggers, {
    ...grown,
    fixed,
    tokens: state.tokens + growth.tokens,
    messages: Math.ceil(state.messages + growth.messages),
  });
}

/** Plans the summary for a predicted demand, in plain counts. Undefined when there is nothing new to summarize yet. */
function summaryJob(
  { ready: summaries, maxTokens, notes }: SummaryAheadOptions & { readonly notes: SummaryNotes },
  memory: Pick<FoldMemory, 'tenant' | 'clientLinks' | 'fullLinks' | 'commonAtEnd'>,
  input: PlanInput,
  draft: Draft,
  { demand, growth }: ExpectedFold,
): SummaryJob | undefined {
  const { ready } = input;
  const { tenant, clientLinks, fullLinks } = memory;
  const { unit, target } = demand.goal;
  const grown = draft[unit] + growth[unit];
  const view = viewOf({ input, demand, references: [] }, draft, grown - target);
  if (stubsSuffice(view, growth.tokens)) return undefined;
  const removed = unitsToRemove(view);
  const first = removed[0]?.[0]?.index;
  const last = removed.at(-1)?.at(-1)?.index;
  if (first === undefined || last === undefined) return undefined;
  // Messages that the earlier summary covers are not summarized again.
  const before = ready && ready.from >= first ? ready : undefined;
  const messages = removed.flat().filter(({ index }) => index >= (before?.upTo ?? 0));
  const remaining = remainingTokens(view);
  const sizeOf = (some: readonly Message[]) => some.reduce((sum, { index }) => sum + remaining(index), 0);
  const tokens = sizeOf(messages);
  if (tokens < Math.max(minNewTokens, sizeOf(removed.flat()) * minNewShare)) return undefined;
  const upTo = last + 1;
  const link = fullLinks[upTo]!;
  const keyOf = (of: string) => `${tenant}/${of}`;
  const foundBy = placeForClient(memory, upTo);
  let earlier: ReadonlySet<string> | undefined;
  return {
    writes: 'summary',
    key: keyOf(link),
    earlier() {
      earlier ??= new Set(fullLinks.slice(1, upTo).map(keyOf));
      return earlier;
    },
    tokens,
    async claim(forMs) {
      const isMine = await summaries.claim(
        tenant,
        clientLinks,
        { foundBy, known: ready?.matched ?? 0 },
        forMs,
      );
      if (!isMine) notes.note(tenant, link, 'another instance was writing the summary');
      return isMine;
    },
    async write(summarizer, signal) {
      const count = (text: string) => view.measure.text(text);
      const request: SummaryRequest = {
        steps: summarySteps(view.conversation, messages, view.recallTool),
        earlier: before ? [before.body] : [],
        known: [],
        budget: { aim: maxTokens, max: maxTokens + maxRuleTokens },
        count,
      };
      const body = await withNotes({ notes, tenant, link }, () => summarizer.summarize(request, signal));
      if (body === undefined) return 0;
      await summaries.record(tenant, clientLinks[foundBy]!, {
        from: before?.from ?? first,
        upTo,
        link,
        body,
      });
      return count(body);
    },
  };
}

/** Writes a summary, and notes why it is missing while it is being written and after a failure. */
async function withNotes(
  { notes, tenant, link }: { notes: SummaryNotes; tenant: string; link: string },
  write: () => Promise<string | undefined>,
): Promise<string | undefined> {
  notes.note(tenant, link, 'the summary was still being written');
  try {
    const body = await write();
    if (body === undefined) notes.note(tenant, link, 'the summary would have been empty');
    else notes.forget(tenant, link);
    return body;
  } catch (error) {
    notes.note(tenant, link, reasonOf(error));
    throw error;
  }
}

/** Predicts the units that the next fold will remove: the oldest ones that may be dropped. */
function unitsToRemove(view: FoldView): readonly (readonly Message[])[] {
  const remaining = remainingTokens(view);
  const removed: (readonly Message[])[] = [];
  let wanted = view.excess.amount;
  for (const unit of [...freeUnits(view)].slice(0, -unitsLeft)) {
    if (wanted <= 0) break;
    removed.push(unit);
    wanted -=
      view.excess.unit === 'messages'
        ? unit.length
        : unit.reduce((sum, { index }) => sum + remaining(index), 0);
  }
  return removed;
}

// Folds that need no summary, because stubs in place of tool results save enough tokens.

/** The approximate number of tokens of a stub. */
const stubTokens = 60;

/** True when stubs alone will save enough. `view` is the view of a conversation that will have grown by `growth` tokens like its newest ones. */
export function stubsSuffice(view: FoldView, growth: number): boolean {
  if (view.excess.unit === 'messages') return false;
  const folded = view.edits.reduce((last, edit) => Math.max(last, lastMessageOf(edit)), -1);
  let saved = 0;
  let savedOfNew = 0;
  for (const { at, part, message, literal } of editableTexts(view, 'tool-result')) {
    const isSmall = literal.length - 2 < view.minResultBytes;
    // A result with several texts is counted with its first one.
    if (isSmall || at.text > 0 || view.protects.part(at.message, at.part)) continue;
    const shown = view.shrunk(at);
    const tokens = shown === undefined ? view.measure.part(message, part) : view.measure.text(shown);
    const gain = Math.max(0, tokens - stubTokens);
    saved += gain;
    if (at.message > folded) savedOfNew += gain;
  }
  const { messages } = view.conversation;
  const tokensOfNew = messages
    .slice(folded + 1)
    .reduce((sum, { index }) => sum + view.measure.message(index), 0);
  return saved + (growth * savedOfNew) / Math.max(1, tokensOfNew) >= view.excess.amount;
}
