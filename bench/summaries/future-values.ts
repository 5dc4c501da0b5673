/**
 * Recorded compactions: a session up to where its client had a model summarise it, the summary, and what was called next. Tells which of
 * the values that the next calls used the recorded summary shows, which an extractive one of the same size does, and whether memory
 * brings the others.
 */
import { resolveRecall } from '../../src/recall/tool.ts';
import { chat } from '../../src/cli/replay/sources.ts';
import { originalOfMessages } from '../../src/conversation/edit.ts';
import { holds } from '../../src/replay/needs.ts';
import { type Need, type Recording, readRecording } from '../../src/replay/recording.ts';
import { extract } from '../../src/outline/extract.ts';
import { summarySteps } from '../../src/strategies/lib/summary-steps.ts';
import type { TokenCounter } from '../../src/tokens/token-counter.ts';
import type { Recorded } from '../tokens/recorded.ts';

export type Compaction = {
  readonly id: string;
  readonly recording: Recording;
  /** Messages in front of it. */
  readonly at: number;
  readonly summary: string;
};

/** Calls that are looked at behind a compaction. */
const calls = 40;

export function compactionsIn(records: readonly Recorded[], counter: TokenCounter): readonly Compaction[] {
  const segments = new Map(records.map((record) => [keyOf(record, 0), record]));
  return records.flatMap((after) => {
    const before = segments.get(keyOf(after, -1));
    const [summary, ...rest] = after.messages;
    if (!after.meta.starts_with_compaction_summary || !before || !summary) return [];
    // In its place something that says nothing, so that no value is found there.
    const messages = [...before.messages, { role: 'user', content: 'Go on.' }, ...rest];
    const body = new TextEncoder().encode(JSON.stringify({ model: 'recorded', messages }));
    const recording = readRecording({ id: after.id, source: after.source, format: chat, body }, counter);
    return [{ id: after.id, recording, at: before.messages.length, summary: textOf(summary.content) }];
  });
}

function keyOf({ meta }: Recorded, step: number): string {
  return `${meta.session} ${(meta.segment ?? 0) + step}`;
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content.map((part: { readonly text?: string }) => part.text ?? '').join('\n');
}

/** A value that one of the next calls used and that stood in front of the compaction. */
export type Used = {
  readonly kind: Need['value']['kind'];
  /** Used for the first time since. */
  readonly isFirst: boolean;
  /** Nothing behind the compaction had shown it before it was used: it is known from the summary, or guessed. */
  readonly isFresh: boolean;
  /** A tool's result had shown it. */
  readonly isFromResult: boolean;
  readonly inRecorded: boolean;
  readonly inExtract: boolean;
  /** Whether memory brings it when it is asked for it; undefined where it was not asked. */
  readonly recalled: boolean | undefined;
};

export type Probed = {
  readonly id: string;
  readonly recordedTokens: number;
  readonly extractTokens: number;
  readonly used: readonly Used[];
};

export async function probe(compaction: Compaction, counter: TokenCounter): Promise<Probed> {
  const { id, recording, at, summary } = compaction;
  const { conversation } = recording;
  const tokens = counter.count(summary);
  const extracted =
    extract({
      steps: summarySteps(conversation, conversation.messages.slice(0, at), undefined),
      earlier: [],
      known: [],
      budget: { aim: tokens, max: tokens },
      count: (text) => counter.count(text),
    }) ?? '';
  const known = new Set<string>();
  const used: Used[] = [];
  for (const need of nextNeeds(compaction)) {
    const inExtract = holds(extracted, need.value);
    const isFirst = !known.has(need.value.text);
    known.add(need.value.text);
    used.push({
      kind: need.value.kind,
      isFirst,
      isFresh: isFirst && !need.in.some((index) => index > at),
      isFromResult: need.in.some((index) => index < at && conversation.messages[index]?.role === 'tool'),
      inRecorded: holds(summary, need.value),
      inExtract,
      recalled: inExtract || !isFirst ? undefined : await isRecalled(compaction, need, counter),
    });
  }
  return { id, recordedTokens: tokens, extractTokens: counter.count(extracted), used };
}

/** What the next calls used of what stood in front. */
function nextNeeds({ recording, at }: Compaction): readonly Need[] {
  const needs: Need[] = [];
  let seen = 0;
  for (const step of recording.steps) {
    if (step.at < at) continue;
    if (seen >= calls) break;
    needs.push(...step.needs.filter((need) => need.in.some((index) => index < at)));
    seen += recording.conversation.messages
      .slice(step.at, step.end)
      .reduce((sum, { parts }) => sum + parts.filter(({ type }) => type === 'tool-call').length, 0);
  }
  return needs;
}

/** The summary names one memory with all the messages; the model asks it for the value. */
async function isRecalled(
  { recording: { conversation }, at }: Compaction,
  { value }: Need,
  counter: TokenCounter,
): Promise<boolean> {
  const indices = conversation.messages.slice(0, at).map(({ index }) => index);
  const original = new TextDecoder().decode(originalOfMessages(conversation, indices));
  const text = await resolveRecall({
    argumentsJson: JSON.stringify({ id: 'mem_0000000000000000', query: value.text }),
    lookup: () => original,
    maxTokens: 8_000,
    countTokens: (counted) => counter.count(counted),
  });
  return holds(text, value);
}
