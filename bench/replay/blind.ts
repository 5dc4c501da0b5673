/**
 * Asks for values without knowing them, as a model must. `blindRecovery` replaces the recovery of a replay, which knows the value and the original:
 * 1. One query for each call that lacks values, made of what the model said and of the call's tool and other arguments.
 * 2. The stub that has most words in common with the query, if the answer lacks a value.
 * 3. The tool that returned the value is run again, if that is not there either. Such a value counts as lost, as for policies without a memory.
 *
 * A value is visible only with the call or the line that it belongs to: in a message as it was recorded or shortened, in a line of another text that also stands in a
 * recorded message with the value, beside some of the characters that the value has as neighbors there, or in a line that names a tool whose call
 * or result has the value. A list of values without any of these shows none.
 */
import type { Conversation, Message } from '../../src/conversation/conversation.ts';
import { parseRecord } from '../../src/conversation/json-scan.ts';
import { pairCalls } from '../../src/conversation/turns.ts';
import type { PreparedRequest } from '../../src/engine/types.ts';
import { type Client, rerunMissing } from '../../src/replay/client.ts';
import { pathIn } from '../../src/outline/step-line.ts';
import { argumentLeaves, argumentsOf, holds, messageText, placeOf } from '../../src/replay/needs.ts';
import type { Policy } from '../../src/replay/policies.ts';
import { type Sight, createSight, openRounds } from '../../src/replay/recall-missing.ts';
import type { Need, Recording, RecordedStep } from '../../src/replay/recording.ts';
import { sha256 } from '../../src/store/encrypted-store.ts';
import type { Recovery, ReplayPolicy } from '../../src/replay/replay.ts';

/** Maximum characters of what is taken from the reply, and of what is taken from the call. */
const maxWords = 400;

/** Returns a policy whose model asks without knowing the values. */
export function askedBlind(policy: Policy): ReplayPolicy {
  return { ...policy, name: `${policy.name}, asked blind`, recovery: blindRecovery };
}

function blindRecovery(recording: Recording, client: Client): Recovery {
  return {
    sight: createStrictSight(recording),
    async recover(step, sent, missing) {
      const { prepared } = sent;
      if (!prepared?.recallTool)
        return { ...rerunMissing({ recording, client, step, sent, missing }), lost: missing.length };
      const exchange = openRounds({ recording, step, sent, prepared });
      const stubs = stubsIn(
        recording.format.codec.read(sent.body, { digest: sha256, blocks: new Map() }),
        prepared,
      );
      let left = missing;
      for (const { words, needs } of callsWith(recording, step, missing)) {
        const query = `${words.said} ${words.call}`.trim();
        const stub = mostSimilar(stubs, query);
        // Without a stub, nothing is folded, and the model has nothing to ask for.
        const asks = stub === undefined ? [] : [{ query }, { id: stub }];
        for (const asked of asks) {
          if (!needs.some((need) => left.includes(need))) break;
          const text = await exchange.ask(asked);
          left = left.filter(({ value }) => !holds(text, value));
        }
      }
      const last = exchange.bodies.at(-1);
      const again = rerunMissing({
        recording,
        client,
        step,
        sent: last === undefined ? sent : { ...sent, body: last },
        missing: left,
      });
      await exchange.end(again.turns[0]);
      return { bodies: [...exchange.bodies, ...again.bodies], lost: left.length };
    },
  };
}

/** Groups missing values by the call that used them, and returns the words that the model had for each call. */
function callsWith(recording: Recording, step: RecordedStep, missing: readonly Need[]) {
  const groups = Map.groupBy(missing, ({ value }) => callHolding(recording, step, value.text)?.index ?? 0);
  return [...groups.values()].map((needs) => ({
    needs,
    words: wordsOf(
      recording,
      step,
      needs.map(({ value }) => value.text),
    ),
  }));
}

function callHolding({ conversation, pairs }: Recording, step: RecordedStep, value: string) {
  const calls = pairs
    .filter(({ call }) => call.message >= step.at && call.message < step.end)
    .map(({ call, name }, index) => ({ index, name, leaves: leavesAt(conversation, call) }));
  return calls.find(({ leaves }) => leaves.some((leaf) => leaf.includes(value))) ?? calls[0];
}

