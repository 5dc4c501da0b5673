/**
 * The context of a trajectory: what an agent sends of it to its model. Finished stretches first, which do not change from turn to turn,
 * then actions as turns of two sides. Always under the budget: what folding has not made room for is cut here, for this once. Pure.
 */
import type { CountTokens } from '../conversation/fit.ts';
import { cut, entryText, observationText } from './layout.ts';
import type { NumberedAction, Subgoal, Summary, TrajectoryState } from './state.ts';

/** Sides alternate and the first and the last are the user's, as every provider takes it. */
export type ContextMessage = { readonly role: 'user' | 'assistant'; readonly content: string };

export type Context = {
  readonly messages: readonly ContextMessage[];
  /** The same as one text, for a prompt that has no sides. */
  readonly text: string;
  /** Of the messages, with what a message costs beside its content; reckoned from the pieces, so a little high. */
  readonly tokens: number;
};

export type ContextMeasure = {
  readonly count: CountTokens;
  /** Tokens of a message beside its content. */
  readonly perMessage: number;
  /** Tokens that one text may have in the context: longer ones are cut when they come, and stand so from then on. */
  readonly longest: number;
};

type ContextPiece = {
  readonly role: ContextMessage['role'];
  readonly id: string;
  readonly text: string;
  readonly tokens: number;
};

/** Recalls what the trajectory is for, where that is too long to stand in the context. */
export const taskId = 'task';

/** Tokens below which a piece says nothing any more. */
const leastPiece = 40;

/** A separator joins otherwise than alone, at worst. */
const seam = 2;

const openingLine =
  'Earlier work stands in short below, oldest first. read_memory with an id (such as o1, p2, s3 or a17) brings back the full record.';

export function contextOf(state: TrajectoryState, budget: number, measure: ContextMeasure): Context {
  const messages = messagesOf(fitted(piecesOf(state, measure), budget, measure), measure);
  return {
    messages: messages.map(({ role, content }) => ({ role, content })),
    text: messages.map(({ content }) => content).join('\n\n'),
    tokens: messages.reduce((sum, { tokens }) => sum + tokens, 0),
  };
}

/** What the context would have uncut. Costs a look at each entry: texts were counted when they came. */
export function tokensOf(state: TrajectoryState, measure: ContextMeasure): number {
  return piecesOf(state, measure).reduce((sum, { tokens }) => sum + tokens + measure.perMessage, 0);
}

/** What the two sides of an action have in the context. */
export function costOf(
  { id, action, observation }: Omit<NumberedAction, 'cost'>,
  { count }: ContextMeasure,
): NumberedAction['cost'] {
  return { action: count(action) + seam, observation: count(observationText({ id, observation })) + seam };
}

/** A summary's, as an entry of the context. */
export function entryTokens(summary: Omit<Summary, 'tokens' | 'memory'>, { count }: ContextMeasure): number {
  return count(entryText(summary)) + seam;
}

/** A finished sub-goal's, with its actions. */
export function subgoalTokens(subgoal: Subgoal, measure: ContextMeasure): number {
  return subgoalPieces(subgoal, measure).reduce((sum, { tokens }) => sum + tokens + measure.perMessage, 0);
}

/** Of all finished sub-goals that stand as they are. */
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

/** Spelled the same while it is open and when it is finished, so that nothing changes ahead of its end. */
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

/** As they are where they fit; else the longest are cut to one length, and where there are too many the oldest are left out. */
function fitted(
  pieces: readonly ContextPiece[],
  budget: number,
  measure: ContextMeasure,
): readonly ContextPiece[] {
  const { count, perMessage } = measure;
  if (pieces.reduce((sum, { tokens }) => sum + tokens + perMessage, 0) <= budget) return pieces;
  const few = fewer(pieces, Math.floor(budget / (leastPiece + perMessage)), measure);
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
  most: number,
  measure: ContextMeasure,
): readonly ContextPiece[] {
  if (pieces.length <= most) return pieces;
  const [task, ...rest] = pieces;
  const kept = rest.slice(rest.length - (most - 2));
  const left = rest.slice(0, rest.length - kept.length).filter(({ id }) => id !== '');
  const note = `[${left[0]?.id} to ${left.at(-1)?.id} are not shown; read_memory has them.]`;
  return [task!, said('', note, measure), ...kept];
}

/** The largest number such that the costs, none of them above it, come to `budget` at most. */
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

/** Pieces of one side that follow each other are one message. */
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
