/**
 * Finds finished sub-goals, and writes and reads the records that replace them. A record is a line that says what it
 * replaces and how to read it again, then lines of the messages. Tool output is marked, so that it cannot be mistaken for ours. Pure.
 */
import {
  type Edit,
  type FinishedSubgoal,
  originalOfMessages,
  originalOfTexts,
  subgoalOf,
} from '../../conversation/edit.ts';
import { type CompressionLevel, levelName, ratioFor, roomFor, subgoalLength } from '../../outline/levels.ts';
import { nodeOf, type OutlineNode } from '../../outline/node.ts';
import {
  keptIn,
  type KeptParts,
  nodeAbove,
  nodeOfText,
  type NodeText,
  spellNode,
  titleOf,
} from '../../outline/record.ts';
import type { SummaryStep, WantedText } from '../../outline/summarizer.ts';
import { asProse, proseOf } from '../../outline/summary-text.ts';
import { type Compression, compressionOf } from '../../receipts/receipt.ts';
import type { FoldView } from '../strategy.ts';
import { placesEdited, remainingTokens, freeUnits } from './editable-texts.ts';
import type { Conversation, Message } from '../../conversation/conversation.ts';
import { unitsOf, userSpeaks } from '../../conversation/turns.ts';
import { type NeutralStep, findSubgoals } from '../../outline/finder.ts';
import { summarySteps } from './summaries.ts';

type Insert = Extract<Edit, { readonly kind: 'insert-message' }>;

/** A record in the conversation, inserted before or to be inserted. */
type PlacedRecord = {
  readonly edit: Insert;
  readonly subgoal: FinishedSubgoal;
  readonly level: number;
  readonly tokens: number;
  /** The requested compression ratio; undefined for a light merge, and for a record of an earlier fold. */
  readonly target?: number | undefined;
  /** Undefined for a record of an earlier fold. */
  readonly kept?: KeptParts;
  /** Who wrote the lines below the title, and why a model did not although it was to. */
  readonly by?: Pick<Compression, 'by' | 'problem'>;
};

/** Collects the records of a conversation, and counts what they save. */
export function createRecords(view: FoldView, settings: CompressionLevel) {
  const { conversation, excess, edits: sent } = view;
  const remaining = remainingTokens(view);
  const isInTokens = excess.unit === 'tokens';
  const gone = placesEdited(sent).messages;
  const ids = new Set(sent.flatMap(idOf));
  const drops: Edit[] = [];
  const wasSent = new Set<Edit>(sent);
  let placed: readonly PlacedRecord[] = sent.flatMap((edit) => placedRecordOf(view, edit));
  let saved = 0;

  /** Adds a record; false if it is not smaller than what it replaces, or if another record has the same id. */
  function place(one: PlacedRecord, before: number, instead: readonly PlacedRecord[]): boolean {
    if (one.tokens >= before || ids.has(one.subgoal.memory) || !view.mayEdit(one.edit)) return false;
    ids.add(one.subgoal.memory);
    view.reportCompression(one.edit.text, compressionFor(one, before));
    placed = [...placed.filter((other) => !instead.includes(other)), one].toSorted(
      (a, b) => a.edit.before - b.edit.before,
    );
    saved += isInTokens ? before - one.tokens : -1;
    return true;
  }

  return {
    /** Tokens of the request before this fold. */
    before:
      view.tokensBefore ??
      sum(conversation.messages, ({ index }) => (gone.has(index) ? 0 : remaining(index))),
    /** Tokens or messages that the new records save. */
    saved: () => saved,
    /** Tokens of all records. */
    tokens: () => sum(placed, ({ tokens }) => tokens),
    /** Adds the record of a finished sub-goal. */
    add({ messages, steps, goal, isWhole }: SubgoalMessages): void {
      const calls = steps.filter(({ type }) => type === 'called').length;
      const isShort = calls < subgoalLength.min;
      if (isShort && !isWhole) return;
      const indices = messages.map(({ index }) => index);
      const memory = view.idOf(originalOfMessages(conversation, indices));
      const before = sum(indices, remaining);
      const record = recordOf(view, settings, {
        before: indices[0]!,
        subgoal: { level: 1, memory, calls, of: [] },
        node: nodeOf(steps, { goal }),
        texts: steps.map((step) => (step.type === 'said' ? step.text : `${step.input} ${step.result ?? ''}`)),
        steps,
        tokens: before,
        isMerge: isShort,
      });
      if (!place(record, before, [])) return;
      for (const message of indices) drops.push({ kind: 'drop-message', message, memory });
      saved += isInTokens ? 0 : indices.length;
    },
    /** Replaces some records by one of the next level; false if there are none to replace. */
    levelUp(choose: (these: readonly PlacedRecord[]) => readonly PlacedRecord[] | undefined): boolean {
      const chosen = choose(placed);
      if (chosen === undefined) return false;
      const before = sum(chosen, ({ tokens }) => tokens);
      const isUp = place(levelUpOf(view, chosen, before, settings), before, chosen);
      saved += isUp && !isInTokens ? chosen.length : 0;
      return isUp;
    },
    /** Returns the edits of the new records. */
    edits: (): readonly Edit[] => [
      ...placed.map(({ edit }) => edit).filter((edit) => !wasSent.has(edit)),
      ...drops,
    ],
  };
}

