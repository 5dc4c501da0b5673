/** Writes server-sent events as text in the plainest spelling, and reads them strictly, for fixtures. */

export type SseEvent = { readonly event: string | undefined; readonly data: string };

export function sseText(data: unknown, event?: string): string {
  const text = typeof data === 'string' ? data : JSON.stringify(data);
  return `${event === undefined ? '' : `event: ${event}\n`}data: ${text}\n\n`;
}

/** Returns the events of a stream without comments. Throws for lines that no event has. */
export function sseEvents(sse: string): readonly SseEvent[] {
  if (sse !== '' && !sse.endsWith('\n\n')) throw new Error('the stream does not end with an event');
  return sse
    .split('\n\n')
    .filter((block) => block !== '' && !block.startsWith(':'))
    .map((block) => {
      const lines = block.split('\n').map((line) => {
        const [, field, value] = /^(event|data): (.*)$/s.exec(line) ?? [];
        if (field === undefined) throw new Error(`not a line of an event: ${line}`);
        return { field, value: value! };
      });
      const data = lines.filter(({ field }) => field === 'data').map(({ value }) => value);
      return { event: lines.find(({ field }) => field === 'event')?.value, data: data.join('\n') };
    });
}

/** Returns a `fetch` that answers every request with this stream, for clients that accumulate one. */
export function fetchOf(sse: string): () => Promise<Response> {
  const headers = { 'content-type': 'text/event-stream' };
  return () => Promise.resolve(new Response(sse, { headers }));
}

/** Throws with the reason unless the condition holds. */
export function must(condition: boolean, reason: string): asserts condition {
  if (!condition) throw new Error(reason);
}
