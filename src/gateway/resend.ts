/**
 * Sends the requests of one comparison for a shadow, answers the recalls in their replies, and keeps what that cost. Only the decision of each last reply
 * is wanted: the client gets nothing of it, and nothing is remembered for later requests.
 */
import type { Codec, ModelReply } from '../codecs/codec.ts';
import { readInSlices, unremembered } from '../codecs/read-body.ts';
import type { Conversation, Usage } from '../conversation/conversation.ts';
import { openSlices } from '../conversation/steps.ts';
import type { EngineRequest, PreparedRequest } from '../engine/types.ts';
import { billOf, noUsage, usageSince } from '../receipts/cost.ts';
import { recallToolFor } from '../recall/tool.ts';
import type { Receipt } from '../receipts/receipt.ts';
import type { PriceList } from '../tokens/model-facts.ts';
import type { ModelInfo } from '../tokens/models.ts';
import { type HeaderList, headerOf, type UpstreamResponse } from './http/http.ts';
import type { RecallLimits } from '../recall/tool.ts';
import type { Exchange } from './options.ts';
import { relayStream, relayWhole } from './recall-loop.ts';
import { discardBody, replyKindOf } from './http/body.ts';
import { pauseUnless } from './send-with-retries.ts';

/** One request to the provider. `most`: the USD that it can have cost if its usage is not known. */
type ResentCall = { readonly most: number; status: number; usage: Usage | undefined };

/** Requests of one comparison that were sent so far. */
export type ResentCalls = ResentCall[];

/** A served request, and its reply. */
type RepeatedRequest = {
  readonly receipt: Receipt;
  readonly request: EngineRequest;
  readonly prepared: PreparedRequest;
  readonly reply: ModelReply;
};

/** Everything that the requests of one comparison are sent with. */
export type ResendParts = {
  readonly recall: RecallLimits;
  readonly send: (body: Uint8Array) => Promise<UpstreamResponse>;
  readonly signal: AbortSignal;
  /** Reserves money to continue a reply. Returns the reason why it may not be spent; undefined if it may. */
  readonly reserve: (usd: number) => Promise<string | undefined>;
  readonly sent: ResentCalls;
  /** Waits until the gateway has time; false when it had none. */
  readonly whenIdle: () => Promise<boolean>;
  /** Called when the provider is close to a rate limit. */
  readonly nearLimit: () => void;
};

/** Two replies to the folded request, and two to the whole one. */
export type ComparedReplies = {
  readonly folded: readonly ComparedReply[];
  readonly whole: readonly ComparedReply[];
};

export type ComparedReply = {
  readonly reply: ModelReply;
  readonly recalls: number;
  /** Tokens of the reply with its recalls; 0 if the provider reported none. */
  readonly tokensOut: number;
};

/** A reply, or the reason why there is none to compare. */
type ResentReply = (
  | ({ readonly status: 'replied' } & ComparedReply)
  | { readonly status: 'failed'; readonly reason: string }
) & { readonly isLimited: boolean };

/** The reason for no comparison when the provider is close to a rate limit. */
export const closeToLimit = 'the provider was close to a rate limit';

/**
 * Sends the requests of a comparison, one after the other. Their first rounds are paid for already. Returns the replies, or the reason why there is
 * nothing to compare.
 */
export async function repliesTo(
  { receipt, request, prepared, reply }: RepeatedRequest,
  { foldedTokens, wholeTokens, mostFor }: CostBounds,
  parts: ResendParts,
): Promise<ComparedReplies | string> {
  const { heldBack } = prepared;
  const served = { reply, recalls: receipt.recalls.length, tokensOut: receipt.usage?.output ?? 0 };
  const fold = heldBack ? await heldBack.prepared() : prepared;
  if (!fold) return 'its fold was no longer in memory';
  const unfolded = await wholeRequest(request, fold);
  // A fold that was held back was not served; the whole request was, unless other edits were made.
  const folded: ComparedReply[] = heldBack ? [] : [served];
  const whole: ComparedReply[] = heldBack && areEqual(prepared.body, unfolded.body) ? [served] : [];
  while (folded.length + whole.length < 4) {
    if (!(await parts.whenIdle())) return 'the gateway was busy';
    const isFolded = folded.length < 2;
    const again = isFolded ? fold : unfolded;
    const tokens = isFolded ? foldedTokens : wholeTokens;
    // A byte that a continuation adds is at most one token.
    const most = (moreBytes: number) => mostFor(tokens + moreBytes);
    const answer = await resend(request.codec, again, most, parts);
    if (answer.isLimited) parts.nearLimit();
    if (answer.status === 'failed') return answer.reason;
    (isFolded ? folded : whole).push(answer);
    if (answer.isLimited && folded.length + whole.length < 4) return closeToLimit;
  }
  return { folded, whole };
}