/** Returns what the model said, and the call that used the values, both without the values. */
export function wordsOf(
  recording: Recording,
  step: RecordedStep,
  values: readonly string[],
): { readonly said: string; readonly call: string } {
  const { conversation } = recording;
  const without = (text: string) => values.reduce((rest, value) => rest.replaceAll(value, ' '), text);
  const holder = callHolding(recording, step, values[0]!);
  const others = without((holder?.leaves ?? []).join(' ')).slice(0, maxWords);
  const last = conversation.messages
    .slice(0, step.end)
    .findLast((message) => message.role === 'assistant' && textOfReply(conversation, message.index) !== '');
  const said = last === undefined ? '' : textOfReply(conversation, last.index);
  return {
    said: without(said).trim().slice(0, maxWords),
    call: `${holder?.name ?? ''} ${others}`.trim(),
  };
}

/** Matches a number as a value. */
const isNumber = /^[\d.,]+$/;

/** Matches the number that a listing puts before a line. Every number up to the length of the file stands there. */
const lineNumbers = /^[^\S\n]*\d+(?:→|\t|\|)/gm;

/**
 * True if a value may come from an earlier message, and does not only occur in one by chance. Values that are no numbers always may. A number
 * may come from a place where somebody said it, from the same argument of an earlier call, and from a call or its result about the same file,
 * or, for a call that names no file, of the same tool. A line of a result that names the file is about it, too. The numbers that a listing puts before its lines do not count.
 */
export function mayComeFromEarlier(recording: Recording, step: RecordedStep, { value, in: places }: Need) {
  if (!isNumber.test(value.text)) return true;
  const { conversation, pairs, texts } = recording;
  const own = pairs.find(
    ({ call }) =>
      call.message >= step.at &&
      call.message < step.end &&
      leavesAt(conversation, call).some((leaf) => holds(leaf, value)),
  );
  if (!own) return true;
  const { path, keys } = usesOf(conversation, own.call, value);
  return places.some((index) => {
    const message = conversation.messages[index]!;
    if (holds(textOfReply(conversation, index), value)) return true;
    const name = path.slice(path.lastIndexOf('/') + 1);
    if (name !== '' && texts[index]!.split('\n').some((line) => line.includes(name) && holds(line, value)))
      return true;
    return pairs.some(({ name: tool, call, result }) => {
      if (call.message === index) {
        const used = usesOf(conversation, call, value);
        return (
          used.keys.some((key) => keys.includes(key)) ||
          (path !== '' && used.path === path && used.keys.length > 0)
        );
      }
      if (result?.message !== index) return false;
      const isAbout = path === '' ? tool === own.name : usesOf(conversation, call, value).path === path;
      const part = message.parts[result.part]!;
      const text = messageText(conversation, { ...message, parts: [part] });
      return isAbout && holds(text.replaceAll(lineNumbers, ''), value);
    });
  });
}

/** Returns the file of a call, and the names of the arguments that hold a value. */
function usesOf(
  { body, messages }: Conversation,
  { message, part }: { readonly message: number; readonly part: number },
  value: Need['value'],
): { readonly path: string; readonly keys: readonly string[] } {
  const call = messages[message]!.parts[part]!;
  if (call.type !== 'tool-call') return { path: '', keys: [] };
  const sent = parseRecord(argumentsOf(body, messages[message]!, call.input)) ?? {};
  const keys = Object.keys(sent).filter((key) =>
    argumentLeaves(JSON.stringify(sent[key])).some((leaf) => holds(leaf, value)),
  );
  return { path: pathIn(sent), keys };
}

function leavesAt(
  conversation: Conversation,
  { message, part }: { readonly message: number; readonly part: number },
): readonly string[] {
  const holder = conversation.messages[message]!;
  const call = holder.parts[part]!;
  return call.type === 'tool-call' ? argumentLeaves(argumentsOf(conversation.body, holder, call.input)) : [];
}

function textOfReply(conversation: Conversation, index: number): string {
  const message = conversation.messages[index]!;
  return messageText(conversation, {
    ...message,
    parts: message.parts.filter(({ type }) => type === 'text'),
  }).trim();
}

