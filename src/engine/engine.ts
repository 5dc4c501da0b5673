/** The engine as others see it: reads each request, has it compacted, and sends the original bytes whatever fails. */
import { unremembered } from '../codecs/read-body.ts';
import { readBeginning } from '../codecs/read-beginning.ts';
import type { Conversation } from '../conversation/conversation.ts';
import { LeporelloError } from '../errors.ts';
import { createConversationCounter } from '../tokens/count-conversation.ts';
import { compactRequest, problemIn } from './compact-request.ts';
import { gaugeOf } from './corrected.ts';
import { withKeptReply } from './kept-replies.ts';
import type { EngineOptions } from './options.ts';
import { type Prepared, unprepared } from './prepared.ts';
import { leaveAlone } from './replay.ts';
import { openSlices, readInSlices, type Slices } from './slices.ts';
import type { EngineRequest } from './request.ts';
import { unfolded, type UnfoldedOutcome } from './unfolded.ts';
import { foldMemory, linksAsCame, lookUpIn, openWorkshop, type Workshop } from './workshop.ts';

export interface Engine {
  /** Never rejects: what goes wrong is the outcome `failed`, with the body as it came. */
  prepare(request: EngineRequest): Promise<Prepared>;
  /**
   * The request without a fold, for when it is not to be folded or could not be in time: as it came, but that it goes on from the right
   * reply where memory knows of another than the one it names. It reads no more of the body than how it begins. This process is asked
   * first and the store, where it has to be, for `waitMs` milliseconds at most. Never rejects.
   */
  unfolded(request: EngineRequest, outcome: UnfoldedOutcome, waitMs?: number): Promise<Prepared>;
  /**
   * Folds this conversation for a day only where it would not fit, because its provider took it only without our edits. Never rejects.
   */
  leaveAlone(request: EngineRequest): Promise<void>;
  /** Takes in the tokens a provider reported for a prompt that was sent without `prepare`. Never rejects. */
  learn(request: EngineRequest, reported: number): Promise<void>;
}

/** An engine from its parts; `createLeporello` has the usual ones. What it remembers of blocks is bounded by `maxParts`. */
export function createEngine(options: EngineOptions): Engine {
  const workshop = openWorkshop(options);
  return {
    async prepare(request) {
      let conversation: Conversation | undefined;
      try {
        const slices = openSlices();
        const came = await readInSlices(request.codec, request.body, workshop.reading, slices);
        conversation = came;
        const links = await linksInSlices(workshop, request, came, slices);
        const asked = lookUpIn(workshop, request, came, links);
        conversation = withKeptReply(request.codec, workshop.reading, came, await asked.reply);
        const incoming = { came, conversation, known: await asked.rest };
        await slices.pause();
        const prepared = await compactRequest(workshop, request, incoming, slices);
        return options.mode === 'observe' ? observed(prepared, conversation) : prepared;
      } catch (error) {
        const status = isUnread(error) ? 'untouched' : 'failed';
        // Not what came where that goes on from a private call, for no provider takes it.
        const body = conversation?.body ?? request.body;
        const { model, sessionKey } =
          conversation ?? readBeginning(request.codec, request.body, unremembered) ?? {};
        return {
          ...unprepared(
            body,
            { status, reason: problemIn(error) ?? 'unexpected error' },
            { model, sessionKey },
          ),
          mayGoAsItCame: body === request.body,
        };
      }
    },
    unfolded: (request, outcome, waitMs = 0) => unfolded(workshop, request, outcome, waitMs),
    async leaveAlone(request) {
      try {
        const conversation = request.codec.read(request.body, workshop.reading);
        // One without its history begins like many others, and no fold is ever made of it.
        if (conversation.previousReplyId !== undefined) return;
        await leaveAlone(foldMemory(workshop, request, conversation, conversation), options.clock?.());
      } catch {
        // This process remembers the refusal; others meet the next one anew.
      }
    },
    async learn(request, reported) {
      try {
        const conversation = request.codec.read(request.body, workshop.reading);
        const counter = await options.counterFor(conversation.model);
        const links = linksAsCame(workshop, request, conversation);
        const counts = createConversationCounter({ counter, memo: workshop.counts });
        await counts.ahead(conversation);
        gaugeOf(workshop.calibration, request.tenant, conversation, links).learn(
          counts.total(conversation),
          reported,
        );
      } catch {
        // Then it teaches nothing.
      }
    },
  };
}

/** The client's own bytes, gone on from the right reply, with the report of what would have been sent. */
function observed(prepared: Prepared, conversation: Conversation): Prepared {
  const { report, prompt, learn, identity, mayGoAsItCame } = prepared;
  const sent = unprepared(conversation.body, { status: 'observed' }, conversation);
  return { ...sent, mayGoAsItCame, report, prompt, learn, identity };
}

/** Messages whose links are computed before others may run: some 15 ms. */
const linksAtOnce = 20_000;

/** Returns the links of the prefix chain, as `linksAsCame` does. */
async function linksInSlices(
  workshop: Workshop,
  request: EngineRequest,
  came: Conversation,
  slices: Slices,
): Promise<readonly string[]> {
  for (let length = linksAtOnce; length < came.messages.length; length += linksAtOnce) {
    linksAsCame(workshop, request, { ...came, messages: came.messages.slice(0, length) });
    await slices.pause();
  }
  return linksAsCame(workshop, request, came);
}

function isUnread(error: unknown): boolean {
  return LeporelloError.isInstance(error) && error.code === 'not-this-format';
}
