/**
 * Builds the context of a trajectory: the messages that an agent sends to its model. Finished work comes first and does not change from
 * turn to turn; then actions as turns of two roles. Always under the budget: if folding has not made enough space, texts are cut for this
 * call. Also writes entries and actions as text. Pure.
 */
import { clip, longestFit, wholeAfter, type CountTokens } from '../conversation/messages.ts';
import { nodeOf, type OutlineNode } from '../outline/node.ts';
import { nodeOfText, titleOf } from '../outline/record.ts';
import { oneLine } from '../outline/outcome.ts';
import type { SummaryStep } from '../outline/summarizer.ts';
import type { Action, NumberedAction, Subgoal, Summary, TrajectoryEntry, TrajectoryState } from './state.ts';

/** A message. Roles alternate, and the first and last message have the role `user`, as every provider accepts. */
export type ContextMessage = { readonly role: 'user' | 'assistant'; readonly content: string };

/** The context to send. */
export type Context = {
  readonly messages: readonly ContextMessage[];
  /** The messages as one text, for a prompt without roles. */
  readonly text: string;
  /** Tokens of the messages, overhead per message included. Summed over pieces, so a little too high. */
  readonly tokens: number;
};

export type ContextMeasure = {
  readonly count: CountTokens;
  /** Overhead of a message, in tokens. */
  readonly perMessage: number;
  /** Maximum tokens of one text in the context: longer texts are cut when they are added, and stay cut. */
  readonly longest: number;
};

type ContextPiece = {
  readonly role: ContextMessage['role'];
  readonly id: string;
  readonly text: string;
  readonly tokens: number;
};

/** The id by which the task can be recalled if it is too long for the context. */
export const taskId = 'task';

/** Minimum tokens of a piece: a shorter one would say nothing. */
const minPiece = 40;

/** Tokens added per piece, because separators may be tokenized differently in context. */
const seam = 2;

const openingLine =
  'Earlier work stands in short below, oldest first. read_memory with an id (such as o1, p2, s3 or a17) brings back the full record.';

/** Builds the context within the budget. */
export function contextOf(state: TrajectoryState, budget: number, measure: ContextMeasure): Context {
  const messages = messagesOf(fitted(piecesOf(state, measure), budget, measure), measure);
  return {
    messages: messages.map(({ role, content }) => ({ role, content })),
    text: messages.map(({ content }) => content).join('\n\n'),
    tokens: messages.reduce((sum, { tokens }) => sum + tokens, 0),
  };
}

/** Returns the tokens of the uncut context. Cheap: texts were counted when they were added. */
export function tokensOf(state: TrajectoryState, measure: ContextMeasure): number {
  return piecesOf(state, measure).reduce((sum, { tokens }) => sum + tokens + measure.perMessage, 0);
}

/** Returns the tokens of both texts of an action in the context. */
export function costOf(
  { id, action, observation }: Omit<NumberedAction, 'cost'>,
  { count }: ContextMeasure,
): NumberedAction['cost'] {
  return { action: count(action) + seam, observation: count(observationText({ id, observation })) + seam };
}

/** Returns the tokens of a summary in the context. */
export function entryTokens(summary: Omit<Summary, 'tokens' | 'memory'>, { count }: ContextMeasure): number {
  return count(entryText(summary)) + seam;
}

/** Returns the tokens of a sub-goal with its actions. */
export function subgoalTokens(subgoal: Subgoal, measure: ContextMeasure): number {
  return subgoalPieces(subgoal, measure).reduce((sum, { tokens }) => sum + tokens + measure.perMessage, 0);
}

/** Returns the tokens of all finished sub-goals that are shown in full. */
export function waitingTokens({ entries }: TrajectoryState, measure: ContextMeasure): number {
  const waiting = entries.filter((entry) => entry.kind === 'subgoal');
  return waiting.reduce((sum, subgoal) => sum + subgoalTokens(subgoal, measure), 0);
}

