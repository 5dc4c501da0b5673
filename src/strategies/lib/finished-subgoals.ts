/**
 * The sub-goals of a conversation that are finished and may go: runs of replies with what answered them, between one border and the next
 * (see find-subgoals.ts). What the user says begins one and is not in it. Pure.
 */
import type { Conversation, Message } from '../../conversation/conversation.ts';
import { userSpeaks } from '../../conversation/turns.ts';
import { unitsOf } from '../../conversation/turns.ts';
import { subgoalLength } from '../../outline/levels.ts';
import type { SummaryStep } from '../../outline/summarizer.ts';
import { findSubgoals, type NeutralStep } from '../../outline/finder.ts';
import { freeUnits } from './free-units.ts';
import type { FoldView } from '../strategy.ts';
import { placesEdited } from './editable-texts.ts';
import { summarySteps } from './summary-steps.ts';

export type FinishedStretch = {
  readonly messages: readonly Message[];
  readonly steps: readonly SummaryStep[];
  /** In the words of a plan or of the model; empty where nobody said one. */
  readonly goal: string;
  /** False for the beginning of a sub-goal that goes on in what must stay. */
  readonly isWhole: boolean;
};

/** Oldest first. The newest sub-goal is never among them: it is open. */
export function finishedStretches(view: FoldView): readonly FinishedStretch[] {
  const { conversation, recallTool } = view;
  const free = new Map([...freeUnits(view)].map((unit) => [unit[0]!.index, unit]));
  const gone = placesEdited(view.edits).messages;
  const goals = bordersOf(conversation, recallTool);
  const found: FinishedStretch[] = [];
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
    // What a client says in the user's place begins no stretch, and ends none.
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

/** What is short and has no goal of its own is rather the end of the one before than a sub-goal. */
function belongTogether(before: FinishedStretch, one: FinishedStretch): boolean {
  const calls = callsIn(one);
  return one.goal === '' && calls < subgoalLength.min && callsIn(before) + calls <= subgoalLength.max;
}

function callsIn({ steps }: FinishedStretch): number {
  return steps.filter(({ type }) => type === 'called').length;
}

function joined(before: FinishedStretch, one: FinishedStretch): FinishedStretch {
  return {
    ...before,
    messages: [...before.messages, ...one.messages],
    steps: [...before.steps, ...one.steps],
  };
}

/** Goals by the message that each sub-goal begins with. */
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
