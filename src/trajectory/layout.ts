/** Writes the entries and actions of a trajectory for the context, and cuts texts that are too long for it. Pure. */
import { clip, type CountTokens, longestFit, wholeAfter } from '../conversation/fit.ts';
import type { SummaryStep } from '../outline/summarizer.ts';
import type { Action, TrajectoryEntry, NumberedAction, Summary } from './state.ts';

/** Maximum characters of a goal or an outcome in a summary's first line. */
const maxName = 240;

/** Writes a summary: a line that says what it is, then its text. */
export function entryText(summary: Omit<Summary, 'tokens' | 'memory'>): string {
  return summary.text === '' ? headOf(summary) : `${headOf(summary)}\n${summary.text}`;
}

/** Writes the first line of a summary: `[s3 a9-a14] Find the test → It is in auth.test.ts`. */
function headOf(entry: Omit<Summary, 'tokens' | 'memory'>): string {
  const { a, s } = entry.covers;
  const id = [entry.id, entry.level > 1 ? rangeOf('s', s) : '', rangeOf('a', a)];
  const name = [entry.goal, entry.outcome ?? ''].filter((part) => part !== '').map(nameOf);
  return `[${id.filter((part) => part !== '').join(' ')}]${name.length === 0 ? '' : ` ${name.join(' → ')}`}`;
}

/** Writes the observation of an action, as a user message. */
export function observationText({ id, observation }: { readonly id: string; readonly observation: string }) {
  return `[${id}]\n${observation.trim() === '' ? '(no output)' : observation}`;
}

/** Writes an action as lines. Recalled content was summarized before, so it is left out. */
function stepOf(action: NumberedAction): string {
  return `${action.id} ${action.action}\n${resultOf(action)}`;
}

function said(text: string): SummaryStep {
  return { type: 'said', by: 'assistant', text };
}

function resultOf({ recalls, observation }: NumberedAction): string {
  return recalls === undefined ? observation : `(${recalls} was read again)`;
}

/** Writes an entry as the steps of a summary. */
export function stepsOf(entry: TrajectoryEntry): readonly string[] {
  if (entry.kind === 'subgoal') {
    const { id, goal, outcome = '', actions } = entry;
    return [...nameStep(`${id} goal`, goal), ...actions.map(stepOf), ...nameStep(`${id} outcome`, outcome)];
  }
  // Without the ranges: a summary has no space for them.
  const text = entryText({ ...entry, covers: {} });
  return [entry.goal === '' ? text.replace('\n', ' ') : text];
}

/** Converts an entry into steps for a summarizer. `ids`: whether it may refer to single actions, as a model does. */
export function summaryStepsOf(entry: TrajectoryEntry, ids: boolean): readonly SummaryStep[] {
  if (entry.kind === 'summary') return stepsOf(entry).map(said);
  const { id, goal, outcome = '', actions } = entry;
  return [
    ...nameStep(`${id} goal`, goal).map(said),
    ...actions.map((action): SummaryStep => {
      const [, tool = '', input = ''] = /^(\S*)\s*([^]*)$/.exec(action.action) ?? [];
      const result = resultOf(action);
      return { type: 'called', tool: ids ? `${action.id} ${tool}` : tool, input, result, failed: false };
    }),
    ...nameStep(`${id} outcome`, outcome).map(said),
  ];
}

/** Returns a step for a name, unless the summary's first line contains the whole name. */
function nameStep(what: string, name: string): readonly string[] {
  return nameOf(name).endsWith('…') ? [`${what}: ${name}`] : [];
}

/** Cuts the texts of an action for the context; undefined if both fit. */
export function shownOf(
  id: string,
  action: Action,
  maxTokens: number,
  count: CountTokens,
): NumberedAction['shown'] {
  const shown = {
    action: cut(action.action, maxTokens, id, count),
    observation: cut(action.observation, maxTokens, id, count),
  };
  return shown.action === action.action && shown.observation === action.observation ? undefined : shown;
}

/** Cuts a text to beginning and end, with a line between them on how to read the rest; only the beginning if there is no space for that. */
export function cut(text: string, maxTokens: number, id: string, count: CountTokens): string {
  // A character hardly ever has more than four tokens, so short texts need no counting.
  if (text.length * 4 <= maxTokens || count(text) <= maxTokens) return text;
  const gap = `\n[… cut: read_memory {"id":"${id}"} has it whole …]\n`;
  const room = maxTokens - count(gap);
  if (room < 16) return clip(text, maxTokens, count);
  const head = longestFit(text, { start: 0, end: text.length }, Math.floor(room * 0.6), count);
  const tail = tailFit(text, head, Math.floor(room * 0.4), count);
  const cutText = `${text.slice(0, head)}${gap}${text.slice(tail)}`;
  // Tokens may be split differently at the seams.
  return count(cutText) <= maxTokens ? cutText : clip(text, maxTokens, count);
}

/** Returns the offset from which the end of the text has at most `budget` tokens. */
function tailFit(text: string, from: number, budget: number, count: CountTokens): number {
  let length = Math.min(budget * 3, text.length - from);
  while (length > 0) {
    const start = wholeAfter(text, text.length - length);
    const tokens = count(text.slice(start));
    if (tokens <= budget) return start;
    length = Math.floor(Math.min(length * 0.9, (length * budget) / tokens));
  }
  return text.length;
}

function rangeOf(letter: string, range: readonly [number, number] | undefined): string {
  if (range === undefined) return '';
  const [first, last] = range;
  return first === last ? `${letter}${first}` : `${letter}${first}-${letter}${last}`;
}

function nameOf(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ').trim().toWellFormed();
  return line.length <= maxName ? line : `${line.slice(0, maxName - 1).toWellFormed()}…`;
}
