/** Builds hidden recalls from short descriptions, and shows a conversation with them in lines, for cases that only one format has. */
import type { Codec, PlacedHiddenRecall } from '../../../src/codecs/codec.ts';
import type { Conversation, HiddenRecall } from '../../../src/conversation/conversation.ts';
import { jsonBytes } from '../../../src/conversation/json-scan.ts';
import { recallName } from './arbitrary.ts';
import { outline } from './outline.ts';
import { view } from './views.ts';

/** Messages of one step of a conversation, as JSON values; for a client's copy of a reply, together with its hidden recall. */
export type Step =
  | readonly unknown[]
  | { readonly copy: readonly unknown[]; readonly hiddenRecall: HiddenRecall };

/** Ids of private calls, in order, with the answer to each. */
type Answers = Readonly<Record<string, string>>;

/**
 * Makes a hidden recall from the model's turns, as JSON values of its response: in each but the last it recalled; `closing` is
 * its last reply.
 */
export function hiddenRecallOf(
  rounds: readonly (readonly [turn: unknown, Answers])[],
  closing?: unknown,
): HiddenRecall {
  return {
    rounds: rounds.map(([turn, answers]) => ({
      turn: jsonBytes(turn),
      answers: Object.entries(answers).map(([id, text]) => ({
        call: { id, name: recallName, argumentsJson: '{"id":"mem_a"}' },
        text,
      })),
    })),
    closing: closing === undefined ? undefined : jsonBytes(closing),
  };
}

/** Returns the conversation as sent: `fields` are the other members of the body, the messages are under `key`. */
export function withHiddenRecalls(
  codec: Codec,
  key: string,
  steps: readonly Step[],
  fields: Readonly<Record<string, unknown>> = {},
): Conversation {
  const messages: unknown[] = [];
  const hiddenRecalls: PlacedHiddenRecall[] = [];
  for (const step of steps) {
    if ('hiddenRecall' in step) hiddenRecalls.push({ at: messages.length, candidates: [step.hiddenRecall] });
    messages.push(...('hiddenRecall' in step ? step.copy : step));
  }
  const conversation = view(codec, jsonBytes({ ...fields, [key]: messages }));
  return view(codec, codec.insertHiddenRecalls(conversation, hiddenRecalls));
}

/** Returns the same in lines, with the rules it breaks at the end. */
export function linesWithHiddenRecalls(...given: Parameters<typeof withHiddenRecalls>): readonly string[] {
  const conversation = withHiddenRecalls(...given);
  const [codec] = given;
  return [
    ...outline(conversation),
    ...codec.rules.problems(conversation).map(({ rule }) => `broken: ${rule}`),
  ];
}
