/**
 * Compares summaries at recorded compactions: the session before the client's compaction, the recorded summary by a model, and the calls after
 * it. It checks which values of those calls are in the recorded summary, which are in an extractive summary of the same size, and which of
 * the others a recall finds.
 */
import { resolveRecall } from '../../src/recall/resolve.ts';
import { chat } from '../../src/cli/replay/sources.ts';
import { originalOfMessages } from '../../src/conversation/edit.ts';
import { holds } from '../../src/replay/needs.ts';
import { type Need, type Recording, readRecording } from '../../src/replay/recording.ts';
import { extract } from '../../src/outline/extract.ts';
import { readFiles, readSections } from '../../src/outline/summary-text.ts';
import { summarySteps } from '../../src/strategies/lib/summaries.ts';
import type { TokenCounter } from '../../src/tokens/token-counter.ts';
import type { Recorded } from '../tokens/recorded.ts';

export type Compaction = {
  readonly id: string;
  readonly recording: Recording;
  /** Messages before the compaction. */
  readonly at: number;
  readonly summary: string;
};

/** Calls after a compaction that are examined. */
const maxCalls = 40;

export function compactionsIn(records: readonly Recorded[], counter: TokenCounter): readonly Compaction[] {
  const segments = new Map(records.map((record) => [keyOf(record, 0), record]));
  return records.flatMap((after) => {
    const before = segments.get(keyOf(after, -1));
    const [summary, ...rest] = after.messages;
    if (!after.meta.starts_with_compaction_summary || !before || !summary) return [];
    // A message without values replaces the summary.
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

/** A value that one of the next calls used and that occurred before the compaction. */
export type Used = {
  readonly kind: Need['value']['kind'];
  /** True for the first use after the compaction. */
  readonly isFirst: boolean;
  /** True if no message after the compaction showed it before its use: the model knew it from the summary or guessed it. */
  readonly isFresh: boolean;
  /** True if a tool result before the compaction contained it. */
  readonly isFromResult: boolean;
  readonly inRecorded: boolean;
  /** True if an extractive summary of the same size has it. A path may be told by its folder and its place there. */
  readonly inSummary: boolean;
  /** True if the text of that summary has it in one piece. */
  readonly isWhole: boolean;
  /** True if a recall finds it; undefined if none was tried. */
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
  const written =
    extract({
      steps: summarySteps(conversation, conversation.messages.slice(0, at), undefined),
      earlier: [],
      known: [],
      budget: { aim: tokens, max: tokens },
      count: (text) => counter.count(text),
    }) ?? '';
  const files = readSections(written).files.flatMap((item) => readFiles(item).files);
  const known = new Set<string>();
  const used: Used[] = [];
  for (const need of nextNeeds(compaction)) {
    const isWhole = holds(written, need.value);
    const inSummary = isWhole || files.some((file) => holds(file, need.value));
    const isFirst = !known.has(need.value.text);
    known.add(need.value.text);
    used.push({
      kind: need.value.kind,
      isFirst,
      isFresh: isFirst && !need.in.some((index) => index > at),
      isFromResult: need.in.some((index) => index < at && conversation.messages[index]?.role === 'tool'),
      inRecorded: holds(summary, need.value),
      inSummary,
      isWhole,
      recalled: inSummary || !isFirst ? undefined : await isRecalled(compaction, need, counter),
    });
  }
  return { id, recordedTokens: tokens, extractTokens: counter.count(written), used };
}

/** Returns the needs of the next calls whose values occurred before the compaction. */
function nextNeeds({ recording, at }: Compaction): readonly Need[] {
  const needs: Need[] = [];
  let seenCalls = 0;
  for (const step of recording.steps) {
    if (step.at < at) continue;
    if (seenCalls >= maxCalls) break;
    needs.push(...step.needs.filter((need) => need.in.some((index) => index < at)));
    seenCalls += recording.conversation.messages
      .slice(step.at, step.end)
      .reduce((sum, { parts }) => sum + parts.filter(({ type }) => type === 'tool-call').length, 0);
  }
  return needs;
}

/** Recalls the value by query from one original that contains all summarized messages. */
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
