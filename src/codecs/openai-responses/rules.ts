/** Says which edits of an OpenAI Responses body are allowed, and which must go together. */
import type { FormatRules } from '../codec.ts';
import { problems } from './problems.ts';
import { type ReasoningGroup, isKind, isOfProgram, itemText, structureOf } from './structure.ts';
import { objectsOf, parsedBody, wordAt } from '../event-json.ts';
import { exceptKept } from '../what-stays.ts';
import { droppedMessages } from '../write-body.ts';
import type { Conversation, Message } from '../../conversation/conversation.ts';
import { type Edit, lastMessageOf } from '../../conversation/edit.ts';
import type { JsonRecord } from '../../conversation/json-scan.ts';

export const rules: FormatRules = {
  problems,
  faults,
  mayEdit: exceptKept(mayEdit),
  bindsPrefix: () => false,
  complete,
};

/**
 * Texts, outputs and the arguments of functions may change. System messages, encrypted reasoning and opaque items may not. A
 * request whose history the provider keeps is never edited: what was sent cannot be changed any more, and new input cannot be
 * distinguished from what was sent.
 */
function mayEdit(conversation: Conversation, edit: Edit): boolean {
  const message = conversation.messages[lastMessageOf(edit)];
  const { continues, isText } = structureOf(conversation);
  if (!message || continues) return false;
  if (isText && edit.kind !== 'replace-text') return false;
  if (edit.kind === 'insert-message') return !splits(conversation, message);
  if (message.role === 'system') return false;
  switch (edit.kind) {
    case 'replace-text': {
      const part = message.parts[edit.at.part];
      return (part?.type === 'text' || part?.type === 'tool-result') && edit.at.text in part.texts;
    }
    case 'replace-input':
      return (
        message.parts[edit.part]?.type === 'tool-call' &&
        itemText(conversation, message, 'type') === 'function_call' &&
        !isOfProgram(conversation, message)
      );
    case 'drop-part':
      return message.parts[edit.part] !== undefined && mayDropAlone(conversation, message);
    case 'drop-message':
      return mayDropWithGroup(conversation, message);
  }
}

/**
 * True for a call or its output that is not bound to anything that stays: reasoning is removed with its only follower, not with
 * one of several.
 */
function mayDropAlone(conversation: Conversation, message: Message): boolean {
  const type = message.parts[0]?.type;
  if (type !== 'tool-call' && type !== 'tool-result') return false;
  const group = structureOf(conversation).groupOf.get(message.index);
  return mayDropWithGroup(conversation, message) && (group === undefined || group.followers.length === 1);
}

/** Opaque items are kept unless a newer compaction item replaces them: "items before it may be dropped". */
function mayDropWithGroup(conversation: Conversation, message: Message): boolean {
  const { compaction, strays } = structureOf(conversation);
  if (strays.has(message.index) || isOfProgram(conversation, message)) return false;
  const isCarried = message.parts.some((part) => part.type === 'opaque');
  const isReference = isKind(message, 'item_reference');
  return !isCarried || (compaction !== undefined && message.index < compaction && !isReference);
}

/** True for a place between reasoning and what it led to, or between calls and their outputs: nothing may be inserted there. */
function splits(conversation: Conversation, before: Message): boolean {
  const group = structureOf(conversation).groupOf.get(before.index);
  return before.role === 'tool' || (group !== undefined && before.index !== group.reasoning[0]);
}

/**
 * Removes reasoning together with everything that followed it, and moves messages inserted ahead of a compaction behind it:
 * nothing may precede one. Refuses edits that would remove only a part of a group.
 */
function complete(conversation: Conversation, edits: readonly Edit[]): ReturnType<FormatRules['complete']> {
  if (edits.length === 0) return { status: 'ok', edits };
  const { continues, groups, compaction } = structureOf(conversation);
  if (continues) return refused('The provider keeps the history of this request.');
  const gone = droppedMessages(conversation, edits);
  const alone: number[] = [];
  for (const group of groups) {
    if (isWhole(group, gone)) continue;
    if (!group.followers.every((index) => gone.has(index)) || group.followers.length === 0)
      return refused('Reasoning and the items behind it go together or not at all.');
    alone.push(...group.reasoning.filter((index) => !gone.has(index)));
  }
  const moved = edits.map((edit) => behindCompaction(edit, compaction));
  if (moved.some((edit) => edit.kind === 'insert-message' && !conversation.messages[edit.before]))
    return refused('Nothing may be added before the compaction that ends this request.');
  if (alone.length === 0 && moved.every((edit, at) => edit === edits[at])) return { status: 'ok', edits };
  const reasoning = alone.map((message): Edit => ({ kind: 'drop-message', message, memory: undefined }));
  return { status: 'ok', edits: [...moved, ...reasoning] };
}

/** True for a group that stays or is removed as a whole. */
function isWhole({ reasoning, followers }: ReasoningGroup, gone: ReadonlySet<number>): boolean {
  const left = [...reasoning, ...followers].filter((index) => !gone.has(index));
  return left.length === 0 || left.length === reasoning.length + followers.length;
}

function behindCompaction(edit: Edit, compaction: number | undefined): Edit {
  if (edit.kind !== 'insert-message' || compaction === undefined || edit.before > compaction) return edit;
  return { ...edit, before: compaction + 1 };
}

function refused(reason: string): ReturnType<FormatRules['complete']> {
  return { status: 'refused', reason };
}

// Faults: the rules that a body breaks, found with `JSON.parse` alone, so that they do not depend on our own reader.
// https://platform.openai.com/docs/api-reference/responses/create

const callKinds = ['function', 'custom_tool', 'local_shell', 'shell', 'apply_patch', 'computer'] as const;

function faults(body: Uint8Array): readonly string[] {
  const parsed = parsedBody(body);
  if (!parsed) return ['body-is-json'];
  const { input } = parsed;
  const continues = parsed['previous_response_id'] || parsed['conversation'];
  if (typeof input === 'string') return [];
  const items = objectsOf(input);
  if (items.length === 0) return continues ? [] : ['messages-not-empty'];
  const holdsAll =
    !continues && !items.some(({ type, role }) => type === 'item_reference' || !(type ?? role));
  return [...callFaults(items, holdsAll), ...reasoningFaults(items), ...contentFaults(items)];
}

function callFaults(items: readonly JsonRecord[], holdsAll: boolean): readonly string[] {
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
    else if (holdsAll) found.push('results-answer-calls');
  }
  for (const _ of open) found.push('calls-answered-next');
  return found;
}

/** "Item 'rs_…' of type 'reasoning' was provided without its required following item": an item of the model that is no reasoning. */
function reasoningFaults(items: readonly JsonRecord[]): readonly string[] {
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

function contentFaults(items: readonly JsonRecord[]): readonly string[] {
  return items.flatMap((item) => {
    const isMessage =
      item['type'] === 'message' || (item['type'] === undefined && item['role'] !== undefined);
    return isMessage && (item['content'] === undefined || item['content'] === null)
      ? ['content-not-empty']
      : [];
  });
}