function piecesOf(state: TrajectoryState, measure: ContextMeasure): readonly ContextPiece[] {
  const task = state.goal.trim() === '' ? '(not named)' : state.goal;
  const pieces: ContextPiece[] = [said(taskId, `# Task\n${task}`, measure)];
  if (state.entries.some(({ kind }) => kind === 'summary')) pieces.push(said('', openingLine, measure));
  for (const entry of state.entries) {
    if (entry.kind === 'subgoal') pieces.push(...subgoalPieces(entry, measure));
    else pieces.push({ role: 'user', id: entry.id, text: entryText(entry), tokens: entry.tokens });
  }
  return state.open ? [...pieces, ...subgoalPieces(state.open, measure)] : pieces;
}

/** Returns the pieces of a sub-goal. They are the same while it is open and when it is finished, so that the prefix does not change. */
function subgoalPieces(
  { id, goal, outcome, actions }: Subgoal,
  measure: ContextMeasure,
): readonly ContextPiece[] {
  return [
    said(id, goal.trim() === '' ? `# Sub-goal ${id}` : `# Sub-goal ${id}: ${goal}`, measure),
    ...actions.flatMap((one): readonly ContextPiece[] => {
      const { action, observation } = one.shown ?? one;
      const { cost } = one;
      const sees: ContextPiece = {
        role: 'user',
        id: one.id,
        text: observationText({ id: one.id, observation }),
        tokens: cost.observation,
      };
      // Some providers refuse a message without text.
      if (action.trim() === '') return [sees];
      return [{ role: 'assistant', id: one.id, text: action, tokens: cost.action }, sees];
    }),
    ...(outcome === undefined ? [] : [said(id, `[${id} is done] ${outcome}`, measure)]),
  ];
}

function said(id: string, whole: string, { count, longest }: ContextMeasure): ContextPiece {
  const text = cut(whole, longest, id, count);
  return { role: 'user', id, text, tokens: count(text) + seam };
}

/** Fits the pieces into the budget: the longest are cut to a common length, and if there are too many, the oldest are left out. */
function fitted(
  pieces: readonly ContextPiece[],
  budget: number,
  measure: ContextMeasure,
): readonly ContextPiece[] {
  const { count, perMessage } = measure;
  if (pieces.reduce((sum, { tokens }) => sum + tokens + perMessage, 0) <= budget) return pieces;
  const few = fewer(pieces, Math.floor(budget / (minPiece + perMessage)), measure);
  const cap = commonCap(
    few.map(({ tokens }) => tokens),
    budget - few.length * perMessage,
  );
  return few.map((piece) => {
    if (piece.tokens <= cap) return piece;
    const text = cut(piece.text, cap - seam, piece.id, count);
    return { ...piece, text, tokens: count(text) + seam };
  });
}

function fewer(
  pieces: readonly ContextPiece[],
  max: number,
  measure: ContextMeasure,
): readonly ContextPiece[] {
  if (pieces.length <= max) return pieces;
  const [task, ...rest] = pieces;
  const kept = rest.slice(rest.length - (max - 2));
  const left = rest.slice(0, rest.length - kept.length).filter(({ id }) => id !== '');
  const note = `[${left[0]?.id} to ${left.at(-1)?.id} are not shown; read_memory has them.]`;
  return [task!, said('', note, measure), ...kept];
}

/** Returns the largest cap such that the costs, each limited to it, sum up to at most `budget`. */
function commonCap(costs: readonly number[], budget: number): number {
  const sorted = costs.toSorted((a, b) => a - b);
  let left = budget;
  for (const [at, cost] of sorted.entries()) {
    const share = Math.floor(left / (sorted.length - at));
    if (cost > share) return share;
    left -= cost;
  }
  return budget;
}

type ContextTurn = ContextMessage & { readonly tokens: number };

/** Joins adjacent pieces of one role into a message. */
function messagesOf(pieces: readonly ContextPiece[], { perMessage }: ContextMeasure): readonly ContextTurn[] {
  const turns: ContextTurn[] = [];
  for (const { role, text, tokens } of pieces) {
    const last = turns.at(-1);
    if (last?.role === role) {
      const content = `${last.content}\n\n${text}`;
      turns[turns.length - 1] = { role, content, tokens: last.tokens + tokens };
    } else {
      turns.push({ role, content: text, tokens: tokens + perMessage });
    }
  }
  return turns;
}

