/** The records that stand for finished stretches of a conversation: those of earlier folds, and those that are made for the next one. Pure. */
import { subgoalOf, type Edit, type FinishedSubgoal } from '../../conversation/edit.ts';
import { originalOfMessages, originalOfTexts } from '../../conversation/original.ts';
import { entryLines, wantedTokens } from '../../outline/entry-lines.ts';
import { levelName, maxRatio, subgoalLength, ratioFor } from '../../outline/levels.ts';
import { errorIn } from '../../outline/notes.ts';
import { spellValue } from '../../outline/summary-text.ts';
import { clipped, nameOf, plain } from '../../outline/sentences.ts';
import type { SummaryStep } from '../../outline/summarizer.ts';
import { compressionOf, type Compression } from '../../receipts/compression.ts';
import type { FoldView } from '../strategy.ts';
import { placesEdited } from './editable-texts.ts';
import type { FinishedStretch } from './finished-subgoals.ts';
import { remainingTokens } from './free-units.ts';
import { shortValues } from './key-values.ts';

type Ratio = number | 'adaptive';

type Insert = Extract<Edit, { readonly kind: 'insert-message' }>;

/** A record that stands in the conversation, or is to. */
type PlacedRecord = {
  readonly edit: Insert;
  readonly stretch: FinishedSubgoal;
  readonly level: number;
  readonly tokens: number;
  /** Tokens in for one out that were asked for; undefined of a light merge, and of what was made before. */
  readonly target?: number | undefined;
};

/** The records of a conversation, with what the edits so far save. */
export function openRecords(view: FoldView, ratio: Ratio) {
  const { conversation, excess, edits: sent } = view;
  const remaining = remainingTokens(view);
  const isInTokens = excess.unit === 'tokens';
  const gone = placesEdited(sent).messages;
  const ids = new Set(sent.flatMap(idOf));
  const drops: Edit[] = [];
  const wasSent = new Set<Edit>(sent);
  let standing: readonly PlacedRecord[] = sent.flatMap((edit) => standingOf(view, edit));
  let saved = 0;

  /** False where it is no smaller than what it stands for, or another is the same to the byte: the two would be had back as one. */
  function stand(one: PlacedRecord, before: number, instead: readonly PlacedRecord[]): boolean {
    if (one.tokens >= before || ids.has(one.stretch.memory) || !view.mayEdit(one.edit)) return false;
    ids.add(one.stretch.memory);
    view.tell(one.edit.text, compressionFor(one, before));
    standing = [...standing.filter((other) => !instead.includes(other)), one].toSorted(
      (a, b) => a.edit.before - b.edit.before,
    );
    saved += isInTokens ? before - one.tokens : -1;
    return true;
  }

  return {
    /** Tokens of all there is now. */
    before: sum(conversation.messages, ({ index }) => (gone.has(index) ? 0 : remaining(index))),
    saved: () => saved,
    tokens: () => sum(standing, ({ tokens }) => tokens),
    add({ messages, steps, goal, isWhole }: FinishedStretch): void {
      const calls = steps.filter(({ type }) => type === 'called').length;
      const isShort = calls < subgoalLength.min;
      if (isShort && !isWhole) return;
      const indices = messages.map(({ index }) => index);
      const memory = view.idOf(originalOfMessages(conversation, indices));
      const before = sum(indices, remaining);
      const record = recordOf(view, {
        before: indices[0]!,
        stretch: { level: 1, memory, calls, of: [] },
        goal,
        steps: stretchSteps(steps, 'failures'),
        more: () => stretchSteps(steps, 'whole'),
        tokens: before,
        ratio: isShort ? undefined : ratio,
      });
      if (!stand(record, before, [])) return;
      for (const message of indices) drops.push({ kind: 'drop-message', message, memory });
      saved += isInTokens ? 0 : indices.length;
    },
    /** False where nothing goes up. */
    levelUp(choose: (these: readonly PlacedRecord[]) => readonly PlacedRecord[] | undefined): boolean {
      const chosen = choose(standing);
      if (chosen === undefined) return false;
      const before = sum(chosen, ({ tokens }) => tokens);
      const isUp = stand(levelUpOf(view, chosen, before, ratio), before, chosen);
      saved += isUp && !isInTokens ? chosen.length : 0;
      return isUp;
    },
    edits: (): readonly Edit[] => [
      ...standing.map(({ edit }) => edit).filter((edit) => !wasSent.has(edit)),
      ...drops,
    ],
  };
}

function compressionFor({ stretch, tokens, target }: PlacedRecord, tokensBefore: number): Compression {
  return compressionOf({
    id: stretch.memory,
    level: levelName(stretch.level),
    tokensBefore,
    tokensAfter: tokens,
    target,
    by: target === undefined ? 'merge' : 'extractive',
    problem: undefined,
  });
}

function idOf(edit: Edit): readonly string[] {
  const id = edit.kind === 'insert-message' ? edit.stretch?.memory : edit.memory;
  return id === undefined ? [] : [id];
}