/**
 * Sends a request, and answers the recalls in its reply. `mostFor`: the highest cost of a request whose prompt has this many bytes more. Never rejects.
 */
async function resend(
  codec: Codec,
  prepared: PreparedRequest,
  mostFor: (moreBytes: number) => number,
  { recall, sent, signal, reserve, send: sendBody }: ResendParts,
): Promise<ResentReply> {
  const seen: { reply?: ModelReply; recalls: number; isLimited: boolean } = { recalls: 0, isLimited: false };
  let total: Usage | undefined;
  let refused: string | undefined;

  async function send(body: Uint8Array): Promise<UpstreamResponse> {
    const most = mostFor(body.length - prepared.body.length);
    if (body !== prepared.body) refused = await reserve(most);
    // It is no failure of the provider, which would be retried.
    if (refused !== undefined) throw new Error('No money is left to continue the reply.');
    const one: ResentCall = { most, status: 0, usage: undefined };
    sent.push(one);
    const response = await sendBody(body);
    one.status = response.status;
    seen.isLimited ||= response.status === 429 || isNearLimit(response.headers);
    return response;
  }

  const exchange: Exchange = {
    codec,
    // Nothing of this reply reaches the client, so later requests must not contain it.
    prepared: { ...prepared, remember: async () => undefined, keepReply: async () => undefined },
    recall: { ...recall, maxRounds: Math.min(recall.maxRounds, maxRounds) },
    send,
    hasLeft: () => signal.aborted,
    pause: (ms) => pauseUnless(signal, ms),
    failed: () => undefined,
    note: {
      recalled: () => {
        seen.recalls += 1;
      },
      used(usage) {
        const last = sent.at(-1);
        if (last && usage) last.usage = usageSince(total ?? noUsage, usage);
        total = usage ?? total;
      },
      replied: (reply) => {
        seen.reply = reply;
      },
      ended: () => undefined,
      upstreamStatus: () => undefined,
      problem: () => undefined,
    },
  };
  try {
    const response = await send(prepared.body);
    const kind = response.status === 200 ? replyKindOf(response.headers, codec, prepared.body) : undefined;
    if (kind === 'stream') await readAll(relayStream(exchange, response));
    else if (kind === 'whole') {
      const { body } = await relayWhole(exchange, response);
      if (!(body instanceof Uint8Array)) await readAll(body);
    } else await discardBody(response.body);
  } catch {
    // The status says what is known.
  }
  const { reply, recalls, isLimited } = seen;
  if (refused !== undefined) return { status: 'failed', reason: refused, isLimited };
  if (reply) return { status: 'replied', reply, recalls, tokensOut: total?.output ?? 0, isLimited };
  const last = sent.at(-1);
  // The usage of a reply that broke off is that of its beginning.
  if (last?.status === 200) last.usage = undefined;
  const status = last?.status ?? 0;
  const reason = status === 200 || status === 0 ? 'a reply broke off' : `the provider answered ${status}`;
  return { status: 'failed', reason, isLimited };
}

/** Rounds of recalls in one reply at most. */
const maxRounds = 3;

async function readAll(body: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const _ of body);
}

/** The smallest share of a provider's rate limit that must be left. */
const minLimitLeft = 0.2;

/** True when headers such as `x-ratelimit-remaining-tokens` say that little of a limit is left. */
function isNearLimit(headers: HeaderList): boolean {
  return headers.some(([name, left]) => {
    if (!name.includes('ratelimit') || !name.includes('remaining')) return false;
    const limit = Number(headerOf(headers, name.replace('remaining', 'limit')));
    return limit > 0 && Number(left) / limit < minLimitLeft;
  });
}

/**
 * Returns what the requests cost: by their usage, or the most that it can be where it is not known. A request that the provider refused, or
 * failed on, costs nothing; after a failure of a server between (502, 504, 524), the provider may have written a reply.
 */