/** Maximum UTF-16 units of a first line. */
const maxTitle = 740;

/** Writes a summary: a line that says what it is, then its text. */
export function entryText(summary: Omit<Summary, 'tokens' | 'memory'>): string {
  return summary.text === '' ? headOf(summary) : `${headOf(summary)}\n${summary.text}`;
}

/** Writes the first line of a summary: `[s3 a9-a14] Find the test → It is in auth.test.ts`. */
function headOf(entry: Omit<Summary, 'tokens' | 'memory'>): string {
  const { a, s } = entry.covers;
  const id = [entry.id, entry.level > 1 ? rangeOf('s', s) : '', rangeOf('a', a)];
  const title =
    entry.title ?? titleOf({ goal: oneLine(entry.goal), outcome: oneLine(entry.outcome ?? '') }, maxTitle);
  return `[${id.filter((part) => part !== '').join(' ')}]${title && ` ${title}`}`;
}

/** Writes the observation of an action, as a user message. */
function observationText({ id, observation }: { readonly id: string; readonly observation: string }) {
  return `[${id}]\n${observation.trim() === '' ? '(no output)' : observation}`;
}

function resultOf({ recalls, observation }: NumberedAction): string {
  return recalls === undefined ? observation : `(${recalls} was read again)`;
}

/** Makes the outline node of an entry. */
export function entryNode(entry: TrajectoryEntry): OutlineNode {
  if (entry.kind === 'summary') {
    const title = headOf({ ...entry, covers: {} }).slice(entry.id.length + 3);
    return nodeOfText(entry.level, entry.id, title, entry.text);
  }
  const steps = entry.actions.flatMap((action) => stepsOf(action).map((step) => ({ step, id: action.id })));
  return nodeOf(
    steps.map(({ step }) => step),
    { id: entry.id, goal: entry.goal, givenOutcome: entry.outcome, idOfStep: (at) => steps[at]?.id ?? '' },
  );
}

/** Splits an action into what was said and what was called: the call is its last line. An action without a result was said. */
function stepsOf(action: NumberedAction): readonly SummaryStep[] {
  const lines = action.action.trim().split('\n');
  const call = lines.at(-1) ?? '';
  const result = resultOf(action);
  if (result.trim() === '' && !/^\S+ *[[{(]/.test(call)) return [saidStep(action.action)];
  const before = lines.slice(0, -1).join('\n').trim();
  const [, tool = '', rest = ''] = /^(\S*)\s*([^]*)$/.exec(call) ?? [];
  const input = rest.startsWith('{') ? rest : JSON.stringify(rest === '' ? {} : { command: rest });
  return [
    ...(before === '' ? [] : [saidStep(before)]),
    { type: 'called', tool, input, result, failed: false },
  ];
}

function saidStep(text: string): SummaryStep {
  return { type: 'said', by: 'assistant', text };
}

/** Longer names are not whole in the guidance and in a first line. */
const maxNamed = 240;

/** Converts an entry into steps for a summarizer that may refer to single actions by their ids, as a model does. */
export function guidedSteps(entry: TrajectoryEntry): readonly SummaryStep[] {
  if (entry.kind === 'summary') return [saidStep(entryText({ ...entry, covers: {} }))];
  const { id, goal, outcome = '', actions } = entry;
  return [
    ...(goal.length > maxNamed ? [saidStep(`${id} goal: ${goal}`)] : []),
    ...actions.map((action): SummaryStep => {
      const [, tool = '', input = ''] = /^(\S*)\s*([^]*)$/.exec(action.action) ?? [];
      return { type: 'called', tool: `${action.id} ${tool}`, input, result: resultOf(action), failed: false };
    }),
    ...(outcome.length > maxNamed ? [saidStep(`${id} outcome: ${outcome}`)] : []),
  ];
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
function cut(text: string, maxTokens: number, id: string, count: CountTokens): string {
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
