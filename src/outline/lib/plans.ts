/**
 * Tells plans: those that a call sends as a whole, and those that tools keep item by item, of which the calls together make the state. Pure;
 * linear in its input.
 */
import type { JsonRecord } from '../../conversation/json-scan.ts';
import { groupBy } from '../../es2024.ts';
import { countOf, oneLine, quoted, wordsOf } from '../outcome.ts';

/** Maximum items that one line names; the rest are counted. */
const maxNamed = 12;

/** An item of a plan. `words` is empty if none of its values is a text of several words; `also` if there is no other such text. */
export type PlanItem = { readonly status: string; readonly words: string; readonly also: string };

const isDone = /^(?:completed?|done|finished)$/i;

/** Writes a plan: a new one as a whole, a later one by its progress. Items that `isNew` does not accept are counted only. */
export function planWords(
  items: readonly PlanItem[],
  isNew: (words: string) => boolean = () => true,
): string {
  const done = items.filter(({ status }) => isDone.test(status)).length;
  const now = items.find(({ status }) => isNow.test(status));
  const shown = done === 0 ? items.slice(0, maxNamed) : now ? [now] : [];
  const words = shown
    .map((item) => (isNew(item.words) ? quoted(item.words, 80) : ''))
    .filter((text) => text !== '');
  if (done === 0) return words.length > 0 ? words.join(', ') : countOf(items.length, 'item');
  return `${done} of ${items.length} done${words.length === 0 ? '' : `, ${oneLine(now!.status)} ${words.join('')}`}`;
}

const isNow = /progress|active|doing/i;

/** Writes a plan as it stands, in its own words: the next call of its tool repeats them. */
export function wholePlan(items: readonly PlanItem[]): string {
  return [...groupBy(items, ({ status }) => status)]
    .map(([status, of]) => {
      const texts = of.map(
        ({ words, also }) => `"${oneLine(words)}"${also === '' ? '' : ` (${oneLine(also)})`}`,
      );
      return `${oneLine(status)}: ${texts.join(', ')}`;
    })
    .join('; ');
}

// Plans that tools keep item by item

/** A change of one item: a new one, or a new state. Words and status are empty if they stay. */
export type TaskChange = { readonly id: string; readonly status: string; readonly words: string };

const taskIds = ['taskId', 'task_id', 'todoId', 'todo_id', 'id'];
const taskTitles = ['subject', 'title', 'content', 'task'];

/** True for a call that adds, changes or lists items of a plan that its tool keeps. */
export function isTaskCall(tool: string, sent: JsonRecord): boolean {
  const words = wordsOf(tool);
  if (!words.some((word) => /^(?:task|todo)s?$/.test(word))) return false;
  if (words.some((word) => /^(?:create|add|new)$/.test(word))) return textIn(sent, taskTitles) !== '';
  if (words.includes('update')) return textIn(sent, taskIds) !== '';
  return words.includes('list') && Object.keys(sent).length === 0;
}

/** Says in a few words what such a call was about. */
export function taskWords(sent: JsonRecord): string {
  const id = textIn(sent, taskIds);
  return [id === '' ? '' : `#${id}`, textIn(sent, ['status']), quoted(textIn(sent, taskTitles), 80)]
    .filter((words) => words !== '')
    .join(' ');
}

/** Reads what a call and its result say of items. */
export function taskChanges(sent: JsonRecord, result: string): readonly TaskChange[] {
  const words = oneLine(textIn(sent, taskTitles));
  const id = textIn(sent, taskIds);
  if (id !== '') return [{ id, status: textIn(sent, ['status']), words }];
  const [, made] = /#(\d{1,6})\b/.exec(result.slice(0, 200)) ?? [];
  if (words !== '') return made === undefined ? [] : [{ id: made, status: 'pending', words }];
  return [...result.slice(0, 20_000).matchAll(/^#(\d{1,6}) \[(\w{1,40})\] ([^\n]{1,400})$/gm)].map(
    ([, listed = '', status = '', title = '']) => ({ id: listed, status, words: oneLine(title) }),
  );
}

/** A call with a plan, or with changes of one. */
type PlanCall = { readonly plan: readonly PlanItem[]; readonly tasks?: readonly TaskChange[] };

/** Returns the plan as the newest of these calls leaves it; changes of single items make it together. */
export function newestPlan<Call extends PlanCall>(
  calls: readonly Call[],
): { readonly call: Call; readonly items: readonly PlanItem[] } | undefined {
  const call = calls.findLast(({ plan, tasks }) => plan.length > 0 || (tasks?.length ?? 0) > 0);
  if (call === undefined) return undefined;
  return { call, items: call.tasks ? planAfter(calls.flatMap(({ tasks }) => tasks ?? [])) : call.plan };
}

/** Returns the plan that changes lead to, in the order of its items. */
function planAfter(changes: readonly TaskChange[]): readonly PlanItem[] {
  const items = new Map<string, PlanItem>();
  for (const { id, status, words } of changes) {
    const before = items.get(id);
    const title = words === '' ? (before?.words ?? `#${id}`) : `#${id} ${words}`;
    items.set(id, { status: status === '' ? (before?.status ?? 'pending') : status, words: title, also: '' });
  }
  return [...items.values()].filter(({ status }) => status !== 'deleted');
}

function textIn(sent: JsonRecord, keys: readonly string[]): string {
  const found = keys
    .map((key) => sent[key])
    .find((value) => typeof value === 'string' || typeof value === 'number');
  return found === undefined ? '' : oneLine(String(found));
}
