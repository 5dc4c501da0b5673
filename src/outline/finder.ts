/**
 * Finds sub-goals in a conversation that names none. A sub-goal begins where the user speaks, where the next item of a plan is started, where
 * the model announces what it does next, where calls turn to another topic, and after seven calls at the latest. Linear. Pure.
 */
import { parseRecord, type JsonRecord } from '../conversation/json-scan.ts';
import { planItems } from './step-line.ts';
import { lastSegment } from './rank.ts';

/** One text or call, in no particular wire format. */
export type NeutralStep =
  | { readonly kind: 'said'; readonly by: 'user' | 'assistant' | 'client'; readonly text: string }
  | {
      readonly kind: 'called';
      readonly tool: string;
      /** The arguments as JSON. */
      readonly input: string;
      readonly result: string | undefined;
    };

/** A sub-goal: the steps from index `start` up to, not including, `end`. */
export type FoundSubgoal = {
  readonly start: number;
  readonly end: number;
  /** The goal, in the conversation's own words. */
  readonly goal: string;
  /** How its beginning was recognized. */
  readonly by: 'user' | 'plan' | 'words' | 'tool' | 'topic' | 'length';
};

/** Minimum calls of a sub-goal before words or a change of topic end it, and maximum calls. */
const minCalls = 3;
const maxCalls = 7;
/** Number of next calls whose names are compared with those of the sub-goal so far. */
const ahead = 3;

/** Splits the steps into sub-goals, in order; every step belongs to one. */
export function findSubgoals(steps: readonly NeutralStep[]): readonly FoundSubgoal[] {
  const plan = createPlanReader();
  const names = steps.map((step) => (step.kind === 'called' ? namesOf(step.input) : none));
  const found: FoundSubgoal[] = [];
  let open: Omit<FoundSubgoal, 'end'> | undefined;
  let calls = 0;
  let seen = new Set<string>();
  let tools = new Set<string>();

  for (const [at, step] of steps.entries()) {
    const border = borderAt(at, step);
    if (border !== undefined || open === undefined) {
      // A sub-goal without calls is merged with the next one.
      const start: number = open !== undefined && calls === 0 ? open.start : at;
      if (open !== undefined && calls > 0) found.push({ ...open, end: at });
      open = { start, ...(border ?? { goal: goalOf(step), by: 'length' }) };
      calls = 0;
      seen = new Set();
      tools = new Set();
    }
    if (step.kind !== 'called') continue;
    calls++;
    tools.add(step.tool);
    for (const name of names[at]!) seen.add(name);
  }
  if (open !== undefined) found.push({ ...open, end: steps.length });
  return found;

  function borderAt(at: number, step: NeutralStep): Pick<FoundSubgoal, 'goal' | 'by'> | undefined {
    if (step.kind === 'said' && step.by === 'user') return { goal: goalOf(step), by: 'user' };
    if (step.kind === 'said' && step.by === 'client') return undefined;
    if (step.kind === 'called') {
      const begun = plan.begun(step.input, step.result);
      if (begun !== undefined) return { goal: begun, by: 'plan' };
    }
    if (calls < minCalls) return undefined;
    if (step.kind === 'said') {
      const goal = intention(step.text);
      return goal === undefined ? undefined : { goal, by: 'words' };
    }
    if (!tools.has(step.tool)) return { goal: goalOf(step), by: 'tool' };
    if (isElsewhere(at)) return { goal: goalOf(step), by: 'topic' };
    return calls >= maxCalls ? { goal: goalOf(step), by: 'length' } : undefined;
  }

  /** True if neither this call nor the next ones name anything that the sub-goal named. */
  function isElsewhere(at: number): boolean {
    if (seen.size === 0 || names[at]!.length === 0) return false;
    const next: string[] = [];
    for (let step = at, left = ahead; step < steps.length && left > 0; step++) {
      if (steps[step]!.kind === 'called') {
        next.push(...names[step]!);
        left--;
      } else if ((steps[step] as { by?: string }).by === 'user') break;
    }
    return !next.some((name) => seen.has(name));
  }
}

const none: readonly string[] = [];

/** Words by which models announce another topic. "Let me" is not enough: models say it before every call. */
const turn =
  /^(?:now|next|then|finally|lastly|step \d+|phase \d+|first|second|third|moving on|the next|i['’]?ll (?:now|implement|start|add))\b/i;

/** Returns the sentence that announces the next action, among the first three; undefined if there is none. */
function intention(text: string): string | undefined {
  const sentences = text
    .trimStart()
    .slice(0, 600)
    .split(/(?<=[.!:])\s+|\n+/);
  const said = sentences.slice(0, 3).find((sentence) => turn.test(sentence));
  return said === undefined ? undefined : shortened(said);
}

function goalOf(step: NeutralStep): string {
  if (step.kind === 'said') return shortened(step.text.trim().split('\n')[0] ?? '');
  const name = namesOf(step.input)[0];
  return name === undefined ? step.tool : `${step.tool} ${name}`;
}

function shortened(text: string): string {
  return text.length <= 160 ? text : `${text.slice(0, 159).toWellFormed()}…`;
}

/** Returns the files and folders that a call names, by their last path segment, since models write one path in many ways. */
function namesOf(input: string): readonly string[] {
  const paths =
    input.slice(0, 4_000).match(/(?<![\w.@-])[\w.@-]*(?:\/[\w.@-]+)+|\b[\w-]{1,100}\.[a-z]{1,4}\b/g) ?? [];
  return [...new Set(paths.map(lastSegment))].slice(0, 20);
}

/** Follows the plan in the calls of one conversation, in order. Many agents keep a list of tasks by a tool: names differ, but items have a status. */
interface PlanReader {
  /** Returns the item that becomes active with this call; undefined if the call does not change the active item. */
  begun(argumentsJson: string, result: string | undefined): string | undefined;
}

/** Creates a plan reader; it never throws. */
export function createPlanReader(): PlanReader {
  /** Names of items by id. */
  const named = new Map<string, string>();
  let current: string | undefined;

  function textOf(item: JsonRecord): string | undefined {
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

function nameOf(item: JsonRecord): string | undefined {
  for (const key of ['content', 'subject', 'step', 'title', 'task', 'text', 'name', 'description']) {
    const value = item[key];
    if (typeof value === 'string' && value.trim() !== '') return value.trim();
  }
  return undefined;
}

function idOf(item: JsonRecord): string | undefined {
  for (const key of ['taskId', 'task_id', 'id']) {
    const value = item[key];
    if (typeof value === 'string' || typeof value === 'number') return String(value);
  }
  return undefined;
}

function fieldsOf(json: string): JsonRecord | undefined {
  // Most calls are not about a plan, and some are long.
  if (!json.includes('"status"') && !json.includes('"subject"')) return undefined;
  return parseRecord(json);
}
