/**
 * Finds how the items of a request depend on each other beyond the conversation view: reasoning and what it led to, the newest
 * compaction, outputs whose call the provider keeps. Computed once for each conversation.
 */
import { openNotes } from '../../caches.ts';
import type { Conversation, Message } from '../../conversation/conversation.ts';
import {
  type Splice,
  isRecord,
  jsonBytes,
  parseSpan,
  scanObject,
  skipSpace,
} from '../../conversation/json-scan.ts';
import { inputOf, memoized } from '../../conversation/messages.ts';
import { callsByResult, pairCalls, placeKey } from '../../conversation/turns.ts';
import { lastMembers, stringAt } from '../read-body.ts';
import { recordAt, setMembers, stringIn } from '../shared-json.ts';
import type { MessageEdits } from '../write-body.ts';

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

const known = openNotes<Conversation, InputStructure>();

export function structureOf(conversation: Conversation): InputStructure {
  const before = known.get(conversation);
  if (before) return before;
  const structure = {
    continues: continuesElsewhere(headOf(conversation.body)),
    isText: conversation.body[conversation.messages[0]?.span.start ?? 0] === '"'.charCodeAt(0),
    ...itemsOf(conversation.messages),
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

// Computer calls. Their output takes nothing but a screenshot, so a stub can only stand in it if the call and its output are spelled as those of a
// function: the model still sees what it did, and the id of the screenshot.

const callsOf = memoized(callsByResult);

/** Returns the index of the computer call whose screenshot is in this message; undefined for all other messages. */
export function computerCallOf(conversation: Conversation, message: Message): number | undefined {
  if (itemText(conversation, message, 'type') !== 'computer_call_output') return undefined;
  const call = callsOf(conversation).get(placeKey({ message: message.index, part: 0 }));
  const isComputer =
    call && itemText(conversation, conversation.messages[call.message]!, 'type') === 'computer_call';
  return isComputer ? call.message : undefined;
}

/** Bytes of the smallest output that is spelled as that of a function: the function's call is longer than the computer's. */
const minScreenshotBytes = 1_000;

/** True unless a stub cannot stand for the screenshot in this message. Reasoning that led only to its call goes with the screenshot. */
export function mayHoldStub(conversation: Conversation, message: Message): boolean {
  if (itemText(conversation, message, 'type') !== 'computer_call_output') return true;
  const call = computerCallOf(conversation, message);
  if (call === undefined || message.span.end - message.span.start < minScreenshotBytes) return false;
  const group = structureOf(conversation).groupOf.get(call);
  const isOnlyFollower = group === undefined || group.followers.length === 1;
  return isOnlyFollower && !isOfProgram(conversation, conversation.messages[call]!);
}

/** Returns the splices that put the stub of a screenshot in its place; undefined for all other media. */
export function screenshotSplices(
  { message, media: [stubbed] }: MessageEdits,
  conversation: Conversation,
  dropped: ReadonlySet<number>,
): readonly Splice[] | undefined {
  const call = stubbed && computerCallOf(conversation, message);
  const asking = call === undefined ? undefined : conversation.messages[call]!;
  const part = asking?.parts[0];
  if (part?.type !== 'tool-call') return undefined;
  const { id, name } = part;
  const output = [{ type: 'input_text', text: stubbed!.edit.stub }];
  const answer = {
    span: message.span,
    bytes: jsonBytes({ type: 'function_call_output', call_id: id, output }),
  };
  if (dropped.has(asking!.index)) return [answer];
  const action = inputOf(conversation.body, asking!, part);
  const input = action.startsWith('[') ? `{"actions":${action}}` : action;
  return [
    { span: asking!.span, bytes: jsonBytes({ type: 'function_call', call_id: id, name, arguments: input }) },
    answer,
  ];
}

/** Returns a recalled content part in the form that the output of a function takes. */
export function recalledPart(json: string): Uint8Array {
  const bytes = new TextEncoder().encode(json);
  const isScreenshot = stringIn(JSON.parse(json), 'type') === 'computer_screenshot';
  return isScreenshot ? setMembers(bytes, { type: jsonBytes('input_image') }) : bytes;
}

function membersOf({ body }: Conversation, { span }: Message) {
  return body[span.start] === '{'.charCodeAt(0)
    ? lastMembers(scanObject(body, span.start).members).byKey
    : undefined;
}

/** Finds reasoning and items of special kinds in one pass, which takes a few milliseconds for 100,000 items. */
function itemsOf(
  messages: readonly Message[],
): Pick<InputStructure, 'groups' | 'groupOf' | 'compaction' | 'hasReferences'> {
  const groups: { reasoning: number[]; followers: number[] }[] = [];
  const groupOf = new Map<number, ReasoningGroup>();
  let open: { reasoning: number[]; followers: number[] } | undefined;
  let compaction: number | undefined;
  let hasReferences = false;
  for (const message of messages) {
    const { role, index, parts } = message;
    if (parts.some(({ type }) => type === 'opaque')) {
      if (isKind(message, 'compaction')) compaction = index;
      hasReferences ||= isKind(message, 'item_reference');
    }
    if (role !== 'assistant') open = undefined;
    else if (isReasoning(message)) {
      if (!open || open.followers.length > 0) {
        open = { reasoning: [], followers: [] };
        groups.push(open);
      }
      open.reasoning.push(index);
      groupOf.set(index, open);
    } else if (open) {
      open.followers.push(index);
      groupOf.set(index, open);
    }
  }
  return { groups, groupOf, compaction, hasReferences };
}

/** Returns the two fields that say where the history is. */
function headOf(body: Uint8Array): Readonly<Record<string, unknown>> {
  const wanted = scanObject(body, skipSpace(body, 0)).members.filter(
    ({ key }) => key === 'previous_response_id' || key === 'conversation',
  );
  return Object.fromEntries(wanted.map(({ key, value }) => [key, parseSpan(body, value)]));
}

/** Reads what the fields of a request say of its reply, and of the response or conversation that it continues at the provider. */
export function standingOf(
  fields: Readonly<Record<string, unknown>>,
): Pick<Conversation, 'wantsJson' | 'forbidsRecall' | 'previousReplyId'> {
  const { text, tool_choice: choice, previous_response_id: response, conversation } = fields;
  const format = stringIn(recordAt(text, 'format'), 'type') ?? 'text';
  const ids = [response, conversation, stringIn(conversation, 'id')];
  return {
    wantsJson: format !== 'text' && choice !== 'none',
    forbidsRecall: choice === 'none' || isRecord(choice),
    previousReplyId: ids.find((id): id is string => typeof id === 'string' && id !== ''),
  };
}

/** True for a request whose history the provider keeps. */
export function continuesElsewhere(fields: Readonly<Record<string, unknown>>): boolean {
  return isGiven(fields['previous_response_id']) || isGiven(fields['conversation']);
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '';
}
