/**
 * Finds how the items of a request depend on each other beyond the conversation view: reasoning and what it led to, the newest
 * compaction, outputs whose call the provider keeps. Computed once for each conversation.
 */
import type { Conversation, Message } from '../../conversation/conversation.ts';
import { parseSpan, scanObject, skipSpace } from '../../conversation/json-scan.ts';
import { pairCalls } from '../../conversation/turns.ts';
import { lastMembers, stringAt } from '../read-body.ts';

/**
 * Reasoning and what the model made of it, up to the next reasoning or the next item of another side. "Item 'rs_…' of type
 * 'reasoning' was provided without its required following item" and "Item 'fc_…' of type 'function_call' was provided without its
 * required 'reasoning' item": so a group stays or is removed as a whole.
 */
export type ReasoningGroup = { readonly reasoning: readonly number[]; readonly followers: readonly number[] };

export type InputStructure = {
  /** True when the history is a response or a conversation that the provider keeps; the input only continues it. */
  readonly continues: boolean;
  /** True when the input is one text, not a list: nothing can be removed from it or added to it. */
  readonly isText: boolean;
  readonly groups: readonly ReasoningGroup[];
  /** Groups by the index of a message in them. */
  readonly groupOf: ReadonlyMap<number, ReasoningGroup>;
  /** Index of the newest compaction item, which replaces everything ahead of it. */
  readonly compaction: number | undefined;
  /** True with items that refer to others we do not see. */
  readonly hasReferences: boolean;
  /** Outputs whose call is not in the input. */
  readonly strays: ReadonlySet<number>;
};

const known = new WeakMap<Conversation, InputStructure>();

export function structureOf(conversation: Conversation): InputStructure {
  const before = known.get(conversation);
  if (before) return before;
  const groups = groupsOf(conversation.messages);
  const compaction = conversation.messages.findLast((message) => isKind(message, 'compaction'))?.index;
  const structure = {
    continues: continuesElsewhere(headOf(conversation.body)),
    isText: conversation.body[conversation.messages[0]?.span.start ?? 0] === '"'.charCodeAt(0),
    groups,
    groupOf: new Map(
      groups.flatMap((group) =>
        [...group.reasoning, ...group.followers].map((index) => [index, group] as const),
      ),
    ),
    compaction,
    hasReferences: conversation.messages.some((message) => isKind(message, 'item_reference')),
    strays: new Set(pairCalls(conversation).orphans.map(({ message }) => message)),
  };
  known.set(conversation, structure);
  return structure;
}

/** True for an opaque item of this type. */
export function isKind(message: Message, kind: string): boolean {
  return message.parts.some((part) => part.type === 'opaque' && part.kind === kind);
}

export function isReasoning(message: Message | undefined): boolean {
  return message?.parts.some((part) => part.type === 'reasoning') ?? false;
}

/** Returns a member of an item that is a text. */
export function itemText(conversation: Conversation, message: Message, key: string): string | undefined {
  const member = membersOf(conversation, message)?.get(key);
  return stringAt(conversation.body, member);
}

/** True for a call that a program of the model's made, and for its output: they belong to an item that may not be changed. */
export function isOfProgram(conversation: Conversation, message: Message): boolean {
  const caller = membersOf(conversation, message)?.get('caller');
  if (!caller) return false;
  const value = parseSpan(conversation.body, caller.value);
  return typeof value === 'object' && value !== null && 'type' in value && value.type === 'program';
}

function membersOf({ body }: Conversation, { span }: Message) {
  return body[span.start] === '{'.charCodeAt(0)
    ? lastMembers(scanObject(body, span.start).members).byKey
    : undefined;
}

function groupsOf(messages: readonly Message[]): readonly ReasoningGroup[] {
  const groups: { reasoning: number[]; followers: number[] }[] = [];
  let open: { reasoning: number[]; followers: number[] } | undefined;
  for (const message of messages) {
    if (message.role !== 'assistant') open = undefined;
    else if (isReasoning(message)) {
      if (!open || open.followers.length > 0) {
        open = { reasoning: [], followers: [] };
        groups.push(open);
      }
      open.reasoning.push(message.index);
    } else open?.followers.push(message.index);
  }
  return groups;
}

/** Returns the two fields that say where the history is. */
function headOf(body: Uint8Array): Readonly<Record<string, unknown>> {
  const wanted = scanObject(body, skipSpace(body, 0)).members.filter(
    ({ key }) => key === 'previous_response_id' || key === 'conversation',
  );
  return Object.fromEntries(wanted.map(({ key, value }) => [key, parseSpan(body, value)]));
}

/** True for a request whose history the provider keeps. */
export function continuesElsewhere(fields: Readonly<Record<string, unknown>>): boolean {
  return isGiven(fields['previous_response_id']) || isGiven(fields['conversation']);
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '';
}
