/** Finds what Responses refuses in items together: calls and their outputs, reasoning and what it led to, and what must be last. */
import type { KeptResponses } from './responses-memory.ts';
import type { JsonObject, Refusal } from './script.ts';

export type History = {
  readonly items: readonly JsonObject[];
  /** False when more items precede these, or are between them, than can be seen. */
  readonly isWhole: boolean;
  readonly kept: KeptResponses | undefined;
};

export function historyRefusal(history: History): Refusal | undefined {
  const message =
    repeatedItem(history) ??
    triggerBeforeEnd(history) ??
    unpaired(history) ??
    approvalOfNothing(history) ??
    reasoningAlone(history) ??
    withoutReasoning(history);
  return message === undefined ? undefined : { message, param: 'input' };
}

/** Only ids that were given here show that two items are one. */
function repeatedItem({ items, kept }: History): string | undefined {
  const seen = new Set<string>();
  for (const id of items.flatMap((item) => idOf(item) ?? [])) {
    if (seen.has(id) && kept?.isOurs(id) === true)
      return `Duplicate item found with id ${id}. Remove duplicate items from your input and try again.`;
    seen.add(id);
  }
  return undefined;
}

function triggerBeforeEnd({ items }: History): string | undefined {
  const at = items.findIndex((item) => item['type'] === 'compaction_trigger');
  return at >= 0 && at < items.length - 1
    ? 'A compaction_trigger item must be the last item of the input.'
    : undefined;
}

const calls: readonly string[] = [
  'function_call',
  'custom_tool_call',
  'local_shell_call',
  'shell_call',
  'apply_patch_call',
  'computer_call',
];

/** An output answers a call of its own kind anywhere ahead of it; a call is answered once. */
function unpaired({ items, isWhole }: History): string | undefined {
  const open = new Map<string, { readonly kind: string; readonly id: string }>();
  const answered = new Set<string>();
  for (const item of items) {
    const type = String(item['type']);
    const id = callIdOf(item);
    if (id === undefined) continue;
    if (calls.includes(type)) {
      const key = `${type} ${id}`;
      if (open.has(key))
        return `Duplicate ${spoken(type)} found with call_id ${id} before its output was given.`;
      open.set(key, { kind: type, id });
    } else if (type.endsWith('_output') && calls.includes(type.slice(0, -'_output'.length))) {
      const kind = type.slice(0, -'_output'.length);
      const key = `${kind} ${id}`;
      if (open.delete(key)) answered.add(key);
      else if (answered.has(key))
        return `Duplicate output found for ${spoken(kind)} with call_id ${id}. Remove duplicate outputs from your input and try again.`;
      else if (isWhole) return `No tool call found for ${spoken(kind)} output with call_id ${id}.`;
    }
  }
  const [first] = open.values();
  return first && `No tool output found for ${spoken(first.kind)} ${first.id}.`;
}

/** The output of a local shell names its call in `id`. */
function callIdOf(item: JsonObject): string | undefined {
  const { call_id: callId, id, type } = item;
  if (typeof callId === 'string') return callId;
  return type === 'local_shell_call_output' && typeof id === 'string' ? id : undefined;
}

function spoken(type: string): string {
  return type.replaceAll('_', ' ');
}

function approvalOfNothing({ items, isWhole }: History): string | undefined {
  if (!isWhole) return undefined;
  const asked = new Set<unknown>();
  for (const item of items) {
    if (item['type'] === 'mcp_approval_request') asked.add(item['id']);
    const answers = item['approval_request_id'];
    if (item['type'] === 'mcp_approval_response' && !asked.has(answers))
      return `Approval response references unknown approval request '${String(answers)}'.`;
  }
  return undefined;
}

/** The item after reasoning must be what the model made of it: not of the other side, and no more reasoning. */
function reasoningAlone({ items }: History): string | undefined {
  const at = items.findIndex((item, n) => item['type'] === 'reasoning' && !mayFollowReasoning(items[n + 1]));
  if (at < 0) return undefined;
  const name = idOf(items[at]!) ?? `input[${at}]`;
  return `Item '${name}' of type 'reasoning' was provided without its required following item.`;
}

const otherSide: readonly unknown[] = [
  'reasoning',
  'additional_tools',
  'configuration_update',
  'compaction_trigger',
  'mcp_approval_response',
  'tool_search_output',
];

function mayFollowReasoning(item: JsonObject | undefined): boolean {
  if (!item) return false;
  const { type, role } = item;
  if (typeof role === 'string') return role === 'assistant';
  const isOutput = calls.some((call) => type === `${call}_output`);
  return !isOutput && !otherSide.includes(type);
}

/** This is known only for items that were given here, and only while they have their ids. */
function withoutReasoning({ items, kept }: History): string | undefined {
  const seen = new Set<string>();
  for (const item of items) {
    const id = idOf(item);
    if (id === undefined) continue;
    seen.add(id);
    const needed = kept?.reasoningOf(id);
    if (needed !== undefined && !seen.has(needed))
      return `Item '${id}' of type '${typeof item['type'] === 'string' ? item['type'] : 'message'}' was provided without its required 'reasoning' item: '${needed}'.`;
  }
  return undefined;
}

function idOf({ id }: JsonObject): string | undefined {
  return typeof id === 'string' ? id : undefined;
}
