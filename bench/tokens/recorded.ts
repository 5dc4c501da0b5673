/** Reads the recorded conversations in ../shared/data, next to the repository. */
import { existsSync, readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';

export type ChatMessage = {
  readonly role: string;
  readonly content: unknown;
  readonly tool_call_id?: string;
  readonly tool_calls?: readonly {
    readonly id?: string;
    readonly function: { readonly name: string; readonly arguments: string };
  }[];
};

export type Recorded = {
  readonly id: string;
  readonly source: string;
  readonly tools?: unknown;
  readonly messages: readonly ChatMessage[];
  readonly meta: {
    readonly model?: string;
    /** Start of the conversation. */
    readonly started?: string;
    /**
     * Rows of a message index, the reported tokens of the prompt that ends before it (one figure, or three: not cached, written to the
     * cache, read from it), and the reported tokens of the reply.
     */
    readonly usage?: readonly (readonly number[])[];
    readonly microcompactions?: readonly unknown[];
    /** A session is split where the client compacted it. Every segment after the first begins with the client's summary. */
    readonly session?: string;
    readonly segment?: number;
    readonly starts_with_compaction_summary?: boolean;
  };
};

const dataFile = new URL('../../../shared/data/trajectories-dev.jsonl.gz', import.meta.url);

/** Returns undefined if there are none. */
export function readRecorded(): readonly Recorded[] | undefined {
  if (!existsSync(dataFile)) return undefined;
  const lines = gunzipSync(readFileSync(dataFile)).toString().trimEnd().split('\n');
  return lines.map((line) => JSON.parse(line) as Recorded);
}
