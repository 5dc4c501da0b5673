/**
 * Holds back text in the stream of a reply from which the client reads JSON. A text that the model writes before a hidden recall would stand in front of
 * the JSON, so it must not reach the client; but only the end of a round tells if a recall follows. So the text of a round, and all events behind it,
 * wait for
 *
 * - a call of the client's: then the reply ends with the round, and recalls in it are not answered in the stream;
 * - the end of the round: its text is left out if a recall follows, and else shown;
 * - the beginning of an object or a list, in a request with nothing to recall: a model that was shown no stub writes the JSON for good.
 *
 * With something to recall, a text that begins like JSON waits, too: it may be a draft that the model replaces after a recall, or words in brackets.
 * Reasoning ahead of the text is not held back. Decision 52 says what was weighed.
 */
import { parseRecord } from '../conversation/json-scan.ts';
import type { PrivateTools } from '../conversation/turns.ts';
import type { StreamEvent, StreamRelay } from './codec.ts';

export type TextHolding = {
  /** The names of the private tools, as in `StreamOptions`. */
  readonly privateTools: PrivateTools;
  /** True when the request has something to recall. */
  readonly mayRecall: boolean;
  /** True when the reply does not go on after this round, even if it ends with a recall. */
  readonly isLastRound: () => boolean;
};

/** The state of one round. */
type HeldRound = {
  /** The events from the first text on; undefined as soon as they need not wait any longer. */
  held: StreamEvent[] | undefined;
  text: string;
  hasRecall: boolean;
};

/** The beginning of an object or a list, but for a list of words: those may be a sentence in brackets. */
const beginsJson = /^\s*(?:\{\s*["}]|\[\s*["{[\]\d-])/;

/** Returns a relay that holds back texts which may precede a recall. */
export function holdText(relay: StreamRelay, holding: TextHolding): StreamRelay {
  if (holding.privateTools.size === 0) return relay;
  let round = newRound();
  let { mayRecall } = holding;
  let hidesText: true | undefined;

  /** Notes what an event adds to the round. Returns true if the rest of the round need not wait. */
  function isSettled(event: StreamEvent, held: StreamEvent[]): boolean {
    const data = parseRecord(event.data);
    const { text, calls } = data ? relay.contentOf(data) : { text: undefined, calls: [] };
    const recalls = calls.filter((name) => holding.privateTools.has(name));
    if (text !== undefined || held.length > 0) held.push(event);
    round.text += text ?? '';
    round.hasRecall ||= recalls.length > 0;
    mayRecall ||= round.hasRecall;
    if (recalls.length < calls.length || holding.isLastRound()) return true;
    return !mayRecall && beginsJson.test(round.text);
  }

  /** Takes all that was held back. The rest of the round is taken at once. */
  function takeHeld(): readonly Uint8Array[] {
    const events = round.held ?? [];
    round.held = undefined;
    return events.flatMap((event) => relay.take(event));
  }

  return {
    ...relay,
    take(event) {
      const { held } = round;
      if (!held) return relay.take(event);
      const mayGoOn = isSettled(event, held);
      // Nothing waits until the first text.
      if (held.length === 0) {
        if (mayGoOn) round.held = undefined;
        return relay.take(event);
      }
      return mayGoOn ? takeHeld() : [];
    },
    skip: (bytes, from) => (round.held ? from : relay.skip(bytes, from)),
    release() {
      hidesText = round.held && round.hasRecall ? true : undefined;
      if (hidesText) relay.hideText();
      return takeHeld();
    },
    end() {
      const end = relay.end();
      round = newRound();
      return end.status === 'recall' ? { ...end, reply: { ...end.reply, hidesText } } : end;
    },
  };
}

function newRound(): HeldRound {
  return { held: [], text: '', hasRecall: false };
}
