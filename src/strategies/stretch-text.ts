/**
 * The texts that stand for finished stretches of a conversation: a line that says what it was and how to read it again, then lines of it.
 * What a tool showed is marked, so that it cannot pass for a line of ours. Pure.
 */
import { errorIn } from '../outline/notes.ts';
import { spellValue } from '../outline/sections.ts';
import { clipped, nameOf, plain } from '../outline/sentences.ts';
import type { SummaryStep } from '../outline/summarizer.ts';
import { shortValues } from './key-values.ts';

/** Stands in front of every line that a tool showed. */
export const quoteMark = '> ';

const longestLine = 300;

const names = ['', 'sub-goal', 'phase'] as const;

export function stretchHead(stretch: {
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
export function linesOfRecord(text: string): readonly string[] {
  const [head = '', ...lines] = text.split('\n');
  const end = head.indexOf('] ');
  return end < 0 ? lines : [`- ${head.slice(end + 2)}`, ...lines];
}

/**
 * Each step's first line, which is ours: what was called with which names, or what was said. `results` says how much stands behind it of what
 * a call gave: the line that tells of failure, or all of it.
 */
export function stretchSteps(
  steps: readonly SummaryStep[],
  results: 'failures' | 'whole',
): readonly string[] {
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
