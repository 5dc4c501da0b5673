/** Reads the recorded tool results as texts, each with the name of its tool. */
import { type Recorded, readRecorded } from '../tokens/recorded.ts';

export type RecordedResult = { readonly source: string; readonly tool: string; readonly text: string };

/** Returns undefined if there are no recorded conversations. */
export function readResults(): readonly RecordedResult[] | undefined {
  return readRecorded()?.flatMap(resultsOf);
}

function resultsOf({ source, messages }: Recorded): readonly RecordedResult[] {
  const tools = new Map<string, string>();
  const results: RecordedResult[] = [];
  for (const message of messages) {
    // An id may be used again; a result answers the newest call.
    for (const call of message.tool_calls ?? [])
      tools.set((call as unknown as { id: string }).id, call.function.name);
    if (message.role !== 'tool' || typeof message.content !== 'string') continue;
    const id = (message as unknown as { tool_call_id: string }).tool_call_id;
    results.push({ source, tool: tools.get(id) ?? 'unknown', text: message.content });
  }
  return results;
}
