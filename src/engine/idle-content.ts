/**
 * What of a conversation is dead weight: large, or whole steps, and so many requests old that it is not likely to be used again. Reckoned
 * from the conversation alone, so that every instance reckons the same, and from remembered counts, so that it is cheap on every request.
 */
import type { Message, Part } from '../conversation/conversation.ts';
import { unitsOf, userSpeaks } from '../conversation/turns.ts';
import type { Draft, PlanInput } from './plan.ts';
import { type Shrink, savedByMessage } from './references.ts';
import { type EditedPlaces, placesEdited, remainingTokens } from '../strategies/lib/editable-texts.ts';
import { longArguments } from '../strategies/lib/long-arguments.ts';
import type { EvictionCandidate, Evicts, KeepForRequests } from '../triggers/trigger.ts';

/** Tokens of a stub, and of what is left of a part that a stub was put in. */
const stubTokens = 60;
const leftTokens = 90;

/** In the order of the conversation. Nothing where the model could not ask for it again. */
export function deadWeight(
  input: PlanInput,
  start: Draft,
  keepForRequests: KeepForRequests,
): readonly EvictionCandidate[] {
  const { conversation, counter, protects, recallTool } = input;
  if (!recallTool) return [];
  const { messages } = conversation;
  const gone = placesEdited(start.edits);
  const steps = finishedSteps(input, gone.messages);
  const behind = tokensBehind(start, counter);
  const candidates: EvictionCandidate[] = [];
  const saved = savedByMessage(start.shrinks);
  const standing = (index: number) => counter.message(conversation, index) - (saved.get(index) ?? 0);
  const references = referencesIn(start.shrinks);
  let requests = 0;
  for (let index = messages.length - 1; index >= 0; index--) {
    const message = messages[index]!;
    const isReply = message.role === 'assistant';
    if (isReply && messages[index - 1]?.role !== 'assistant') requests++;
    if (gone.messages.has(index)) continue;
    if (protects.message(index)) {
      references.stays(index);
      continue;
    }
    const add = (evicts: Evicts, tokens: number, age: number) => {
      if (tokens > 0 && age > 0)
        candidates.push({
          ...evicts,
          message: index,
          tokens,
          requests: age,
          behind: behind(messages.length - index),
        });
    };
    const ofTexts = requests - (isReply ? keepForRequests.arguments : keepForRequests.results);
    const texts =
      ofTexts <= 0
        ? 0
        : isReply
          ? deadArguments(input, gone, message)
          : Math.max(
              references.least(index),
              deadResults(input, gone, message, standing) - references.owed(index),
            );
    add({ evicts: 'texts' }, texts, ofTexts);
    // The results of a step came with the request after its reply.
    const ofStep = requests - (isReply ? 1 : 0);
    const step = steps[index];
    const age = step === undefined ? 0 : ofStep - keepForRequests[step.kind];
    if (step && age > 0) {
      const left = whatIsLeft(gone, message, standing) - references.owed(index) - texts;
      add(
        step.kind === 'recalls'
          ? { evicts: 'recall', exchange: sumOf(step.messages, standing) }
          : { evicts: 'message' },
        left,
        age,
      );
    }
    if (texts === 0 && age <= 0) references.stays(index);
  }
  return candidates.toReversed();
}

/** What goes as a whole: a reply, and all that answers its calls. */
type Step = { readonly kind: 'steps' | 'recalls' | 'replies'; readonly messages: readonly Message[] };

/** Those that may go, by the index of each of their messages. Asked with every request, so it is one pass. */
function finishedSteps({ conversation, protects, codec }: PlanInput, gone: EditedPlaces['messages']) {
  const isFree = (message: Message) =>
    !gone.has(message.index) &&
    !protects.message(message.index) &&
    message.parts.every((_, part) => !protects.part(message.index, part)) &&
    !userSpeaks(conversation, message) &&
    codec.rules.mayEdit(conversation, { kind: 'drop-message', message: message.index, memory: undefined });
  const steps: (Step | undefined)[] = [];
  for (const messages of unitsOf(conversation)) {
    if (messages[0]!.role !== 'assistant') continue;
    const kind = kindOf(messages, protects);
    // A call that nothing answers is not finished.
    if ((kind === 'steps' && messages.length === 1) || !messages.every(isFree)) continue;
    const step = { kind, messages };
    for (const { index } of messages) steps[index] = step;
  }
  return steps;
}

function kindOf(messages: readonly Message[], protects: PlanInput['protects']): Step['kind'] {
  let kind: Step['kind'] = 'replies';
  for (const { index, parts } of messages) {
    for (let part = 0; part < parts.length; part++) {
      const { type } = parts[part]!;
      if (type !== 'tool-call' && type !== 'tool-result') continue;
      if (!protects.recalled(index, part)) return 'steps';
      kind = 'recalls';
    }
  }
  return kind;
}

function sumOf(step: readonly Message[], standing: (index: number) => number): number {
  return step.reduce((sum, { index }) => sum + standing(index), 0);
}

