/**
 * Defines the tool by which the model recalls originals and the one by which it saves notes, and answers one call for a prepared request. The
 * definition is sent with every request, so every word of it is paid for each turn; and it must never change within a conversation, or the
 * cached prefix is lost.
 */
import type { ModelReply, RecallAnswer, RecallTool } from '../codecs/codec.ts';
import type { RecalledMedia } from '../conversation/conversation.ts';
import { reasonOf } from '../errors.ts';
import type { OriginalTitle } from './read-original.ts';

const usualName = 'read_memory';

/**
 * Returns the tool under a name that the client does not use: `read_memory`, else `leporello_read_memory`, else that with `_2`,
 * `_3`. The same names give the same tool. A `query` without an id is possible where the stubs of the conversation are known. With
 * `withNotes` the tool for notes comes with it, under a name that the client does not use either.
 */
export function recallToolFor(
  takenNames: readonly string[],
  by: 'id' | 'id or query' = 'id or query',
  withNotes = false,
): RecallTool {
  const name = freeName(new Set(takenNames), withNotes);
  const tool = name === usualName ? usualTools[by] : toolNamed(name, by);
  if (!withNotes) return tool;
  return tool === usualTools['id or query'] ? usualWithNotes : { ...tool, notes: notesToolFor(name) };
}

function toolNamed(name: string, by: 'id' | 'id or query'): RecallTool {
  return by === 'id'
    ? { name, description, parameters: { ...parameters, required: ['id'] } }
    : { name, description: `${description} query alone searches all notes.`, parameters };
}

/** Returns the tool for notes that is offered besides a recall tool. */
export function notesToolFor(recallTool: string): RecallTool {
  return { name: notesToolOf(recallTool), description: notesDescription, parameters: notesParameters };
}

/** Returns the name of the tool for notes that may be offered besides a recall tool: `save_context` besides `read_memory`. */
function notesToolOf(recallTool: string): string {
  return recallTool.replace(usualName, 'save_context');
}

const notesDescription =
  'Keeps a text in view when older parts of this conversation are folded: ' +
  'a decision, a finding or an open end that you will need later, in a few sentences.';

/** Written for models that have never seen such a tool: what it reads, when to ask, and how. */
const description =
  'Older parts of this conversation are folded into [bracketed notes]; nothing is lost. Ask before you redo a step or guess. ' +
  'id: shows what a note stands for, with lines "10-40" or path "$.content" a part of it, with query the places that share its words.';

const textType = { type: 'string' } as const;

// Plain types and no defaults, so that strict and lax providers accept it alike; arguments are read leniently.
const parameters = {
  type: 'object',
  properties: { id: textType, query: textType, lines: textType, path: textType },
} as const;

const notesParameters = {
  type: 'object',
  properties: { text: textType, title: textType },
  required: ['text'],
} as const;

/** Nearly every request gets one of these objects, so that its definition is spelled once. */
const usualTools = { id: toolNamed(usualName, 'id'), 'id or query': toolNamed(usualName, 'id or query') };
const usualWithNotes: RecallTool = { ...usualTools['id or query'], notes: notesToolFor(usualName) };

function freeName(taken: ReadonlySet<string>, withNotes: boolean): string {
  const isTaken = (name: string) => taken.has(name) || (withNotes && taken.has(notesToolOf(name)));
  if (!isTaken(usualName)) return usualName;
  const own = `leporello_${usualName}`;
  let name = own;
  for (let number = 2; isTaken(name); number++) name = `${own}_${number}`;
  return name;
}

/** Bytes (UTF-8) of the arguments of a note that is sure to stay in view. The engine bounds all notes together. */
const maxNoteBytes = 6_000;

/**
 * Returns the text that answers a call of the tool for notes, whatever its arguments are. The note itself is the call: it is put back into later
 * requests as all hidden recalls are, so nothing else is stored.
 */
export function noteAnswer(argumentsJson: string): string {
  let sent: unknown;
  try {
    sent = JSON.parse(argumentsJson);
  } catch {
    return 'Nothing was saved: the arguments are not JSON. Send {"text": "…"}.';
  }
  const { text } = (sent ?? {}) as Readonly<Record<string, unknown>>;
  if (typeof text !== 'string' || text.trim() === '')
    return 'Nothing was saved: there is no text. Send {"text": "…"}.';
  if (new TextEncoder().encode(argumentsJson).length > maxNoteBytes)
    return `Saved, but it may be folded with the rest: only texts of at most ${maxNoteBytes} bytes are sure to stay in view.`;
  return 'Saved. The newest saved texts stay in view.';
}

