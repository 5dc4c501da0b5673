/**
 * Finds the finished sub-goals of a conversation that may be folded: runs of replies with their results, between two borders (see
 * outline/finder.ts). A user message begins a sub-goal and is not part of it. Pure.
 */
import type { Conversation, Message } from '../../conversation/conversation.ts';
import { unitsOf, userSpeaks } from '../../conversation/turns.ts';
import { subgoalLength } from '../../outline/levels.ts';
import type { SummaryStep } from '../../outline/summarizer.ts';
import { findSubgoals, type NeutralStep } from '../../outline/finder.ts';
import { freeUnits, placesEdited } from './editable-texts.ts';
import type { FoldView } from '../strategy.ts';
import { summarySteps } from './summary-steps.ts';

/** The messages of a finished sub-goal. */
export type SubgoalMessages = {
  readonly messages: readonly Message[];
  readonly steps: readonly SummaryStep[];
  /** The goal in the words of a plan or of the model; empty if there is none. */
  readonly goal: string;
  /** False for the beginning of a sub-goal whose other messages must stay. */
  readonly isWhole: boolean;
};

/** Returns the finished sub-goals, oldest first. The newest sub-goal is never included: it is still open. */
export function finishedSubgoals(view: FoldView): readonly SubgoalMessages[] {
  const { conversation, recallTool } = view;
  const free = new Map([...freeUnits(view)].map((unit) => [unit[0]!.index, unit]));
  const gone = placesEdited(view.edits).messages;
  const goals = bordersOf(conversation, recallTool);
  const found: SubgoalMessages[] = [];
  let run: Message[] = [];
  let goal = '';
  let isNext = false;
  const finish = (isWhole: boolean) => {
    if (run.length === 0) return;
    const steps = summarySteps(conversation, run, recallTool).filter(
      (step) => step.type === 'called' || step.by !== 'client',
    );
    const before = isNext ? found.at(-1) : undefined;
    const one = { messages: run, steps, goal, isWhole };
    if (before && isWhole && belongTogether(before, one)) found.splice(-1, 1, joined(before, one));
    else found.push(one);
    run = [];
    isNext = isWhole;
  };
  for (const unit of unitsOf(conversation)) {
    const border = unit.map(({ index }) => goals.get(index)).find((one) => one !== undefined);
    if (border !== undefined) {
      finish(true);
      goal = border;
    }
    const open = unit.filter(({ index }) => !gone.has(index));
    if (open.length === 0) continue;
    // A client's text in a user message neither begins nor ends a sub-goal.
    const isClients = unit.every((one) => one.role === 'user' && !userSpeaks(conversation, one));
    if (isClients && (run.length === 0 || !free.has(open[0]!.index))) continue;
    const isReply =
      isClients ||
      (unit.some(({ role }) => role === 'assistant') && !open.some((one) => userSpeaks(conversation, one)));
    if (isReply && free.has(open[0]!.index)) run.push(...open);
    else {
      finish(!isReply);
      isNext = false;
    }
  }
  return found;
}

/** True if a short sub-goal without a goal of its own is rather the end of the previous one. */
function belongTogether(before: SubgoalMessages, one: SubgoalMessages): boolean {
  const calls = callsIn(one);
  return one.goal === '' && calls < subgoalLength.min && callsIn(before) + calls <= subgoalLength.max;
}

function callsIn({ steps }: SubgoalMessages): number {
  return steps.filter(({ type }) => type === 'called').length;
}

function joined(before: SubgoalMessages, one: SubgoalMessages): SubgoalMessages {
  return {
    ...before,
    messages: [...before.messages, ...one.messages],
    steps: [...before.steps, ...one.steps],
  };
}

/** Returns goals by the index of the message that each sub-goal begins with. */
function bordersOf(conversation: Conversation, recallTool: string | undefined): ReadonlyMap<number, string> {
  const steps: NeutralStep[] = [];
  const messages: number[] = [];
  for (const message of conversation.messages) {
    for (const step of summarySteps(conversation, [message], recallTool)) {
      steps.push(
        step.type === 'said'
          ? { kind: 'said', by: step.by, text: step.text }
          : { kind: 'called', tool: step.tool, input: step.input, result: step.result },
      );
      messages.push(message.index);
    }
  }
  const goals = new Map<number, string>();
  for (const { start, goal, by } of findSubgoals(steps))
    if (!goals.has(messages[start]!))
      goals.set(messages[start]!, by === 'plan' || by === 'words' ? goal : '');
  return goals;
}
