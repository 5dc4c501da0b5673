/** Recorded conversations as the token benchmark reads them: see ../shared/data/README.md beside the repository. */
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
    /** When the conversation began. */
    readonly started?: string;
    /**
     * A message index, and the tokens the provider reported for the prompt that ends before it: one figure, or three (not cached,
     * written to the cache, read from it); last, those of the reply.
     */
    readonly usage?: readonly (readonly number[])[];
    readonly microcompactions?: readonly unknown[];
    /** Parts of one session, cut where the client compacted it; each but the first begins with the summary that the client had then. */
    readonly session?: string;
    readonly segment?: number;
    readonly starts_with_compaction_summary?: boolean;
  };
};

const dataFile = new URL('../../../shared/data/trajectories-dev.jsonl.gz', import.meta.url);

/** Undefined where there are none. */
export function readRecorded(): readonly Recorded[] | undefined {
  if (!existsSync(dataFile)) return undefined;
  const lines = gunzipSync(readFileSync(dataFile)).toString().trimEnd().split('\n');
  return lines.map((line) => JSON.parse(line) as Recorded);
}
