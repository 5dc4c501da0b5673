/**
 * The interface of everything that decides what to fold. A strategy is pure: it looks at a conversation under the edits made so far
 * and returns further edits, least harm first, until they save what is asked for. The spine orders, checks and records them.
 */
import type { Block, Conversation, Part, TextPlace } from '../conversation/conversation.ts';
import type { Edit } from '../conversation/edit.ts';
import type { ReadySummary } from '../store/ready-summaries.ts';
import type { Compression } from '../receipts/compression.ts';

export interface Strategy {
  readonly name: string;
  readonly reach: Reach;
  /** Further edits; none when the strategy has nothing (more) to offer. Never throws, never touches what `view` protects. */
  propose(view: FoldView): readonly Edit[];
}

export type Reach =
  /** What nothing protects. Aims at the demand's goal. */
  | 'history'
  /** Results of the newest batch, too, none of which goes as a whole. Asked only where the others leave too much. */
  | 'newest'
  /** Whatever there is: the last resort, asked only when the request would not fit otherwise. */
  | 'everything';

/** What a strategy sees. */
export type FoldView = {
  readonly conversation: Conversation;
  /** Edits made so far, those of earlier folds included. */
  readonly edits: readonly Edit[];
  /** The smaller text that stands in the place of one since it came; undefined where it stands as it came. */
  readonly shrunk: (at: TextPlace) => string | undefined;
  /** How much is still too much, in the unit of the trigger's goal. Always positive; infinite where all that is free is to be taken. */
  readonly excess: { readonly unit: 'tokens' | 'messages'; readonly amount: number };
  /** Whether the request does not fit without: then nothing that is only good to know may take room. */
  readonly isForced: boolean;
  /** A summary of old messages that was written ahead, where there is one. */
  readonly ready?: Pick<ReadySummary, 'from' | 'upTo' | 'body'> | undefined;
  /** Why there is none where one was to be written; undefined where nobody was to write any. */
  readonly notReady?: () => string | undefined;
  /** Takes in what a text that an edit puts in comes to, for the receipt of the request if the edit is made. Changes nothing. */
  readonly tell: (text: string, compression: Compression) => void;
  /** Whether messages that folds put in come back as messages: whoever sends them keeps its own, as they were folded. */
  readonly isHistoryKept: boolean;
  readonly measure: Measure;
  readonly protects: Protection;
  /** The wire format's veto. */
  readonly mayEdit: (edit: Edit) => boolean;
  /** The id under which an original (exact JSON bytes) can be recalled. */
  readonly idOf: (original: Uint8Array) => string;
  /** Name of the tool the model can recall with; undefined when this request cannot offer it. */
  readonly recallTool: string | undefined;
  /** Results of fewer bytes (UTF-8) are never offloaded. */
  readonly compressionBytesThreshold: number;
};

/** Tokens of things, memoised. */
export type Measure = {
  text(text: string): number;
  part(block: Block, part: Part): number;
  /** Without what its results took less since they came; the edits of folds do not count. */
  message(index: number): number;
};

/** What a fold leaves alone whatever it saves. */
export type Protection = {
  /** Messages that stay whole and verbatim: system, the newest user message, the newest tool batch with its calls. */
  message(index: number): boolean;
  /** Parts a user has pinned. */
  part(message: number, part: number): boolean;
  /** What the model asked for again: it goes as a whole or not at all, or else the model would ask once more. */
  recalled(message: number, part: number): boolean;
};