export function costOfSent(sent: ResentCalls, prices: PriceList, model: string | undefined): number {
  return sent.reduce((sum, { most, status, usage }) => {
    if (isFree(status)) return sum;
    const bill = usage && billOf((promptTokens) => prices.priceOf(model, promptTokens), usage);
    return sum + (bill?.total ?? most);
  }, 0);
}

function isFree(status: number): boolean {
  return (status > 200 && status <= 500) || status === 503 || status === 529;
}

/** The highest cost of one request with the folded prompt, and with the whole one. `mostFor`: for a prompt of so many tokens. */
export type CostBounds = {
  readonly prices: PriceList;
  readonly foldedTokens: number;
  readonly wholeTokens: number;
  readonly mostFor: (promptTokens: number) => number;
};

/** Tokens of the longest reply of a model that the catalog does not know. */
const fallbackMaxOutput = 64_000;
/** Our counts may be too small, so the prompt of the client's request is reserved with a part more, and with some tokens more. */
const countMargin = { factor: 1.25, tokens: 1_000 };

/** Returns the highest costs of the requests that compare a served one, or why they are unknown. */
export async function boundsOf(
  load: () => Promise<PriceList>,
  infoOf: (model: string | undefined) => Promise<Pick<ModelInfo, 'maxOutput'>>,
  { receipt, request }: { readonly receipt: Receipt; readonly request: EngineRequest },
): Promise<CostBounds | string> {
  const { model, rounds, tokensBefore = 0, tokensAfter = 0, bytesBefore, bytesAfter } = receipt;
  const foldedTokens = rounds[0]?.input;
  if (foldedTokens === undefined) return 'the provider reported no usage';
  const [prices, { maxOutput = fallbackMaxOutput }] = await Promise.all([load(), infoOf(model)]);
  const { maxOutputTokens = maxOutput, replies = 1 } = request.codec.resending(request.body);
  const growth = tokensAfter > 0 ? tokensBefore / tokensAfter : bytesBefore / bytesAfter;
  const { factor, tokens } = countMargin;
  const wholeTokens = Math.ceil(foldedTokens * Math.max(1, growth) * factor) + tokens;
  if (!prices.priceOf(model, wholeTokens)) return 'the price of the model is unknown';
  const mostFor = (promptTokens: number): number => {
    const { input, cacheRead, cacheWrite, cacheWriteLong = 0, output } = prices.priceOf(model, promptTokens)!;
    const dearest = Math.max(input, cacheRead, cacheWrite, cacheWriteLong);
    return (promptTokens * dearest + maxOutputTokens * replies * output) / 1e6;
  };
  return { prices, foldedTokens, wholeTokens, mostFor };
}

/** Returns the client's own request with the tools that the folded one offered: only the fold may differ. */
async function wholeRequest(
  { codec, body }: EngineRequest,
  prepared: PreparedRequest,
): Promise<PreparedRequest> {
  const { recallTool, notesTool, room, report } = prepared;
  const folded = (report.tokensBefore ?? 0) - (report.tokensAfter ?? 0);
  const whole = { ...prepared, body, ...(room !== undefined && { room: Math.max(0, room - folded) }) };
  if (recallTool === undefined) return whole;
  const conversation = await conversationOf({ codec, body }, prepared);
  const tool = recallToolFor(conversation.toolNames, 'id or query', notesTool !== undefined);
  return { ...whole, body: codec.write(conversation, [], { recallTool: tool }) };
}

/** Returns the client's conversation, which is read again if another thread has prepared the request. */
export async function conversationOf(
  { codec, body }: Pick<EngineRequest, 'codec' | 'body'>,
  { conversation }: Pick<PreparedRequest, 'conversation'>,
): Promise<Conversation> {
  return conversation ?? (await readInSlices(codec, body, unremembered, openSlices()));
}

/** True for bodies of the same bytes. */
function areEqual(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && one.every((byte, at) => byte === other[at]);
}

/** True for the token of a login, such as that of a subscription: its requests count against limits of a person. */
export function hasLogin(headers: HeaderList): boolean {
  const token = headerOf(headers, 'authorization')?.replace(/^bearer\s+/i, '') ?? '';
  return (
    /^(?:sk-ant-oat|ya29\.|eyJ)/.test(token) ||
    headers.some(
      ([name, value]) => name.endsWith('-account-id') || (name.endsWith('-beta') && value.includes('oauth')),
    )
  );
}
