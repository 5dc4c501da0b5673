/**
 * Finds sub-goals in a conversation that names none: where the user speaks, where a plan's next item is begun, where the model says what
 * it does next, where calls turn to other things, and at the latest after seven calls. Linear in the steps. Pure.
 */
import { argumentsIn, type JsonRecord } from '../conversation/json-record.ts';
import { planItems } from './notes.ts';

/** One thing that was said or done, without a wire format. */
export type NeutralStep =
  | { readonly kind: 'said'; readonly by: 'user' | 'assistant' | 'client'; readonly text: string }
  | {
      readonly kind: 'called';
      readonly tool: string;
      /** The arguments as JSON. */
      readonly input: string;
      readonly result: string | undefined;
    };

export type FoundSubgoal = {
  /** The steps from `start` on, up to but not with `end`. */
  readonly start: number;
  readonly end: number;
  /** In the conversation's own words. */
  readonly goal: string;
  /** What its beginning was known by. */
  readonly by: 'user' | 'plan' | 'words' | 'tool' | 'topic' | 'length';
};

/** Calls that a sub-goal has at least before words or a change of topic end it, and at most. */
const fewest = 3;
const most = 7;
/** Calls of which names are compared with those of the sub-goal so far. */
const ahead = 3;

/** Every step is in one of them, in order. None for no steps. */
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
      // What was begun and given up for another at once was no sub-goal.
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
    if (calls < fewest) return undefined;
    if (step.kind === 'said') {
      const goal = intention(step.text);
      return goal === undefined ? undefined : { goal, by: 'words' };
    }
    if (!tools.has(step.tool)) return { goal: goalOf(step), by: 'tool' };
    if (isElsewhere(at)) return { goal: goalOf(step), by: 'topic' };
    return calls >= most ? { goal: goalOf(step), by: 'length' } : undefined;
  }

  /** Neither this call nor the ones after it name anything that was named in the sub-goal. */
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

/** How models say that they turn to something else. A mere "let me" is not enough: they say it before every call. */
const turn =
  /^(?:now|next|then|finally|lastly|step \d+|phase \d+|first|second|third|moving on|the next|i['’]?ll (?:now|implement|start|add))\b/i;

/** The sentence that says what comes next, among the first ones; undefined where none does. */
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

/** Files and folders that a call names, by their last part: models name one file in many ways. */
function namesOf(input: string): readonly string[] {
  const paths = input.slice(0, 4_000).match(/[\w.@-]*(?:\/[\w.@-]+)+|\b[\w-]+\.[a-z]{1,4}\b/g) ?? [];
  return [...new Set(paths.map((path) => path.split('/').findLast((part) => part !== '') ?? path))].slice(
    0,
    20,
  );
}

/** Reads the calls of one conversation, in their order. */
interface PlanReader {
  /** The item that is worked on from this call on; undefined where the call is about something else, or changes nothing of that. */
  begun(argumentsJson: string, result: string | undefined): string | undefined;
}

export function createPlanReader(): PlanReader {
  /** What items that have an id are about. */
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
  // Most calls are about something else, and some are long.
  if (!json.includes('"status"') && !json.includes('"subject"')) return undefined;
  return argumentsIn(json);
}