/** Tokens that stubs would save in the results of this message. */
function deadResults(
  { protects, compressionBytesThreshold: least }: PlanInput,
  gone: EditedPlaces,
  { index, parts, span }: Message,
  standing: (index: number) => number,
): number {
  let bytes = 0;
  let texts = 0;
  for (let at = 0; at < parts.length; at++) {
    const part = parts[at]!;
    if (part.type !== 'tool-result' || protects.part(index, at) || protects.recalled(index, at)) continue;
    for (let text = 0; text < part.texts.length; text++) {
      const { start, end } = part.texts[text]!;
      if (end - start - 2 < least) continue;
      if (gone.texts.size > 0 && gone.texts.has(`${index}.${at}.${text}`)) continue;
      bytes += end - start;
      texts++;
    }
  }
  if (bytes === 0) return 0;
  const share = bytes / (span.end - span.start);
  return standing(index) * share - stubTokens * texts;
}

/** What refers to lines in front of it, asked from the end of the conversation on. */
function referencesIn(shrinks: readonly Shrink[]) {
  const owed = new Map<number, number>();
  const from = Map.groupBy(
    shrinks.filter(({ refers }) => refers),
    ({ at }) => at.message,
  );
  return {
    stays(message: number): void {
      for (const { refers = [] } of from.get(message) ?? [])
        for (const { message: to, tokens } of refers) owed.set(to, (owed.get(to) ?? 0) + tokens);
    },
    /** Tokens that come back where they are referred to when this message goes, for that stays. */
    owed: (message: number) => owed.get(message) ?? 0,
    /** What only refers to others goes with them, or else it would stand there whole. */
    least: (message: number) => (from.has(message) ? 1 : 0),
  };
}

/** Tokens of a message under the edits made so far. */
function whatIsLeft(gone: EditedPlaces, message: Message, standing: (index: number) => number): number {
  const isStubbed = (part: Part, at: number) => {
    const key = `${message.index}.${at}`;
    return (
      gone.inputs.has(key) ||
      (part.type === 'tool-result' && part.texts.some((_, text) => gone.texts.has(`${key}.${text}`)))
    );
  };
  return message.parts.some(isStubbed) ? leftTokens * message.parts.length : standing(message.index);
}

/** Tokens of the last so many messages that are sent; edits stand in front of what they leave alone. */
function tokensBehind({ sent }: Draft, counter: PlanInput['counter']): (messages: number) => number {
  const sums = [0];
  return (messages) => {
    const wanted = Math.min(messages, sent.messages.length);
    while (sums.length <= wanted) {
      const index = sent.messages.length - sums.length;
      sums.push(sums.at(-1)! + counter.message(sent, index));
    }
    return sums[wanted]!;
  };
}

// Long arguments of calls. The result is remembered with the call, because every old message is asked about with every request.

/** Tokens of a stub in place of one text. */
const argumentStubTokens = 80;

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
    tokens = values.reduce((sum, { text }) => sum + Math.max(0, counter.text(text) - argumentStubTokens), 0);
    saved.set(way, tokens);
  }
  return tokens;
}

// Tokens that a fold could still take out. Triggers in absolute tokens look at these, because no fold removes tools, system text, protected or
// pinned messages, parts that the provider requires unchanged, or the stubs of earlier folds.

/**
 * Returns the tokens, in counts, of all units that may be dropped whole, and of the results that may be offloaded from the others. Costs a
 * pass over the messages, so it is for requests that are large enough for the answer to matter.
 */
export function foldableTokens(input: PlanInput, { edits, shrinks }: Draft): number {
  const { conversation, counter, protects, codec, compressionBytesThreshold: least } = input;
  const gone = placesEdited(edits);
  const saved = savedByMessage(shrinks);
  const remaining = remainingTokens({
    conversation,
    edits,
    measure: {
      text: (text) => counter.text(text),
      part: (block, part) => counter.part(conversation, block, part),
      message: (index) => counter.message(conversation, index) - (saved.get(index) ?? 0),
    },
  });

  const isFree = ({ index, role, parts }: Message): boolean =>
    role !== 'system' &&
    !protects.message(index) &&
    parts.every((_, part) => !protects.part(index, part)) &&
    codec.rules.mayEdit(conversation, { kind: 'drop-message', message: index, memory: undefined });

  const tokensOfResults = ({ index, parts, span }: Message): number => {
    if (protects.message(index)) return 0;
    const bytes = parts.reduce((sum, part, at) => {
      if (part.type !== 'tool-result' || protects.part(index, at) || protects.recalled(index, at)) return sum;
      const open = part.texts.filter(({ start, end }, text) => {
        if (end - start - 2 < least || gone.texts.has(`${index}.${at}.${text}`)) return false;
        const place = { message: index, part: at, text };
        return codec.rules.mayEdit(conversation, {
          kind: 'replace-text',
          at: place,
          stub: '',
          memory: undefined,
        });
      });
      return open.reduce((total, { start, end }) => total + end - start, sum);
    }, 0);
    return bytes === 0 ? 0 : (remaining(index) * bytes) / (span.end - span.start);
  };

  let tokens = 0;
  for (const unit of unitsOf(conversation)) {
    const open = unit.filter(({ index }) => !gone.messages.has(index));
    const tokensOf = open.every(isFree) ? ({ index }: Message) => remaining(index) : tokensOfResults;
    for (const message of open) tokens += tokensOf(message);
  }
  return Math.round(tokens);
}