function compressionFor(
  { subgoal, tokens, target, kept, by = extractive }: PlacedRecord,
  tokensBefore: number,
): Compression {
  return compressionOf({
    id: subgoal.memory,
    level: levelName(subgoal.level),
    tokensBefore,
    tokensAfter: tokens,
    target,
    ...(target === undefined ? { by: 'merge', problem: undefined } : by),
    kept,
  });
}

const extractive = { by: 'extractive', problem: undefined } as const;

function idOf(edit: Edit): readonly string[] {
  const id = edit.kind === 'insert-message' ? edit.stretch?.memory : edit.memory;
  return id === undefined ? [] : [id];
}

function placedRecordOf(view: FoldView, edit: Edit): readonly PlacedRecord[] {
  const subgoal = subgoalOf(edit);
  if (edit.kind !== 'insert-message' || subgoal === undefined) return [];
  return [{ edit, subgoal, level: subgoal.level, tokens: view.measure.text(edit.text) }];
}

/** Makes one record of several. */
function levelUpOf(
  view: FoldView,
  chosen: readonly PlacedRecord[],
  tokens: number,
  settings: CompressionLevel,
): PlacedRecord {
  const of = chosen.map(({ edit: { text }, subgoal }) => ({ text, stretch: subgoal }));
  return recordOf(view, settings, {
    before: chosen[0]!.edit.before,
    subgoal: {
      level: Math.max(...chosen.map(({ level }) => level)) + 1,
      memory: view.idOf(originalOfTexts(of)),
      calls: sum(chosen, ({ subgoal: { calls } }) => calls),
      of,
    },
    node: nodeAbove(of.map(nodeOfRecord)),
    texts: of.map(({ text }) => text),
    tokens,
    isMerge: false,
  });
}

type RecordDraft = {
  readonly before: number;
  readonly subgoal: FinishedSubgoal;
  readonly node: OutlineNode;
  /** The texts that the record replaces, to see how repetitive they are. */
  readonly texts: readonly string[];
  /** Tokens of what the record replaces. */
  readonly tokens: number;
  /** True for a light merge. */
  readonly isMerge: boolean;
  /** The steps of a sub-goal, which a model may put into words; undefined for higher levels. */
  readonly steps?: readonly SummaryStep[];
};

