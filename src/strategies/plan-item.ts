/**
 * Which item of a plan a call has begun: many agents keep a list of tasks by a tool. Its names differ, the shape does not: items that say
 * how they stand. Pure, never throws.
 */
import { argumentsIn, type Fields } from '../conversation/arguments.ts';
import { planItems } from '../outline/plan-state.ts';

/** Reads the calls of one conversation, in their order. */
export interface PlanReader {
  /** The item that is worked on from this call on; undefined where the call is about something else, or changes nothing of that. */
  begun(argumentsJson: string, result: string | undefined): string | undefined;
}

export function createPlanReader(): PlanReader {
  /** What items that have an id are about. */
  const named = new Map<string, string>();
  let current: string | undefined;

  function textOf(item: Fields): string | undefined {
    const id = idOf(item);
    return nameOf(item) ?? (id === undefined ? undefined : (named.get(id) ?? `task ${id}`));
  }

  return {
    begun(argumentsJson, result) {
      const sent = fieldsOf(argumentsJson);
      if (sent === undefined) return undefined;
      const id = result === undefined ? undefined : /#(\d{1,6})\b/.exec(result.slice(0, 400))?.[1];
      const name = nameOf(sent);
      if (id !== undefined && name !== undefined && !('status' in sent)) named.set(id, name);
      const items = planItems(sent) ?? ('status' in sent && idOf(sent) !== undefined ? [sent] : []);
      const active = items.find(({ status }) => typeof status === 'string' && activeStatus.test(status));
      const text = active && textOf(active);
      if (text === undefined || text === current) return undefined;
      current = text;
      return text;
    },
  };
}

const activeStatus = /^(?:in[-_ ]?progress|active|doing|started|running|current)$/i;

function nameOf(item: Fields): string | undefined {
  for (const key of ['content', 'subject', 'step', 'title', 'task', 'text', 'name', 'description']) {
    const value = item[key];
    if (typeof value === 'string' && value.trim() !== '') return value.trim();
  }
  return undefined;
}

function idOf(item: Fields): string | undefined {
  for (const key of ['taskId', 'task_id', 'id']) {
    const value = item[key];
    if (typeof value === 'string' || typeof value === 'number') return String(value);
  }
  return undefined;
}

function fieldsOf(json: string): Fields | undefined {
  // Most calls are about something else, and some are long.
  if (!json.includes('"status"') && !json.includes('"subject"')) return undefined;
  return argumentsIn(json);
}
