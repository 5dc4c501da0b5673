/** Builds steps of a conversation for summaries and outlines. */
import type { SummaryStep } from '../../src/outline/summarizer.ts';

export const user = (text: string): SummaryStep => ({ type: 'said', by: 'user', text });

export const model = (text: string): SummaryStep => ({ type: 'said', by: 'assistant', text });

export const call = (tool: string, input: object, result = 'ok'): SummaryStep => ({
  type: 'called',
  tool,
  input: JSON.stringify(input),
  result,
  failed: false,
});
