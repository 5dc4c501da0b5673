/** How a trajectory's entries and actions are spelled in the context, and cut where one of them is too long for it. Pure. */
import { clip, type CountTokens, longestFit, wholeAfter } from '../conversation/fit.ts';
import type { SummaryStep } from '../outline/summarizer.ts';
import type { Action, TrajectoryEntry, NumberedAction, Summary } from './state.ts';

/** Goals and outcomes are named, not told: in characters. */
const longestName = 240;

/** A finished stretch: a line that says what it is, then its text. */
export function entryText(summary: Omit<Summary, 'tokens' | 'memory'>): string {
  return summary.text === '' ? headOf(summary) : `${headOf(summary)}\n${summary.text}`;
}

/** `[s3 a9-a14] Find the test → It is in auth.test.ts` */
function headOf(entry: Omit<Summary, 'tokens' | 'memory'>): string {
  const { a, s } = entry.covers;
  const id = [entry.id, entry.level > 1 ? rangeOf('s', s) : '', rangeOf('a', a)];
  const name = [entry.goal, entry.outcome ?? ''].filter((part) => part !== '').map(nameOf);
  return `[${id.filter((part) => part !== '').join(' ')}]${name.length === 0 ? '' : ` ${name.join(' → ')}`}`;
}

/** What the user's side says of an action. */
export function observationText({ id, observation }: { readonly id: string; readonly observation: string }) {
  return `[${id}]\n${observation.trim() === '' ? '(no output)' : observation}`;
}

/** An action as lines. What was read again was summarised before. */
function stepOf(action: NumberedAction): string {
  return `${action.id} ${action.action}\n${toldOf(action)}`;
}

function said(text: string): SummaryStep {
  return { type: 'said', by: 'assistant', text };
}

function toldOf({ recalls, observation }: NumberedAction): string {
  return recalls === undefined ? observation : `(${recalls} was read again)`;
}

export function stepsOf(entry: TrajectoryEntry): readonly string[] {
  if (entry.kind === 'subgoal') {
    const { id, goal, outcome = '', actions } = entry;
    return [...nameStep(`${id} goal`, goal), ...actions.map(stepOf), ...nameStep(`${id} outcome`, outcome)];
  }
  // Of the ranges only the id: a summary has no room for them.
  const text = entryText({ ...entry, covers: {} });
  return [entry.goal === '' ? text.replace('\n', ' ') : text];
}

/** The same for a summarizer. `ids`: whether it may name single actions, as one does that writes in words of its own. */
export function summaryStepsOf(entry: TrajectoryEntry, ids: boolean): readonly SummaryStep[] {
  if (entry.kind === 'summary') return stepsOf(entry).map(said);
  const { id, goal, outcome = '', actions } = entry;
  return [
    ...nameStep(`${id} goal`, goal).map(said),
    ...actions.map((action): SummaryStep => {
      const [, tool = '', input = ''] = /^(\S*)\s*([^]*)$/.exec(action.action) ?? [];
      const result = toldOf(action);
      return { type: 'called', tool: ids ? `${action.id} ${tool}` : tool, input, result, failed: false };
    }),
    ...nameStep(`${id} outcome`, outcome).map(said),
  ];
}

/** A name that stands whole in the first line of the summary need not be in its text. */
function nameStep(what: string, name: string): readonly string[] {
  return nameOf(name).endsWith('…') ? [`${what}: ${name}`] : [];
}

/** The texts as they may stand in the context: each at most so many tokens; undefined where nothing is to cut. */
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

/** Beginning and end, with a line between that says how to get the rest; the beginning alone where there is no room for that. */
export function cut(text: string, maxTokens: number, id: string, count: CountTokens): string {
  // A character is hardly ever more than four tokens, so short texts need no counting.
  if (text.length * 4 <= maxTokens || count(text) <= maxTokens) return text;
  const gap = `\n[… cut: read_memory {"id":"${id}"} has it whole …]\n`;
  const room = maxTokens - count(gap);
  if (room < 16) return clip(text, maxTokens, count);
  const head = longestFit(text, { start: 0, end: text.length }, Math.floor(room * 0.6), count);
  const tail = tailFit(text, head, Math.floor(room * 0.4), count);
  const cutText = `${text.slice(0, head)}${gap}${text.slice(tail)}`;
  // Tokens may join otherwise at the seams.
  return count(cutText) <= maxTokens ? cutText : clip(text, maxTokens, count);
}

/** An offset from which on the end of the text has at most `budget` tokens. */
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
  return line.length <= longestName ? line : `${line.slice(0, longestName - 1).toWellFormed()}…`;
}
