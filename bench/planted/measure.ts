/** Folds planted conversations in each way that Leporello has, and checks which planted sentences the folded text still has. */
import { openaiChat } from '../../src/codecs/openai-chat/index.ts';
import type { Edit } from '../../src/conversation/edit.ts';
import { extract } from '../../src/outline/extract.ts';
import { createModelSummarizer } from '../../src/outline/model.ts';
import { sha256 } from '../../src/store/encrypted-store.ts';
import { foldSubgoals } from '../../src/strategies/fold-subgoals.ts';
import { summarySteps } from '../../src/strategies/lib/summaries.ts';
import type { FoldView } from '../../src/strategies/strategy.ts';
import { openTrajectory } from '../../src/trajectory/trajectory.ts';
import type { Fact, Group, PlantedConversation } from './generate.ts';

export type Count = (text: string) => number;

/** A folded text, with the tokens of what it stands for. */
export type Folded = { readonly text: string; readonly before: number; readonly after: number };

const ratio = 10;

/** Characters between the parts of a fact within a line; more would be another sentence. */
const maxDistance = 160;

/** True if the text has the fact: demands word for word, others with all their keys close together in one line. */
export function has(text: string, { kind, text: sentence, keys }: Fact): boolean {
  if (kind === 'demand') return flat(text).includes(flat(sentence));
  return text.split('\n').some((line) => {
    const [first = '', ...others] = keys;
    for (let at = line.indexOf(first); at >= 0; at = line.indexOf(first, at + 1)) {
      const around = line.slice(Math.max(0, at - maxDistance), at + first.length + maxDistance);
      if (others.every((key) => around.includes(key))) return true;
    }
    return false;
  });
}

function flat(text: string): string {
  return text.replaceAll('\\"', '"').replaceAll(/\s+/g, ' ');
}

/** Extracts a tenth of the conversation. */
export function extracted(planted: PlantedConversation, count: Count): Folded {
  const { steps, before } = stepsOf(planted, count);
  const room = Math.floor(before / ratio);
  const text = extract({ steps, earlier: [], known: [], budget: { aim: room, max: room }, count }) ?? '';
  return { text, before, after: count(text) };
}

/**
 * The same with a summarizer that asks a model. No model can be asked here: the stand-in answers with the first sentence of every third
 * paragraph of the transcript, so it drops much of what was planted, as a bad model would.
 */
export async function modelWritten(planted: PlantedConversation, count: Count): Promise<Folded> {
  const { steps, before } = stepsOf(planted, count);
  const room = Math.floor(before / ratio);
  const summarizer = createModelSummarizer({
    model: 'stand-in',
    maxInputTokens: 100_000,
    ask: ({ text }) => Promise.resolve(standIn(text)),
  });
  const text =
    (await summarizer.summarize({
      steps,
      earlier: [],
      known: [],
      budget: { aim: room, max: room },
      count,
    })) ?? '';
  return { text, before, after: count(text) };
}

function standIn(prompt: string): string {
  const paragraphs = prompt.split('\n\n').filter((_, at) => at % 3 === 0);
  return paragraphs
    .map((text) => text.slice(0, 80).replaceAll(/\s+/g, ' '))
    .slice(0, 12)
    .join('\n');
}

