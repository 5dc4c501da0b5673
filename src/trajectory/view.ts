/**
 * The context of a trajectory: what an agent sends to its model. Finished work comes first and does not change from turn to turn; then actions as
 * turns of two roles. Always under the budget: if folding has not made enough space, texts are cut for this call. Pure.
 */
import type { CountTokens } from '../conversation/fit.ts';
import { cut, entryText, observationText } from './layout.ts';
import type { NumberedAction, Subgoal, Summary, TrajectoryState } from './state.ts';

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
