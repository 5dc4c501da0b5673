/**
 * Defines the interface of strategies, which decide what to fold. A strategy is pure: it reads a conversation with the edits made so far and returns
 * further edits, least harm first, until they save enough. The engine orders, checks and records them.
 */
import type { Block, Conversation, Media, Part, TextPlace } from '../conversation/conversation.ts';
import type { Edit } from '../conversation/edit.ts';
import { type Steps, runSteps } from '../conversation/steps.ts';
import type { ReadySummary } from '../store/ready-summaries.ts';
import type { Compression } from '../receipts/receipt.ts';
import type { WantedText } from '../outline/summarizer.ts';

export interface Strategy {
  readonly name: string;
  readonly reach: Reach;
  /** Smaller texts, in UTF-8 bytes, are never replaced by this strategy. The engine estimates with it how much a fold can save. */
  readonly minResultBytes?: number;
  /** Set by a strategy that replaces images, documents and sounds: how many of the newest it leaves. The engine estimates with it, too. */
  readonly keepNewestMedia?: number;
  /** Set by a strategy that writes summaries. `isWrittenAhead`: the program is asked to have them written before the fold. */
  readonly summary?: { readonly maxTokens: number; readonly isWrittenAhead: boolean };
  /** True if a model may write its texts ahead of the fold: it looks them up with `view.written`. */
  readonly asksForTexts?: boolean;
  /** Returns further edits, or none. Never throws, and never edits what `view` protects. */
  propose(view: FoldView): readonly Edit[];
  /** Does the same in steps, so that other requests can run in between. For strategies that take long on large requests. */
  proposeInSteps?(view: FoldView): Steps<readonly Edit[]>;
}

/** Creates a strategy that works in steps. */
export function steppedStrategy(
  name: string,
  reach: Reach,
  proposeInSteps: (view: FoldView) => Steps<readonly Edit[]>,
): Strategy {
  return { name, reach, proposeInSteps, propose: (view) => runSteps(proposeInSteps(view)) };
}

/** The content that a strategy may edit. */
export type Reach =
  /** Unprotected content. Aims at the demand's goal. */
  | 'history'
  /** Also results of the newest batch, none of them completely. Used only if other strategies leave too much. */
  | 'newest'
  /** Everything: the last resort, used only if the request would not fit otherwise. */
  | 'everything';

/** The input of a strategy. */
export type FoldView = {
  readonly conversation: Conversation;
  /** Edits made so far, including those of earlier folds. A program's strategy may propose their replacements again: these are left out. */
  readonly edits: readonly Edit[];
  /** Returns the smaller version of a text that was shrunk on arrival; undefined if it was not. */
  readonly shrunk: (at: TextPlace) => string | undefined;
  /** How much is still too much, in the unit of the trigger's goal. Always positive; infinite if everything unprotected is to be folded. */
  readonly excess: { readonly unit: 'tokens' | 'messages'; readonly amount: number };
  /** True if the request would not fit otherwise: then stubs name nothing that is not necessary. */
  readonly isForced: boolean;
  /** Tokens that must be saved for the request to fit, if it is forced: less than the excess, which aims lower. Default: the excess. */
  readonly mustSave?: number | undefined;
  /** Tokens of the request before this fold. A strategy may be asked several times for one fold. Default: those of the messages now. */
  readonly tokensBefore?: number;
  /** A summary of old messages that was written ahead, if there is one. */
  readonly ready?: Pick<ReadySummary, 'from' | 'upTo' | 'body'> | undefined;
  /** Returns a text that a model wrote ahead of the fold; undefined if there is none yet. */
  readonly written?: ((wanted: WantedText) => string | undefined) | undefined;
  /** Returns why a summary that should have been written ahead is missing; undefined if none was to be written. */
  readonly notReady?: () => string | undefined;
  /** Reports the compression of an inserted text, for the receipt of the request if the edit is made. Has no other effect. */
  readonly reportCompression: (text: string, compression: Compression) => void;
  /** True if the program keeps its messages as they were folded, so that inserted messages come back as messages. */
  readonly isHistoryKept: boolean;
  readonly measure: Measure;
  readonly protects: Protection;
  /** False for an edit that the wire format forbids. */
  readonly mayEdit: (edit: Edit) => boolean;
  /** Returns the id by which an original can be recalled. It gets the exact bytes in the body: of a text those of its JSON literal, with the quotes. */
  readonly idOf: (original: Uint8Array) => string;
  /** Name of the recall tool; undefined if this request cannot offer it. */
  readonly recallTool: string | undefined;
  /** UTF-8 bytes of the smallest text that any strategy of the list replaces. */
  readonly minResultBytes: number;
};

/** Token counts, remembered. */
export type Measure = {
  text(text: string): number;
  /** Counts a text that may be very long. */
  textInSteps(text: string): Steps<number>;
  part(block: Block, part: Part): number;
  media(block: Block, media: Media): number;
  /** Counts a message with its results as shrunk on arrival, but without the edits of folds. */
  message(index: number): number;
};

/** The content that a fold must not edit, even if that would save tokens. */
export type Protection = {
  /** True for messages that stay unchanged: system, the newest user message, the newest tool batch with its calls. */
  message(index: number): boolean;
  /** True for parts that the user pins, and for parts that stay in view. */
  part(message: number, part: number): boolean;
  /** True for recalled content: it is dropped completely or not at all, or else the model would recall it again. */
  recalled(message: number, part: number): boolean;
  /** True for parts that the user pins. */
  readonly isPinned?: (message: number, part: number) => boolean;
  /** True for the plan, instruction files and marked texts, even while they give way. */
  readonly isInView?: (message: number, part: number) => boolean;
  /** True when no part is pinned or recalled. */
  readonly hasPlainResults?: boolean;
  /** True while they may be folded, because the request would not fit otherwise. */
  readonly hasGivenWay?: boolean;
  /** Marked texts of a result: a stub in its place repeats them, and its message is not dropped. */
  readonly keptTexts?: (message: number, part: number) => readonly string[];
};
