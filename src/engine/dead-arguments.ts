/**
 * What the arguments of a message's calls would cost less with stubs in place of their long texts. Asked of every old message on every
 * request, so it is remembered with the parts, which are read once for all bodies in which the same bytes stand.
 */
import type { Message, Part } from '../conversation/conversation.ts';
import { longArguments } from '../strategies/lib/long-arguments.ts';
import type { EditedPlaces } from '../strategies/lib/editable-texts.ts';
import type { PlanInput } from './plan.ts';

/** Tokens of a stub in place of one text. */
const stubTokens = 80;

type Call = Part & { readonly type: 'tool-call' };

/** By call; for each way of counting what stubs would save. */
const known = new WeakMap<Call, Map<string, number>>();

/** Tokens that stubbing would save in this message; none where it may not be touched, or was already. */
export function deadArguments(
  input: PlanInput,
  gone: Pick<EditedPlaces, 'messages' | 'parts' | 'inputs'>,
  message: Message,
): number {
  const { index, role, parts } = message;
  if (role !== 'assistant' || gone.messages.has(index) || input.protects.message(index)) return 0;
  return parts.reduce((sum, part, at) => {
    const key = `${index}.${at}`;
    if (part.type !== 'tool-call' || gone.parts.has(key) || gone.inputs.has(key)) return sum;
    const saved = savedIn(input, message, part);
    const isKept =
      saved === 0 ||
      input.protects.part(index, at) ||
      input.protects.recalled(index, at) ||
      !input.codec.rules.mayEdit(input.conversation, {
        kind: 'replace-input',
        message: index,
        part: at,
        input: '{}',
        memory: '',
      });
    return isKept ? sum : sum + saved;
  }, 0);
}

function savedIn(
  { conversation, counter, compressionBytesThreshold: least }: PlanInput,
  message: Message,
  call: Call,
): number {
  if (call.input.end - call.input.start < least) return 0;
  const way = `${counter.name} ${least}`;
  const saved = known.get(call) ?? new Map<string, number>();
  known.set(call, saved);
  let tokens = saved.get(way);
  if (tokens === undefined) {
    const values = longArguments(conversation, message, call, least)?.values ?? [];
    tokens = values.reduce((sum, { text }) => sum + Math.max(0, counter.text(text) - stubTokens), 0);
    saved.set(way, tokens);
  }
  return tokens;
}