// Answers for a prepared request: a model that sees a stub may read its original.

/** The part of a prepared request that recalls are answered from. */
type RecallSource = {
  /** Counts the tokens of the answer; if undefined, its characters are counted. */
  readonly counter: { count(text: string): number } | undefined;
  /** Returns an original; undefined for an id that is unknown in this conversation. */
  readonly original: (id: string) => Uint8Array | undefined | Promise<Uint8Array | undefined>;
  /** Returns the title of an original. */
  readonly titleOf?: (id: string) => OriginalTitle | undefined | Promise<OriginalTitle | undefined>;
  /** Returns the ids that a recall without an id searches, the most likely first. */
  readonly searched: () => readonly string[];
  /** The images and documents among the originals, by id. */
  readonly media?: ReadonlyMap<string, FoldedMedia> | undefined;
  /** The request that is sent. */
  readonly body?: Uint8Array;
};

/** An image or document that a fold took out. */
export type FoldedMedia = Pick<RecalledMedia, 'inResult'> & {
  /** The noun that stubs and answers use. */
  readonly name: string;
  readonly tokens: number;
};

export type RecallText = {
  /** The text for the model: the original, a part of it, or a sentence that says why there is none. */
  readonly text: string;
  /** True when there was an original for the id, or originals to search. */
  readonly found: boolean;
  /** Tokens of the text and the media. */
  readonly tokens: number;
  /** The image or document that the answer gives back besides its text. */
  readonly media?: readonly RecalledMedia[];
};

/** Answers a recall with at most `maxTokens` of text or an image or document of that size, for any arguments. */
export async function answerRecall(
  request: RecallSource,
  argumentsJson: string,
  maxTokens: number,
): Promise<RecallText> {
  const count = (text: string) => request.counter?.count(text) ?? text.length;
  const given = await recallMedia(request, argumentsJson, maxTokens);
  if (given) return { ...given, found: true, tokens: count(given.text) + given.tokens };
  let found = false;
  let sent: string | undefined;
  // Loaded on demand: many conversations recall nothing.
  const { isMiss, resolveRecall } = await import('./resolve.ts');
  const text = await resolveRecall({
    argumentsJson,
    async lookup(id) {
      const original = await request.original(id);
      found ||= original !== undefined;
      return original && new TextDecoder().decode(original);
    },
    titleOf: (id) => request.titleOf?.(id),
    all: request.searched(),
    maxTokens,
    countTokens: count,
    isShown: (words) =>
      (sent ??= new TextDecoder().decode(request.body)).includes(JSON.stringify(words).slice(1, -1)),
  });
  return { text, found: found && !isMiss(text), tokens: count(text) };
}

/** Returns the image or document that the call names as it was; undefined when it names something else. */
async function recallMedia(
  { media, original }: RecallSource,
  argumentsJson: string,
  maxTokens: number,
): Promise<Pick<RecallText, 'text' | 'tokens' | 'media'> | undefined> {
  if (!media || media.size === 0) return undefined;
  const { parseArguments } = await import('./resolve.ts');
  const parsed = parseArguments(argumentsJson);
  const id = parsed.status === 'ok' && parsed.value.of === 'one' ? parsed.value.id : '';
  const folded = media.get(id);
  const stored = folded && (await original(id));
  if (!folded || !stored) return undefined;
  const { name, tokens, inResult } = folded;
  if (tokens > maxTokens)
    return { text: `The ${name} takes about ${tokens} tokens; there is room for ${maxTokens}.`, tokens: 0 };
  const json = new TextDecoder().decode(stored);
  return { text: `The ${name} of ${id}, as it was:`, tokens, media: [{ json, inResult }] };
}

// Limits of the recalls of one request

export type RecallLimits = {
  /** Maximum number of rounds of recalls in one request. In one further round the model is told that there are no more. */
  readonly maxRounds: number;
  /** Maximum number of tokens of one answer. */
  readonly maxTokens: number;
};

/**
 * Limits what the model may still recall in one request: the number of rounds, and the tokens, so that answers never make the request
 * exceed the window. When the budget is spent the model is told so once, and continues without further recalls.
 */
