/** Drives a relay with streams written as text. */
import type { RelayEnd, StreamEvent, StreamRelay } from '../../../src/codecs/codec.ts';
import { shown } from './views.ts';

const encoder = new TextEncoder();

/** Feeds one upstream response; `out` is what the client has received by its end, without the tail. */
export function relayed(relay: StreamRelay, sse: string): { readonly out: string; readonly end: RelayEnd } {
  const out = takeAll(relay, sse);
  return { out, end: relay.end() };
}

/** Feeds events without ending the response. */
export function takeAll(relay: StreamRelay, sse: string): string {
  return eventsOf(sse)
    .flatMap((event) => relay.take(event))
    .map(shown)
    .join('');
}

/** Returns the bytes after a finished response; throws when a recall is pending. */
export function tailOf(end: RelayEnd): string {
  if (end.status !== 'done') throw new Error('a recall is pending');
  return end.tail.map(shown).join('');
}

/** Returns the events of a stream of our own, without odd line ends. */
export function eventsOf(sse: string): readonly StreamEvent[] {
  return sse
    .split(/(?<=\n\n)/)
    .filter((raw) => raw !== '')
    .map(eventOf);
}

export function eventOf(raw: string): StreamEvent {
  const lines = raw.split('\n');
  const valueOf = (field: string) =>
    lines.filter((line) => line.startsWith(`${field}: `)).map((line) => line.slice(field.length + 2));
  return { raw: encoder.encode(raw), event: valueOf('event')[0], data: valueOf('data').join('\n') };
}
