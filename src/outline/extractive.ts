/**
 * The extractive summarizer: no model, nothing made up, the same words for the same steps. It keeps what the user demanded word for word,
 * what was decided, what failed, how the plan stands, the first and last step, and, for all the rest of its budget, what the calls named.
 * Time is linear in what it reads. Pure.
 */
import { emptyNotes, note, type Notes } from './notes.ts';
import { readBody, valuesOf } from './read-body.ts';
import type { SummaryRequest, Summarizer } from './summarizer.ts';
import type { KnownValue } from './values.ts';
import { type Body, openBody } from './write-body.ts';

/** `extract` as a summarizer. Never rejects. */
export const extractiveSummarizer: Summarizer = {
  name: 'extractive',
  summarize: (request) => Promise.resolve(extract(request)),
};

/** At most `budget.most` tokens; undefined where nothing fits, or nothing was said. Never throws. */
export function extract({ steps, earlier, known, budget, count }: SummaryRequest): string | undefined {
  const notes = emptyNotes();
  for (const body of earlier) readBody(notes, body);
  for (const step of steps) note(notes, step);
  const body = openBody({ budget, count });
  fill(body, notes, new Set(known.flatMap(valuesOf)));
  return body.text();
}

/** In the order of what must not be missing. A share is what a section may have at most; what it leaves goes to those behind it. */
function fill(body: Body, notes: Notes, known: ReadonlySet<string>): void {
  const said = (as: 'rule' | 'wish') =>
    newest([...notes.said].flatMap(([line, is]) => (is === as ? [line] : [])));
  body.offer('steps', stepLines(notes), 'all');
  body.offer('said', said('rule'), 'all');
  if (notes.goal !== undefined && !notes.said.has(notes.goal)) body.offer('goal', [notes.goal], 0.1);
  if (notes.lastSaid !== undefined) body.offer('state', [notes.lastSaid], 0.15);
  const plan = body.offer('plan', planLines(notes), 0.12);
  body.offer('errors', newest(errorLines(notes)), 0.08);
  body.offer('prose', notes.prose, 0.3);
  body.offer('pasted', newest(notes.pasted), 0.1);
  body.offer('said', said('wish'), 0.1);
  const concluded = newest(notes.findings).filter((line) => line !== notes.lastSaid);
  body.offer('findings', concluded, 0.1);
  const planned = new Set([...notes.plan].flatMap((status) => (plan.has(planLine(status)) ? status[1] : [])));
  const isNew = ({ text }: KnownValue) => !known.has(text) && !planned.has(text);
  body.offerValues(notes.values.best(2_000).filter(isNew));
  body.offer('pasted', newest(notes.pasted), 'all');
  body.order('said', notes.said.keys());
  body.order('pasted', notes.pasted);
  body.order('errors', errorLines(notes));
  body.order('findings', notes.findings);
}

/** Newest first, to be offered so. */
function newest(lines: Iterable<string>): readonly string[] {
  return [...lines].toReversed();
}

function stepLines({ first, last }: Notes): readonly string[] {
  return first === undefined || last === undefined ? [] : [`first: ${first}`, `last: ${last}`];
}

/** What is still to be done before what is done: that list grows. */
function planLines({ plan }: Notes): readonly string[] {
  return [...plan].toSorted(([, a], [, b]) => a.length - b.length).map(planLine);
}

function planLine([status, items]: readonly [string, readonly string[]]): string {
  return `${status}: ${items.map((item) => JSON.stringify(item)).join(', ')}`;
}

function errorLines({ errors }: Notes): readonly string[] {
  return [...errors].map(([line, tool]) => `${tool}: ${JSON.stringify(line)}`);
}