export interface RecallBudget {
  /** Returns how many tokens each of so many answers may have, or a text for the model when no more can be recalled. */
  forEach(round: number, recalls: number): number | string;
  /** Subtracts a text by which the request grows, or its tokens. */
  spend(added: string | number): void;
  /** Notes that the provider found the request too long: there is no room left. */
  exhaust(): void;
  /** True when the model keeps recalling after it was told that there are no more rounds. */
  isSpent(round: number): boolean;
}

/** The limits of recalls in one reply, unless a program or a configuration sets others. */
export const usualRecallLimits: RecallLimits = { maxRounds: 5, maxTokens: 8_000 };

/** Tokens of the smallest useful answer: fewer hold only the hint how to read the rest. */
const minAnswerTokens = 200;

export function openBudget({
  prepared,
  recall,
}: {
  readonly prepared: { readonly room: number | undefined; readonly counter: RecallSource['counter'] };
  readonly recall: RecallLimits;
}): RecallBudget {
  let left = prepared.room ?? Number.POSITIVE_INFINITY;
  return {
    forEach(round, recalls) {
      if (round > recall.maxRounds)
        return 'No more memory can be read in this answer. Go on with what is there.';
      const each = Math.min(recall.maxTokens, Math.floor(left / recalls));
      return each < minAnswerTokens ? noRoom : each;
    },
    spend(added) {
      left -= typeof added === 'number' ? added : (prepared.counter?.count(added) ?? added.length);
    },
    exhaust() {
      left = 0;
    },
    isSpent: (round) => round > recall.maxRounds + 1,
  };
}

/** Answer to a recall for which there is no room. The model reads it. */
const noRoom = 'The context window has no room left to read memory. Go on with what is there.';

/** Returns what to send if the provider finds these answers too long: a sentence in place of each longer one. */
export function withoutLongAnswers(answers: readonly RecallAnswer[]): readonly RecallAnswer[] {
  return answers.map((answer) =>
    answer.media || answer.text.length > noRoom.length ? { call: answer.call, text: noRoom } : answer,
  );
}

/** Runs a recall by the tool of this name, and returns its answer. */
export type RecallWatch = (tool: string, work: () => Promise<RecallText>) => Promise<RecallText>;

/** Reports the recalls of a round. */
type RoundNotes = {
  /** `asked`: the arguments of the call. */
  recalled(
    report: { readonly round: number; readonly found: boolean; readonly tokens: number },
    asked: string,
  ): void;
  problem(text: string): void;
};

/** A request whose recalls are answered, and the functions that get to know of them. */
type RoundSource = {
  readonly prepared: RecallSource & { readonly notesTool?: string | undefined };
  readonly note?: RoundNotes;
  readonly watchRecall?: RecallWatch | undefined;
};

/**
 * Answers the private calls of a round, in their order. Never rejects: if an original cannot be read, the model is told so, and `note.problem`
 * gets the reason.
 */
export async function answersTo(
  { prepared, note, watchRecall: watch = (_, work) => work() }: RoundSource,
  { recalls, turn }: Pick<ModelReply, 'recalls' | 'turn'>,
  round: number,
  budget: RecallBudget,
): Promise<readonly RecallAnswer[]> {
  const isNote = ({ name }: { readonly name: string }) => name === prepared.notesTool;
  const limit = budget.forEach(round, recalls.filter((call) => !isNote(call)).length);
  budget.spend(new TextDecoder().decode(turn));
  const told = (text: string): RecallText => ({
    text,
    found: false,
    tokens: prepared.counter?.count(text) ?? text.length,
  });
  const answers: RecallAnswer[] = [];
  for (const call of recalls) {
    if (isNote(call)) {
      const saved = noteAnswer(call.argumentsJson);
      budget.spend(saved);
      answers.push({ call, text: saved });
      continue;
    }
    const { text, found, tokens, media } =
      typeof limit === 'string'
        ? told(limit)
        : await watch(call.name, () => answerRecall(prepared, call.argumentsJson, limit)).catch((error) => {
            note?.problem(`a recall failed: ${reasonOf(error)}`);
            return told(unreadable);
          });
    budget.spend(tokens);
    note?.recalled({ round, found, tokens }, call.argumentsJson);
    answers.push({ call, text, ...(media && { media }) });
  }
  return answers;
}

/** Answer to a recall that failed. The model reads it. */
const unreadable = 'This memory cannot be read now. Go on without it.';