/** The records of found sub-goals, as the gateway inserts them. */
export function gatewayRecords(planted: PlantedConversation, count: Count): Folded {
  const conversation = read(planted);
  const view: FoldView = {
    conversation,
    edits: [],
    shrunk: () => undefined,
    excess: { unit: 'tokens', amount: Number.POSITIVE_INFINITY },
    isForced: false,
    isHistoryKept: false,
    measure: {
      text: count,
      // oxlint-disable-next-line require-yield
      *textInSteps(value) {
        return count(value);
      },
      part: (_block, { span }) => count(bytesOf(conversation.body, span)),
      media: (_block, { span }) => count(bytesOf(conversation.body, span)),
      message: (index) => count(bytesOf(conversation.body, conversation.messages[index]!.span)),
    },
    protects: { message: () => false, part: () => false, recalled: () => false },
    mayEdit: (edit) => openaiChat.rules.mayEdit(conversation, edit),
    idOf: (original) => `mem_${sha256(original).slice(0, 16)}`,
    recallTool: 'read_memory',
    minResultBytes: 1_000,
    reportCompression: (_text, { tokensBefore, tokensAfter }) => {
      before += tokensBefore;
      after += tokensAfter;
    },
  };
  let before = 0;
  let after = 0;
  const edits = foldSubgoals({ minActions: 0, ratio }).propose(view);
  const gone = new Set(edits.flatMap((edit) => (edit.kind === 'drop-message' ? [edit.message] : [])));
  const inserted = edits.flatMap((edit: Edit) => (edit.kind === 'insert-message' ? [edit.text] : []));
  // The messages that stay count as kept: the newest sub-goal is still open.
  const stay = conversation.messages.filter(({ index }) => !gone.has(index));
  const text = [...inserted, ...stay.map(({ span }) => decoded(bytesOf(conversation.body, span)))].join('\n');
  return { text, before, after };
}

/** The records of given sub-goals, as a trajectory has them in its context. `told`: the agent says what came of each. */
export async function trajectoryRecords(
  planted: PlantedConversation,
  count: Count,
  told: boolean,
): Promise<Folded> {
  let before = 0;
  let after = 0;
  const trajectory = await openTrajectory({
    goal: planted.groups[0]!.goal,
    counter: count,
    preset: 'cost',
    ratio,
    minActions: 0,
    budgetTokens: 100_000,
    onCompression: ({ tokensBefore, tokensAfter }) => {
      before += tokensBefore;
      after += tokensAfter;
    },
  });
  for (const group of planted.groups) {
    trajectory.startSubgoal(group.goal);
    for (const { said, tool, input, result } of group.calls) {
      const action = `${said === undefined ? '' : `${said}\n`}${tool} ${input}`;
      trajectory.addAction({ action, observation: result });
    }
    if (told) await trajectory.completeSubgoal(group.outcome.text);
    else {
      if (group.reply !== undefined) trajectory.addAction({ action: group.reply, observation: '' });
      await trajectory.completeSubgoal();
    }
  }
  await trajectory.settled();
  return { text: trajectory.context().text, before, after };
}

function stepsOf(planted: PlantedConversation, count: Count) {
  const conversation = read(planted);
  const { messages, body } = conversation;
  return {
    steps: summarySteps(conversation, messages, undefined),
    before: messages.reduce((sum, { span }) => sum + count(bytesOf(body, span)), 0),
  };
}

function read(planted: PlantedConversation) {
  const body = new TextEncoder().encode(
    JSON.stringify({ model: 'gpt-4o', messages: messagesOf(planted.groups) }),
  );
  return openaiChat.read(body, { digest: sha256, blocks: new Map() });
}

/** Writes the conversation in the form of chat completions. */
export function messagesOf(groups: readonly Group[]): readonly object[] {
  let calls = 0;
  return groups.flatMap((group) => [
    ...(group.user === undefined ? [] : [{ role: 'user', content: group.user }]),
    ...group.calls.flatMap(({ said, tool, input, result }) => {
      const id = `call_${++calls}`;
      const call = { id, type: 'function', function: { name: tool, arguments: input } };
      return [
        { role: 'assistant', content: said ?? null, tool_calls: [call] },
        { role: 'tool', tool_call_id: id, content: result },
      ];
    }),
    ...(group.reply === undefined ? [] : [{ role: 'assistant', content: group.reply }]),
  ]);
}

type Span = { readonly start: number; readonly end: number };

function bytesOf(body: Uint8Array, { start, end }: Span): string {
  return new TextDecoder().decode(body.subarray(start, end));
}

/** Returns the texts of a message without the escapes of JSON. */
function decoded(message: string): string {
  return message.replaceAll('\\n', '\n').replaceAll('\\"', '"');
}
