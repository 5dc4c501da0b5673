/** Turns what the schema found wrong into sentences: key, value, where it came from, and what it may be. Pure. */
import type { z } from 'zod';
import { nearest } from '../../engine/nearest.ts';
import { type Layered, spellOrigin } from './layers.ts';
import { describeAt } from './options.ts';

type Issue = z.core.$ZodIssue;

/** One sentence or two for each problem, in the order of the schema. */
export function spellProblems(issues: readonly Issue[], layered: Layered): readonly string[] {
  return issues
    .flatMap(flattened)
    .flatMap((issue) =>
      issue.code === 'unrecognized_keys'
        ? issue.keys.map((key) => spellUnknown([...issue.path, key], layered))
        : [spellBad(issue, layered)],
    );
}

/** "False or an object" that is neither right: the object's own problems say more, where it is an object. */
function flattened(issue: Issue): readonly Issue[] {
  if (issue.code !== 'invalid_union') return [issue];
  const inner = issue.errors.find((branch) => branch.some((one) => one.path.length > 0));
  if (inner === undefined) return [issue];
  return inner.map((one) => ({ ...one, path: [...issue.path, ...one.path] })).flatMap(flattened);
}

function spellBad(issue: Issue, layered: Layered): string {
  const { told, fallback } = describeAt(issue.path);
  const allowed = issue.code === 'custom' ? issue.message : told?.allowed;
  const value = told?.secret ? 'not allowed' : shown(valueAt(layered.value, issue.path) ?? fallback);
  const origin = layered.originOf(issue.path);
  const sentence = `${issue.path.join('.')} is ${value} (${spellOrigin(origin)}), but must be ${allowed ?? 'an object'}.`;
  return origin.type === 'variable' && value.startsWith('"tcp://') ? `${sentence} ${serviceLinks}` : sentence;
}

/** https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables */
const serviceLinks =
  'Kubernetes sets it so beside a Service of that name: set enableServiceLinks: false in the pod, or give a flag.';

function spellUnknown(path: readonly PropertyKey[], layered: Layered): string {
  const parent = path.slice(0, -1);
  const { keys } = describeAt(parent);
  const meant = nearest(String(path.at(-1)), keys);
  const hint = meant === undefined ? '' : ` Did you mean ${[...parent, meant].join('.')}?`;
  const origin = spellOrigin(layered.originOf(path));
  return `${path.join('.')} (${origin}) is not an option.${hint} Known there: ${keys.join(', ')}.`;
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (inside, key) => (inside as Record<PropertyKey, unknown> | undefined)?.[key],
    value,
  );
}

/** Short, on one line, and without what stands before an @, in a URL or what is nearly one: that is a password. */
function shown(value: unknown): string {
  const text = (JSON.stringify(value) ?? 'missing').replaceAll(/"(\w+:\/\/)?[^"]*@/g, '"$1...@');
  return text.length > 80 ? `${text.slice(0, 79).toWellFormed()}…` : text;
}