function standingOf(view: FoldView, edit: Edit): readonly PlacedRecord[] {
  const stretch = subgoalOf(edit);
  if (edit.kind !== 'insert-message' || stretch === undefined) return [];
  return [{ edit, stretch, level: stretch.level, tokens: view.measure.text(edit.text) }];
}

/** One record instead of these. */
function levelUpOf(
  view: FoldView,
  chosen: readonly PlacedRecord[],
  tokens: number,
  ratio: Ratio,
): PlacedRecord {
  const of = chosen.map(({ edit: { text }, stretch }) => ({ text, stretch }));
  const steps = of.flatMap(({ text }) => linesOfRecord(text));
  return recordOf(view, {
    before: chosen[0]!.edit.before,
    stretch: {
      level: Math.max(...chosen.map(({ level }) => level)) + 1,
      memory: view.idOf(originalOfTexts(of)),
      calls: sum(chosen, ({ stretch: { calls } }) => calls),
      of,
    },
    goal: '',
    steps,
    more: () => steps,
    tokens,
    ratio,
  });
}

type RecordDraft = {
  readonly before: number;
  readonly stretch: FinishedSubgoal;
  readonly goal: string;
  readonly steps: readonly string[];
  /** The same with all they say, for what would be compressed harder than any level may be. */
  readonly more: () => readonly string[];
  /** That it stands for. */
  readonly tokens: number;
  /** Undefined: a light merge. */
  readonly ratio: Ratio | undefined;
};

/** So many times harder than asked for is too hard: then what tools showed is quoted, which is worth less than what was called. */
const farOver = 1.5;

function recordOf(
  view: FoldView,
  { before, stretch, goal, steps, more, tokens, ratio }: RecordDraft,
): PlacedRecord {
  const count = (text: string) => view.measure.text(text);
  const head = stretchHead({ ...stretch, goal, recallTool: view.recallTool });
  const target = ratio === undefined ? undefined : ratioFor(ratio, steps);
  const textOf = (lines: readonly string[], wanted: number) => {
    const spelled = (body: string) => (body === '' ? head : `${head}\n${body}`);
    const tokensOf = (body: string) => count(spelled(body));
    const sizes = { before: tokens, wanted, head: count(head) };
    return spelled(entryLines(lines, sizes, { mark: quoteMark, tokensOf, count }));
  };
  const brief = textOf(steps, wantedTokens(tokens, target));
  const hardest = Math.min((target ?? maxRatio) * farOver, maxRatio);
  const text = count(brief) * hardest < tokens ? textOf(more(), wantedTokens(tokens, hardest)) : brief;
  const edit: Insert = { kind: 'insert-message', before, role: 'user', text, stretch };
  return { edit, stretch, level: stretch.level, tokens: count(text), target };
}

function sum<T>(items: readonly T[], of: (item: T) => number): number {
  return items.reduce((total, item) => total + of(item), 0);
}

/** Stands in front of every line that a tool showed. */
const quoteMark = '> ';

const longestLine = 300;

const names = ['', 'sub-goal', 'phase'] as const;

function stretchHead(stretch: {
  readonly level: number;
  readonly calls: number;
  readonly memory: string;
  /** In the conversation's own words; empty where that is said already. */
  readonly goal: string;
  readonly recallTool: string | undefined;
}): string {
  const { level, calls, memory, goal, recallTool } = stretch;
  const way =
    recallTool === undefined ? `kept as ${memory}` : `${recallTool} ${JSON.stringify({ id: memory })}`;
  const what = `[Record of a finished ${names[level] ?? 'overview'}, ${calls} calls: ${way}]`;
  return goal === '' ? what : `${what} ${plain(goal)}`;
}

/** What is to be said on of a record when it goes a level up: all but how to read it again. */
function linesOfRecord(text: string): readonly string[] {
  const [head = '', ...lines] = text.split('\n');
  const end = head.indexOf('] ');
  return end < 0 ? lines : [`- ${head.slice(end + 2)}`, ...lines];
}

/**
 * Each step's first line, which is ours: what was called with which names, or what was said. `results` says how much stands behind it of what
 * a call gave: the line that tells of failure, or all of it.
 */
function stretchSteps(steps: readonly SummaryStep[], results: 'failures' | 'whole'): readonly string[] {
  const seen = new Set<string>();
  return steps.map((step) => {
    if (step.type === 'said') return `- said: ${clipped(plain(step.text), longestLine)}`;
    const values = [...new Set(shortValues(step.input))].map((value) => {
      const isSeen = seen.has(value);
      seen.add(value);
      return spellValue(isSeen ? lastPart(value) : value);
    });
    const line = clipped(`- ${[nameOf(step.tool), ...values].join(' ')}`, longestLine);
    const { result = '', failed } = step;
    const shown = results === 'whole' ? result : errorIn(result, failed);
    return shown ? `${line}\n${shown}` : line;
  });
}

/** Of a path that was named before. */
function lastPart(value: string): string {
  return /^\S*\/[^\s/]{4,}$/.test(value) ? value.slice(value.lastIndexOf('/') + 1) : value;
}