function recordOf(view: FoldView, settings: CompressionLevel, draft: RecordDraft): PlacedRecord {
  const { before, subgoal, node, texts, tokens, isMerge, steps } = draft;
  const count = (text: string) => view.measure.text(text);
  const head = recordHead({ ...subgoal, recallTool: view.recallTool });
  const target = isMerge ? undefined : ratioFor(settings, texts);
  const children = node.children.length;
  const room = roomFor(settings, { before: tokens, head: count(head), target, children });
  const spelled = ({ title, body }: NodeText): string =>
    `${head}${title && ` ${title}`}${body && `\n${body}`}`;
  const own = spellNode(node, { room, tokensOf: (made) => count(spelled(made)), count, mark: quoteMark });
  const mayAsk = view.written !== undefined && steps !== undefined && !isMerge;
  const aim = Math.max(40, room - count(spelled({ ...own, body: '' })));
  const written = mayAsk
    ? view.written(wantedRecord(subgoal.memory, { steps, node, tokens, aim }))
    : undefined;
  const modelBody =
    written && writtenBody(node, written, (body) => count(spelled({ ...own, body })) <= room * 1.2);
  const text = spelled(modelBody ? { ...own, body: modelBody } : own);
  const by: PlacedRecord['by'] = modelBody
    ? { by: 'summarizer', problem: undefined }
    : { by: 'extractive', problem: mayAsk ? 'its text was not written in time' : undefined };
  const edit: Insert = { kind: 'insert-message', before, role: 'user', text, stretch: subgoal };
  return { edit, subgoal, level: subgoal.level, tokens: count(text), target, kept: keptIn(node, text), by };
}

/** Returns the text that a model may write for a record: what is below its title. */
function wantedRecord(
  memory: string,
  about: Pick<WantedText, 'tokens' | 'aim' | 'steps'> & { readonly node: OutlineNode },
): WantedText {
  const { node, ...rest } = about;
  const what = titleOf(node, 200);
  return {
    ...rest,
    form: 'record',
    key: `${memory}/record`,
    guidance: `The transcript is one finished part of the work${what && `: ${JSON.stringify(what)}`}. Say what was found, done and decided in it; the next step does not matter.`,
  };
}

/** Returns the user's own words, then as many lines of a model as fit; undefined if none does. Each is marked as an item, so none can be mistaken for ours. */
function writtenBody(
  { done }: OutlineNode,
  written: string,
  fits: (body: string) => boolean,
): string | undefined {
  const ofUser = done.flatMap(({ isUsers, text }) => (isUsers ? [`- ${text}`] : []));
  const lines = proseOf(asProse(written)).map((line) => `- ${line}`);
  for (let count = lines.length; count > 0; count--) {
    const body = [...ofUser, ...lines.slice(0, count)].join('\n');
    if (fits(body)) return body;
  }
  return undefined;
}

function sum<T>(items: readonly T[], of: (item: T) => number): number {
  return items.reduce((total, item) => total + of(item), 0);
}

/** Marks every line of tool output. */
const quoteMark = '> ';

const names = ['', 'Steps', 'Phase'] as const;

/** Writes what a record replaces, and how to read it. */
function recordHead(record: {
  readonly level: number;
  readonly calls: number;
  readonly memory: string;
  readonly recallTool: string | undefined;
}): string {
  const { level, calls, memory, recallTool } = record;
  const what = `${names[level] ?? 'Phases'} folded, ${calls} ${calls === 1 ? 'call' : 'calls'}`;
  if (recallTool === undefined) return `[${what}, kept as ${memory}]`;
  return `[${what}: ${recallTool} ${JSON.stringify({ id: memory })} shows ${level === 1 ? 'them' : 'their records'}]`;
}

/** Makes a node of a record, for the level above. */
function nodeOfRecord({ text, stretch }: FinishedSubgoal['of'][number]): OutlineNode {
  if (stretch.of.length > 0) return nodeAbove(stretch.of.map(nodeOfRecord));
  const [head = '', ...lines] = text.split('\n');
  const end = head.indexOf('] ');
  return nodeOfText(stretch.level, '', end < 0 ? '' : head.slice(end + 2), lines.join('\n'));
}

// Finished sub-goals of a conversation that may be folded: runs of replies with their results, between two borders
// (outline/finder.ts). A user message begins a sub-goal and is not part of it. Pure.

/** The messages of a finished sub-goal. */
type SubgoalMessages = {
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
    if (isReply && free.has(open[0]!.index)) for (const one of open) run.push(one);
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
