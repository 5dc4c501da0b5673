/** Ghost turns spelled in few words, and what is sent of a conversation with them, in lines: for cases that one format alone has. */
import type { Codec, PlacedGhost } from '../../../src/codecs/codec.ts';
import type { Conversation } from '../../../src/conversation/conversation.ts';
import type { GhostTurn } from '../../../src/conversation/ghost-turn.ts';
import { jsonBytes } from '../../../src/conversation/splice.ts';
import { recallName } from './arbitrary.ts';
import { outline } from './outline.ts';
import { view } from './views.ts';

/** Messages of one step of a conversation, as JSON values; where they are a client's copy of a reply, with what was recalled for it. */
export type Step = readonly unknown[] | { readonly copy: readonly unknown[]; readonly ghost: GhostTurn };

/** Ids of private calls, in order, with what memory answers each. */
type Answers = Readonly<Record<string, string>>;

/** From the model's turns, as JSON values of its response: in each but the last it recalled; `closing` is what it said at last. */
export function ghostOf(
  rounds: readonly (readonly [turn: unknown, Answers])[],
  closing?: unknown,
): GhostTurn {
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
export function withGhosts(
  codec: Codec,
  key: string,
  steps: readonly Step[],
  fields: Readonly<Record<string, unknown>> = {},
): Conversation {
  const messages: unknown[] = [];
  const ghosts: PlacedGhost[] = [];
  for (const step of steps) {
    if ('ghost' in step) ghosts.push({ at: messages.length, turns: [step.ghost] });
    messages.push(...('ghost' in step ? step.copy : step));
  }
  const conversation = view(codec, jsonBytes({ ...fields, [key]: messages }));
  return view(codec, codec.insertGhosts(conversation, ghosts));
}

/** The same in lines, with the rules it breaks at the end. */
export function linesWithGhosts(...given: Parameters<typeof withGhosts>): readonly string[] {
  const conversation = withGhosts(...given);
  const [codec] = given;
  return [
    ...outline(conversation),
    ...codec.rules.problems(conversation).map(({ rule }) => `broken: ${rule}`),
  ];
}
