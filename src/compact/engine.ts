/** The engine as others see it: reads each request, has it compacted, and sends the original bytes whatever fails. */
import type { Conversation } from '../conversation/conversation.ts';
import { LeporelloError } from '../errors.ts';
import { createConversationCounter } from '../tokens/count-conversation.ts';
import { compactRequest } from './compact-request.ts';
import { gaugeOf } from './corrected.ts';
import { withKeptReply } from './kept-replies.ts';
import type { EngineOptions } from './options.ts';
import { type Prepared, unprepared } from './prepared.ts';
import { leaveAlone } from './replay.ts';
import type { EngineRequest } from './request.ts';
import { foldMemory, linksAsCame, lookUpIn, openWorkshop } from './workshop.ts';

export interface Engine {
  /** Never rejects: what goes wrong is the outcome `failed`, with the body as it came. */
  prepare(request: EngineRequest): Promise<Prepared>;
  /**
   * Folds this conversation from here on only where it would not fit, for when its provider took it only without our edits. Never
   * rejects.
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
        const came = request.codec.read(request.body, workshop.reading);
        conversation = came;
        const asked = lookUpIn(workshop, request, came, linksAsCame(workshop, request, came));
        conversation = withKeptReply(request.codec, workshop.reading, came, await asked.reply);
        const prepared = await compactRequest(workshop, request, {
          came,
          conversation,
          known: await asked.rest,
        });
        return options.mode === 'observe' ? observed(prepared, request, conversation) : prepared;
      } catch (error) {
        const status = isUnread(error) ? 'untouched' : 'failed';
        // Not what came where that goes on from a private call, for no provider takes it.
        const body = conversation?.body ?? request.body;
        return unprepared(body, { status, reason: reasonOf(error) }, conversation);
      }
    },
    async leaveAlone(request) {
      try {
        const conversation = request.codec.read(request.body, workshop.reading);
        // One without its history begins like many others, and no fold is ever made of it.
        if (conversation.goesOnFrom !== undefined) return;
        await leaveAlone(foldMemory(workshop, request, conversation, conversation));
      } catch {
        // Then the next refusal is met anew.
      }
    },
    async learn(request, reported) {
      try {
        const conversation = request.codec.read(request.body, workshop.reading);
        const counter = await options.counterFor(conversation.model);
        const links = linksAsCame(workshop, request, conversation);
        const counts = createConversationCounter({ counter, memo: workshop.counts });
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

/** The client's own bytes, with the report of what would have been sent. */
function observed(prepared: Prepared, { body }: EngineRequest, conversation: Conversation): Prepared {
  const { report, prompt, learn, identity } = prepared;
  return { ...unprepared(body, { status: 'observed' }, conversation), report, prompt, learn, identity };
}

function isUnread(error: unknown): boolean {
  return LeporelloError.isInstance(error) && error.code === 'not-this-format';
}

/** Our own errors say no content; of others only the kind is told. */
function reasonOf(error: unknown): string {
  if (LeporelloError.isInstance(error)) return `${error.code}: ${error.message}`;
  return error instanceof Error ? `unexpected ${error.name}` : 'unexpected error';
}
