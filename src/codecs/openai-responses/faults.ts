/**
 * Finds the rules that an OpenAI Responses body breaks, with `JSON.parse` alone.
 * https://platform.openai.com/docs/api-reference/responses/create
 */
import type { JsonRecord } from '../../conversation/json-record.ts';
import { objectsOf, parsedBody, wordAt } from '../parsed-body.ts';

const callKinds = ['function', 'custom_tool', 'local_shell', 'shell', 'apply_patch', 'computer'] as const;

export function faults(body: Uint8Array): readonly string[] {
  const parsed = parsedBody(body);
  if (!parsed) return ['body-is-json'];
  const { input } = parsed;
  const continues = parsed['previous_response_id'] || parsed['conversation'];
  if (typeof input === 'string') return [];
  const items = objectsOf(input);
  if (items.length === 0) return continues ? [] : ['messages-not-empty'];
  const isWhole = !continues && !items.some(({ type, role }) => type === 'item_reference' || !(type ?? role));
  return [...pairing(items, isWhole), ...reasoning(items), ...contents(items)];
}

function pairing(items: readonly JsonRecord[], isWhole: boolean): readonly string[] {
  const found: string[] = [];
  const open = new Set<string>();
  const answered = new Set<string>();
  for (const item of items) {
    const type = String(item['type']);
    const kind = callKinds.find((one) => type === `${one}_call` || type === `${one}_call_output`);
    const id = wordAt(item, 'call_id') ?? (kind === 'local_shell' ? wordAt(item, 'id') : undefined);
    if (kind === undefined || id === undefined) continue;
    const key = `${kind} ${id}`;
    if (type === `${kind}_call`) {
      if (open.has(key)) found.push('call-ids-differ');
      open.add(key);
    } else if (open.delete(key)) answered.add(key);
    else if (answered.has(key)) found.push('one-result-a-call');
    else if (isWhole) found.push('results-answer-calls');
  }
  for (const _ of open) found.push('calls-answered-next');
  return found;
}

/** "Item 'rs_…' of type 'reasoning' was provided without its required following item": an item of the model that is no reasoning. */
function reasoning(items: readonly JsonRecord[]): readonly string[] {
  return items.flatMap(({ type }, index) => {
    const next = items[index + 1];
    if (type !== 'reasoning' || (next && isOfModel(next))) return [];
    return ['reasoning-is-followed'];
  });
}

function isOfModel({ type, role }: JsonRecord): boolean {
  if (typeof role === 'string') return role === 'assistant';
  return type !== 'reasoning' && !String(type).endsWith('_output') && type !== 'compaction_trigger';
}

function contents(items: readonly JsonRecord[]): readonly string[] {
  return items.flatMap((item) => {
    const isMessage =
      item['type'] === 'message' || (item['type'] === undefined && item['role'] !== undefined);
    return isMessage && (item['content'] === undefined || item['content'] === null)
      ? ['content-not-empty']
      : [];
  });
}