/** A stub, or one line of it, and the call that its message makes or answers. */
type StubWords = { readonly id: string; readonly words: ReadonlySet<string> };

export function stubsIn(context: Conversation, prepared: PreparedRequest): readonly StubWords[] {
  const callOf = new Map(
    pairCalls(context).pairs.flatMap(({ call, result }) =>
      result === undefined
        ? []
        : [[result.message, messageText(context, context.messages[call.message]!)] as const],
    ),
  );
  return context.messages.flatMap((message) => {
    const own = messageText(context, message);
    const ids = prepared.report.memories.filter((id) => own.includes(id));
    if (ids.length === 0) return [];
    const call = callOf.get(message.index);
    // A stub in place of a call's argument is in the call's message, and a stub of many steps has a line for each.
    const pieces = call === undefined ? own.split('\n') : [`${call} ${own}`];
    return pieces.flatMap((piece) => {
      const named = ids.filter((id) => piece.includes(id));
      return (named.length > 0 ? named : ids).map((id) => ({ id, words: wordsIn(piece) }));
    });
  });
}

/** Returns the id of the stub that has the rarest words in common with the query for its length, the newest of equals. */
export function mostSimilar(stubs: readonly StubWords[], query: string): string | undefined {
  const wanted = [...wordsIn(query)].map((word) => {
    const holding = stubs.filter(({ words }) => words.has(word)).length;
    return { word, worth: Math.log(1 + stubs.length / Math.max(1, holding)) };
  });
  const scores = stubs.map(({ id, words }) => ({
    id,
    score:
      wanted.reduce((sum, { word, worth }) => sum + (words.has(word) ? worth : 0), 0) /
      Math.sqrt(Math.max(1, words.size)),
  }));
  const best = Math.max(...scores.map(({ score }) => score));
  return scores.findLast(({ score }) => score === best)?.id;
}

function wordsIn(text: string): ReadonlySet<string> {
  return new Set(text.toLowerCase().match(/[\p{L}\p{N}_]{2,}/gu));
}

/** Characters beside a value that must be the same, so that it stands where it stood. */
const neighborhood = 8;

/** Creates a check of contexts that accepts a value only with the call or the line that it belongs to. */
export function createStrictSight(recording: Recording): Sight {
  const { texts, pairs } = recording;
  const tools = new Map<number, Set<string>>();
  for (const { name, call, result } of pairs)
    for (const place of [call, result])
      if (place) tools.set(place.message, (tools.get(place.message) ?? new Set()).add(name));

  function belongs(line: string, { value, in: places }: Need): boolean {
    for (let at = placeOf(line, value, 0); at >= 0; at = placeOf(line, value, at + 1)) {
      const end = at + value.text.length;
      const before = line.slice(Math.max(0, at - neighborhood), at);
      const after = line.slice(end, end + neighborhood);
      for (const index of places) {
        const text = texts[index]!;
        if (before.length === neighborhood && text.includes(`${before}${value.text}`)) return true;
        if (after.length === neighborhood && text.includes(`${value.text}${after}`)) return true;
        if (line.trim().length > value.text.length && text.includes(line.trim())) return true;
        if (line.trim() === value.text && text.split('\n').some((one) => one.trim() === value.text))
          return true;
        for (const tool of tools.get(index) ?? []) if (namesTool(line, tool)) return true;
      }
    }
    return false;
  }

  const ids = recording.conversation.messages.map(callIdsIn);

  return createSight(recording, (text, need, message) => {
    if (!holds(text, need.value)) return false;
    const own = callIdsIn(message);
    // A call or a result that was shortened still stands where it was.
    if (own.length > 0 && need.in.some((index) => own.some((id) => ids[index]!.includes(id)))) return true;
    return text.split('\n').some((line) => belongs(line, need));
  });
}

/** Returns the ids of the calls that a message makes or answers. */
function callIdsIn({ parts }: Message): readonly string[] {
  return parts.flatMap((part) =>
    part.type === 'tool-call' ? [part.id] : part.type === 'tool-result' ? [part.callId] : [],
  );
}

/** True if a line names a tool as a word, and not only within a path or a longer name. */
function namesTool(line: string, tool: string): boolean {
  return placeOf(line, { kind: 'word', text: tool }, 0) >= 0;
}
