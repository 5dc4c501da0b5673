import { describe, expect, it } from 'vitest';
import type { PreparedRequest } from '../engine/types.ts';
import { openBudget } from './recall-loop.ts';

/** Opens a budget for a request with this many tokens left in its window, in which every character is a token. */
function budgetOf(room: number | undefined, limits = { maxRounds: 2, maxTokens: 800 }) {
  return openBudget({ prepared: { room } as PreparedRequest, recall: limits });
}

const noRoom = 'The context window has no room left to read memory. Go on with what is there.';

describe('the budget of recalls', () => {
  it('shares what is left of the window between the answers of one round', () => {
    expect(budgetOf(1_000).forEach(1, 1)).toBe(800);
    expect(budgetOf(1_000).forEach(1, 2)).toBe(500);
    expect(budgetOf(1_000).forEach(1, 4)).toBe(250);
  });

  it('gives later answers only what earlier texts have left', () => {
    const budget = budgetOf(1_000);
    budget.spend('x'.repeat(300));
    expect(budget.forEach(1, 1)).toBe(700);
    budget.spend('x'.repeat(300));
    expect(budget.forEach(2, 1)).toBe(400);
    budget.spend('x'.repeat(300));
    expect(budget.forEach(2, 1)).toBe(noRoom);
  });

  it('has only the limit of one answer when the window is unknown', () => {
    const budget = budgetOf(undefined);
    budget.spend('x'.repeat(10_000));
    expect(budget.forEach(1, 9)).toBe(800);
  });

  it('ends with the last round, in which the model reads that there are no more', () => {
    const budget = budgetOf(1_000);
    expect([2, 3].map((round) => typeof budget.forEach(round, 1))).toEqual(['number', 'string']);
    expect([3, 4].map((round) => budget.isSpent(round))).toEqual([false, true]);
  });
});
