/** Defines the log and the metrics of a gateway, which get no content and no credentials, and the events that a receipt notes. */
import type { NoteKind } from '../../experiment/waiting-notes.ts';
import type { ModelReply } from '../../codecs/codec.ts';
import type { Usage } from '../../conversation/conversation.ts';
import type { RecallReport, Receipt, ShadowReceipt, SummaryReceipt } from '../../receipts/receipt.ts';
import type { StoreTimes } from '../../store/wrapped-store.ts';

/** Log of the gateway. Fields contain names, counts and ids. */
export interface GatewayLog {
  info(fields: Readonly<Record<string, unknown>>, message: string): void;
  warn(fields: Readonly<Record<string, unknown>>, message: string): void;
}

/** Metrics of the gateway. They contain counts, sums and names of models. */
export interface GatewayMetrics {
  /** Counts a model call when its receipt is written. `format` is the wire format. */
  requestEnded(format: string, receipt: Receipt): void;
  /** Counts a summary that was written in the background, or failed. */
  summaryEnded(receipt: SummaryReceipt): void;
  /** Counts a folded request that was sent again, compared or not. */
  shadowEnded(receipt: ShadowReceipt): void;
  /** Counts notes about requests that had ended and that were not stored. */
  notesLost(kind: NoteKind, count: number): void;
  /** Counts a call of the store, such as `getMany`. */
  readonly storeCalled: StoreTimes;
  /** Returns all metrics as text. */
  page(now: { readonly summariesRunning: number }): Promise<{
    readonly contentType: string;
    readonly text: string;
  }>;
}

/** Reports events of an exchange to its receipt. */
export type ExchangeNotes = {
  /** `asked`: the arguments of the call. */
  recalled(report: RecallReport, asked: string): void;
  /** Called at the end of each round with the usage of all rounds so far. */
  used(usage: Usage | undefined): void;
  /** Called at the end of a stream, however it ended, with the usage that was reported so far. */
  ended(usage: Usage | undefined): void;
  /** Called with the model's last reply when it was read to its end. */
  replied(reply: ModelReply): void;
  upstreamStatus(status: number): void;
  problem(text: string): void;
};
