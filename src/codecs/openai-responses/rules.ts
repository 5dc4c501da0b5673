/** Says which edits of an OpenAI Responses body are allowed and which must go together, and checks what a compressor could break. */
import type { FormatRules, Problem } from '../codec.ts';
import {
  type ReasoningGroup,
  computerCallOf,
  isKind,
  isOfProgram,
  itemText,
  isReasoning,
  mayHoldStub,
  structureOf,
} from './structure.ts';
import { objectsOf, wordAt } from '../../conversation/json-scan.ts';
import { parsedBody } from '../../conversation/steps.ts';
import { type Edit, exceptKept, lastMessageOf } from '../../conversation/edit.ts';
import { droppedMessages } from '../write-body.ts';
import type { Conversation, Message } from '../../conversation/conversation.ts';
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
    case 'replace-media':
      return !isOfProgram(conversation, message) && mayHoldStub(conversation, message);
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

/** Calls that the provider ran itself, each with its result in one item. Nothing refers to them. */
const runByProvider: ReadonlySet<string> = new Set([
  'web_search_call',
  'file_search_call',
  'code_interpreter_call',
]);

/** Other opaque items are kept unless a newer compaction item replaces them: "items before it may be dropped". */
function mayDropWithGroup(conversation: Conversation, message: Message): boolean {
  const { compaction, strays } = structureOf(conversation);
  if (strays.has(message.index) || isOfProgram(conversation, message)) return false;
  const isCarried = message.parts.some((part) => part.type === 'opaque' && !runByProvider.has(part.kind));
  const isReference = isKind(message, 'item_reference');
  return !isCarried || (compaction !== undefined && message.index < compaction && !isReference);
}

/** True for a place between reasoning and what it led to, or between calls and their outputs: nothing may be inserted there. */
function splits(conversation: Conversation, before: Message): boolean {
  const group = structureOf(conversation).groupOf.get(before.index);
  return before.role === 'tool' || (group !== undefined && before.index !== group.reasoning[0]);
}

/**
 * Removes reasoning if everything that followed it is removed, or if its computer call is spelled as the call of a function. Moves messages that are
 * inserted ahead of a compaction after it: nothing may precede one. Refuses edits that would remove only a part of a group.
 */
function complete(conversation: Conversation, edits: readonly Edit[]): ReturnType<FormatRules['complete']> {
  if (edits.length === 0) return { status: 'ok', edits };
  const { continues, groups, compaction } = structureOf(conversation);
  if (continues) return refused('The provider keeps the history of this request.');
  const gone = droppedMessages(conversation, edits);
  const alone: number[] = [];
  const respelled = new Set(
    edits.flatMap((edit) =>
      edit.kind === 'replace-media'
        ? (computerCallOf(conversation, conversation.messages[edit.message]!) ?? [])
        : [],
    ),
  );
  for (const group of groups) {
    // The provider would miss the call that the reasoning led to.
    const isRespelled = group.followers.some((index) => respelled.has(index) && !gone.has(index));
    if (isRespelled) for (const index of group.reasoning) if (!gone.has(index)) alone.push(index);
    if (isRespelled || isWhole(group, gone)) continue;
    if (!group.followers.every((index) => gone.has(index)) || group.followers.length === 0)
      return refused('Reasoning and the items after it go together or not at all.');
    for (const index of group.reasoning) if (!gone.has(index)) alone.push(index);
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

// Problems: broken invariants of OpenAI Responses, each with the provider's words.
// https://platform.openai.com/docs/guides/reasoning, https://platform.openai.com/docs/guides/function-calling

function problems(conversation: Conversation): readonly Problem[] {
  const { messages } = conversation;
  if (messages.length === 0)
    return [{ rule: 'messages-not-empty', message: 0, detail: 'there is no input item' }];
  return [
    ...pairing(conversation),
    ...approvals(conversation),
    ...messages.flatMap((message) => [
      ...reasoningProblems(messages, message),
      ...trigger(messages, message),
    ]),
  ];
}

/**
 * "No tool output found for function call call_…", "No tool call found for function call output with call_id call_…". An output
 * may come anywhere after its call; an id may be used again once its call is answered. Calls that the provider keeps cannot be
 * checked.
 */
function pairing(conversation: Conversation): readonly Problem[] {
  const { continues, hasReferences } = structureOf(conversation);
  const open = new Map<string, Message>();
  const answered = new Set<string>();
  const found: Problem[] = [];
  for (const message of conversation.messages) {
    for (const part of message.parts) {
      if (part.type === 'tool-call') {
        if (open.has(part.id))
          found.push(
            problem('call-ids-differ', message, `call ${part.id} occurs twice without an output between`),
          );
        open.set(part.id, message);
      } else if (part.type === 'tool-result') {
        if (open.delete(part.callId)) answered.add(part.callId);
        else if (answered.has(part.callId))
          found.push(problem('one-result-a-call', message, `call ${part.callId} has two outputs`));
        else if (!continues && !hasReferences)
          found.push(
            problem('results-answer-calls', message, `output ${part.callId} answers no call before it`),
          );
      }
    }
  }
  const unanswered = [...open].map(([id, message]) =>
    problem('calls-answered-next', message, `call ${id} has no output after it`),
  );
  return [...found, ...unanswered];
}

/** An approval names its request: "Approval response references unknown approval request". */
function approvals(conversation: Conversation): readonly Problem[] {
  const { continues, hasReferences } = structureOf(conversation);
  if (continues || hasReferences) return [];
  const asked = new Set<string | undefined>();
  return conversation.messages.flatMap((message) => {
    if (isKind(message, 'mcp_approval_request')) asked.add(itemText(conversation, message, 'id'));
    if (!isKind(message, 'mcp_approval_response')) return [];
    const id = itemText(conversation, message, 'approval_request_id');
    return asked.has(id)
      ? []
      : [
          problem(
            'approvals-answer-requests',
            message,
            `the approval answers ${id}, which nothing before it asks`,
          ),
        ];
  });
}

/**
 * "Item 'rs_…' of type 'reasoning' was provided without its required following item." The next item must be what the reasoning
 * led to, not more reasoning (openai/codex#1235).
 */
function reasoningProblems(messages: readonly Message[], message: Message): readonly Problem[] {
  if (!isReasoning(message)) return [];
  const next = messages[message.index + 1];
  return next?.role === 'assistant' && !isReasoning(next)
    ? []
    : [problem('reasoning-is-followed', message, 'no item of the model follows the reasoning')];
}

/** The trigger asks the provider to compact everything before it. */
function trigger(messages: readonly Message[], message: Message): readonly Problem[] {
  return isKind(message, 'compaction_trigger') && message.index < messages.length - 1
    ? [problem('compaction-trigger-is-last', message, 'something follows the compaction trigger')]
    : [];
}

function problem(rule: string, message: Message, detail: string): Problem {
  return { rule, message: message.index, detail };
}
