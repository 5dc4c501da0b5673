/**
 * Surveys the steps of a conversation, read once in order: what the user asked, what was done and with which outcome, what was found, and what is
 * open. Linear. Pure.
 */
import { parseRecord } from '../conversation/json-scan.ts';
import { type Fact, factsIn, isProse, maxTyped } from './facts.ts';
import { oneLine, typedText, wholeWords } from './outcome.ts';
import { endsOf, linesOf, nameOf, partsOf, plain, sentencesOf } from './sentences.ts';
import { planIn, stepWords, type StepWords } from './step-line.ts';
import type { SummaryStep } from './summarizer.ts';
import { createValues, type Values } from './values.ts';

/** The words and deeds in some steps. */
export type Survey = {
  /** The user's requests, word for word, in order, each with its worth. */
  readonly asked: Map<string, number>;
  /** Sentences of replies and results, in order. */
  readonly facts: readonly Fact[];
  /** Calls, in order, each with the index of its step. */
  readonly calls: readonly SurveyedCall[];
  /** The newest plan in a call: items by status. */
  readonly plan: ReadonlyMap<string, readonly string[]>;
  readonly values: Values;
  /** The last words of the model. */
  readonly lastSaid: string;
  /** The reply after which no call follows, or else the last line of the last result, if it is a sentence. */
  readonly outcome: string;
};

export type SurveyedCall = { readonly at: number; readonly words: StepWords };

/** Surveys steps. */
export function survey(steps: readonly SummaryStep[]): Survey {
  const asked = new Map<string, number>();
  const calls: SurveyedCall[] = [];
  const values = createValues();
  let plan: ReadonlyMap<string, readonly string[]> = new Map();
  for (const [at, step] of steps.entries()) {
    if (step.type === 'said') {
      if (step.by === 'user') addAsked(asked, step.text);
      continue;
    }
    const { tool, input, result, failed } = step;
    values.add(tool, input);
    const words = stepWords({ tool, input, result, isError: failed || undefined });
    calls.push({ at, words });
    if (words.user && words.user.words !== '') addAsked(asked, words.user.words);
    plan = planByStatus(input) ?? plan;
  }
  const last = steps.findLast((step) => step.type === 'said' && step.by === 'assistant');
  const facts = factsIn(steps, new Map(calls.map(({ at, words }) => [at, words])));
  return {
    asked,
    facts,
    calls,
    plan,
    values,
    lastSaid: last?.type === 'said' ? last.text : '',
    outcome: outcomeOf(steps),
  };
}

/** The part of a message that is kept word for word before all else. */
const maxQuoted = 400;

function addAsked(asked: Map<string, number>, text: string): void {
  const { words } = typedText(text);
  if (words.length > maxTyped) {
    const begin = sentencesOf(words.slice(0, 2_000))[0];
    if (asked.size === 0 && begin !== undefined) asked.set(begin, 2);
    return;
  }
  let quoted = 0;
  for (const line of linesOf(words)) {
    for (const sentence of line.length > maxQuoted ? partsOf(line) : [line]) {
      quoted += sentence.length;
      if (!asked.has(sentence)) asked.set(sentence, asked.size === 0 ? 3 : quoted <= maxQuoted ? 2 : 1);
    }
  }
}

// Outcome and plan

function outcomeOf(steps: readonly SummaryStep[]): string {
  const last = steps.findLast((step) => step.type === 'called' || step.by === 'assistant');
  if (last === undefined) return '';
  if (last.type === 'said') return last.text;
  const lines = endsOf(last.result ?? '', 4_000)
    .trimEnd()
    .split('\n');
  const line = oneLine(lines.at(-1) ?? '');
  return line.length <= 300 && isProse(line) ? line : '';
}

const maxItems = 40;

/** Returns the items of a plan in the arguments of a call by status, in the words of the call; undefined if there is no plan. */
function planByStatus(argumentsJson: string): ReadonlyMap<string, readonly string[]> | undefined {
  if (!argumentsJson.includes('"status"')) return undefined;
  const items = planIn(parseRecord(argumentsJson) ?? {})?.slice(-maxItems);
  if (items === undefined || items.some(({ words }) => words === '')) return undefined;
  const plan = new Map<string, string[]>();
  for (const { status, words } of items) {
    const key = nameOf(plain(status));
    plan.set(key, [...(plan.get(key) ?? []), wholeWords(oneLine(words), 160)]);
  }
  return plan;
}

/** True for the status of an item that needs nothing more. */
export function isClosed(status: string): boolean {
  return /^(?:completed?|done|finished|closed|resolved|cancell?ed|skipped|success\w*)$/i.test(status);
}
