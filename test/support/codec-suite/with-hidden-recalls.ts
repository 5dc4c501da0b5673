/** Hidden recalls spelled in few words, and what is sent of a conversation with them, in lines: for cases that one format alone has. */
import type { Codec, PlacedHiddenRecall } from '../../../src/codecs/codec.ts';
import type { Conversation } from '../../../src/conversation/conversation.ts';
import type { HiddenRecall } from '../../../src/conversation/hidden-recall.ts';
import { jsonBytes } from '../../../src/conversation/splice.ts';
import { recallName } from './arbitrary.ts';
import { outline } from './outline.ts';
import { view } from './views.ts';

/** Messages of one step of a conversation, as JSON values; where they are a client's copy of a reply, with what was recalled for it. */
export type Step =
  | readonly unknown[]
  | { readonly copy: readonly unknown[]; readonly hiddenRecall: HiddenRecall };

/** Ids of private calls, in order, with what memory answers each. */
type Answers = Readonly<Record<string, string>>;

/** From the model's turns, as JSON values of its response: in each but the last it recalled; `closing` is what it said at last. */
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

/** What is sent: `fields` stand beside the messages, which stand under `key`. */
export function withHiddenRecalls(
  codec: Codec,
  key: string,
  steps: readonly Step[],
  fields: Readonly<Record<string, unknown>> = {},
): Conversation {
  const messages: unknown[] = [];
  const hiddenRecalls: PlacedHiddenRecall[] = [];
  for (const step of steps) {
    if ('hiddenRecall' in step) hiddenRecalls.push({ at: messages.length, turns: [step.hiddenRecall] });
    messages.push(...('hiddenRecall' in step ? step.copy : step));
  }
  const conversation = view(codec, jsonBytes({ ...fields, [key]: messages }));
  return view(codec, codec.insertHiddenRecalls(conversation, hiddenRecalls));
}

/** The same in lines, with the rules it breaks at the end. */
export function linesWithHiddenRecalls(...given: Parameters<typeof withHiddenRecalls>): readonly string[] {
  const conversation = withHiddenRecalls(...given);
  const [codec] = given;
  return [
    ...outline(conversation),
    ...codec.rules.problems(conversation).map(({ rule }) => `broken: ${rule}`),
  ];
}
