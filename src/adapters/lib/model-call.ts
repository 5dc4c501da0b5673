/**
 * Makes one model call of a framework: folds its messages, sends them through the framework's own model, and answers recalls until the reply
 * is for the program. Sending, retries after a refusal, the limits of recalls and the records of hidden recalls are the gateway's code.
 */
import type { ModelReply, ToolCall } from '../../codecs/codec.ts';
import { awaitsRecall, recallsWithCalls } from '../../codecs/shared-json.ts';
import { type JsonRecord, isRecord, jsonBytes } from '../../conversation/json-scan.ts';
import { type PrivateTools, privateToolsOf } from '../../conversation/turns.ts';
import type { PreparedRequest } from '../../engine/types.ts';
import type { HeaderList, UpstreamResponse } from '../../gateway/http/http.ts';
import { recordHiddenRecalls } from '../../gateway/recall-loop.ts';
import { pauseUnless, sendContinuation, sendPrepared } from '../../gateway/send-with-retries.ts';
import { type Leporello, partsOf } from '../../library/leporello.ts';
import { answersTo, openBudget, usualRecallLimits, withoutLongAnswers } from '../../recall/tool.ts';
import {
  type FoldedRequest,
  type FrameworkRequest,
  type MessageForm,
  frameworkCodec,
  wireRequest,
} from './wire-body.ts';

/** Options of every adapter. */
export type AdapterOptions = {
  /** The owner of the conversations. Originals of one tenant are never read for another. Default `local`. */
  readonly tenant?: string;
  /** How often the model may recall during one reply. Default 5. */
  readonly maxRecallRounds?: number;
  /** The largest answer to a recall, in tokens. Default 8,000. */
  readonly maxRecallTokens?: number;
  /** Is called with the outcome and the report of each request. */
  readonly onPrepared?: (prepared: Pick<PreparedRequest, 'outcome' | 'report'>) => void;
};

export type FrameworkCall<Message, Reply> = {
  readonly request: FrameworkRequest<Message>;
  readonly form: MessageForm<Message>;
  /** The name of the provider. Context windows are learned per provider and model. */
  readonly upstream: string;
  /** Sends messages through the framework's model. Rejects with the framework's own errors. */
  readonly send: (folded: FoldedRequest<Message>) => PromiseLike<Reply>;
  /**
   * Set if the framework sends a refused request again only from its first round on, or not at all: then the request that continues after a recall
   * is sent again here. The pauses before that end when the signal aborts. `spent` returns the error with which the reply then fails: one that the
   * framework does not take as a reason to send everything again.
   */
  readonly retries?: { readonly signal: AbortSignal; spent(error: unknown): unknown };
};

/** One reply of the model, in terms of the wire. */
export type ModelRound = {
  /** The reply as blocks, its recalls included. */
  readonly content: readonly JsonRecord[];
  /** All calls that the provider has not run itself: those of private tools, and those that the program runs. */
  readonly calls: readonly ToolCall[];
  /** True when the program does not see the texts if the reply goes on after a recall. */
  readonly hidesText?: boolean;
  /** False for a reply that was cut off or refused: it may hold half a call. */
  readonly isComplete: boolean;
  /** The provider's count of the whole prompt. */
  readonly promptTokens: number | undefined;
};

export type OpenModelCall<Reply> = {
  /** The first reply. */
  readonly reply: Reply;
  /** The tools whose calls the program must not see. */
  readonly privateTools: PrivateTools;
  /** Ends a round. Returns the next reply if the model recalled; undefined if the reply is for the program, without its recalls. */
  next(round: ModelRound): Promise<Reply | undefined>;
  /** Records what was recalled so far, if the program does not read the rest of the reply. */
  left(): Promise<void>;
};

/** Folds and sends a request. Rejects with the framework's error if the provider refuses it, as without Leporello. */
export async function openModelCall<Message, Reply>(
  leporello: Leporello,
  call: FrameworkCall<Message, Reply>,
  options: AdapterOptions = {},
): Promise<OpenModelCall<Reply>> {
  const { engine } = partsOf(leporello);
  const {
    tenant = 'local',
    onPrepared,
    maxRecallRounds: maxRounds = usualRecallLimits.maxRounds,
    maxRecallTokens: maxTokens = usualRecallLimits.maxTokens,
  } = options;
  const wire = wireRequest(call.request, call.form);
  const engineRequest = { codec: frameworkCodec, body: wire.body, tenant, upstream: call.upstream };
  let last: { readonly folded: FoldedRequest<Message>; readonly outcome: SendOutcome<Reply> } | undefined;

  const first = await engine.prepare(engineRequest);
  const { prepared } = await sendPrepared({
    codec: frameworkCodec,
    body: wire.body,
    prepared: first,
    async send(body) {
      const folded =
        body === wire.body ? { messages: call.request.messages, addedTools: [] } : wire.read(body);
      last = { folded, outcome: await attempt(() => call.send(folded)) };
      return responseOf(last.outcome);
    },
    prepareAgain: (refusal) => engine.prepare({ ...engineRequest, refusal }),
    disableFolding: () => engine.disableFolding(engineRequest),
  });
  onPrepared?.(prepared);
  const { folded, outcome } = last!;
  if (outcome.status === 'refused') throw outcome.error;

  const recorder = recordHiddenRecalls(prepared, { problem: () => undefined }, 'last');
  const budget = openBudget({ prepared, recall: { maxRounds, maxTokens } });
  let sent = prepared.body;
  let number = 0;

  const privateTools = privateToolsOf(folded.addedTools.map(({ name }) => name));
  const turnTokens = ({ turn }: ModelReply) => prepared.counter?.count(new TextDecoder().decode(turn)) ?? 0;

  return {
    reply: outcome.reply,
    privateTools,
    left: () => recorder.disconnected(),
    async next({ content, calls: all, hidesText = false, isComplete, promptTokens }) {
      number++;
      const recalls = all.filter(({ name }) => privateTools.has(name));
      const calls = all.filter(({ name }) => !privateTools.has(name));
      if (number === 1 && promptTokens !== undefined) prepared.reportPromptTokens(promptTokens);
      const reply = replyOf(content, recalls, calls);
      if (!isComplete || !awaitsRecall(reply) || budget.isSpent(number)) {
        noteCalls(leporello, calls, prepared, turnTokens(reply));
        if (isComplete && recallsWithCalls(reply))
          recorder.answered(reply, await answersTo({ prepared }, reply, number, budget));
        await recorder.complete(reply);
        return undefined;
      }
      const answers = await answersTo({ prepared }, reply, number, budget);
      const before = sent;
      const send = (given: typeof answers) => {
        recorder.answered(hidesText ? { ...reply, hidesText } : reply, given);
        sent = frameworkCodec.continueWith(before, reply, given);
        return continued(call, wire.read(sent));
      };
      try {
        return await send(answers).catch((error) => {
          const refusal = refusalIn(error);
          if (!refusal || !frameworkCodec.overflowIn(refusal.code, refusal.text)) throw error;
          budget.exhaust();
          return send(withoutLongAnswers(answers));
        });
      } catch (error) {
        await recorder.forget();
        throw error;
      }
    },
  };
}

/** Sends the request that continues after a recall. Rejects with the framework's errors. */
async function continued<Message, Reply>(
  { send, retries }: FrameworkCall<Message, Reply>,
  folded: FoldedRequest<Message>,
): Promise<Reply> {
  if (!retries) return send(folded);
  let last: SendOutcome<Reply> | undefined;
  let times = 0;
  const exchange = {
    async send() {
      times++;
      last = await attempt(() => send(folded));
      return responseOf(last);
    },
    pause: (ms: number) => pauseUnless(retries.signal, ms),
    // An aborted request is sent once more, so that the program gets the framework's own error.
    hasLeft: () => false,
    note: { upstreamStatus() {} },
  };
  await sendContinuation(exchange, new Uint8Array());
  if (last?.status === 'answered') return last.reply;
  throw times === 1 ? last?.error : retries.spent(last?.error);
}

/**
 * Folds messages for a program that sends them itself and has a tool for recalls. Returns the messages, and reports to `onPrepared`. If
 * folding fails, they are those of the request.
 */
export async function foldedMessages<Message>(
  leporello: Leporello,
  { request, form, upstream }: Omit<FrameworkCall<Message, unknown>, 'send'>,
  { tenant = 'local', onPrepared }: AdapterOptions,
): Promise<readonly Message[]> {
  // Without any tool, nothing would be folded that a model cannot read again.
  const tools = request.tools.length > 0 ? request.tools : [noTool];
  const wire = wireRequest({ ...request, tools }, form);
  const prepared = await partsOf(leporello).engine.prepare({
    codec: frameworkCodec,
    body: wire.body,
    tenant,
    upstream,
  });
  onPrepared?.(prepared);
  return prepared.body === wire.body ? request.messages : wire.read(prepared.body).messages;
}

const noTool: JsonRecord = { name: 'none', input_schema: { type: 'object' } };

/** Returns the function of a tool by which a model reads what was folded. It takes the arguments of a call. */
export function memoryReader(
  leporello: Leporello,
  { tenant, maxRecallTokens: maxTokens }: Pick<AdapterOptions, 'tenant' | 'maxRecallTokens'>,
): (input: unknown) => Promise<string> {
  const options = { ...(tenant !== undefined && { tenant }), ...(maxTokens !== undefined && { maxTokens }) };
  return (input) => leporello.readMemory(typeof input === 'string' ? input : JSON.stringify(input), options);
}

/** The request that a call of a program's tool came from. */
type RequestOfCall = {
  readonly model: string | undefined;
  readonly window: number | undefined;
  /** Tokens of the request and of the reply with the call. */
  readonly tokens: number;
  /** The number of calls in the reply. */
  readonly calls: number;
};

const requests = new WeakMap<Leporello, Map<string, RequestOfCall>>();

/** The calls that are remembered, in number: only the newest wait for their results. */
const maxCalls = 1_000;

function noteCalls(
  leporello: Leporello,
  calls: readonly ToolCall[],
  { report: { model, window, tokensAfter } }: PreparedRequest,
  tokens: number,
): void {
  if (tokensAfter === undefined) return;
  const known = requests.get(leporello) ?? new Map<string, RequestOfCall>();
  requests.set(leporello, known);
  for (const { id } of calls) {
    known.delete(id);
    known.set(id, { model, window, tokens: tokensAfter + tokens, calls: calls.length });
  }
  for (const id of known.keys()) {
    if (known.size <= maxCalls) break;
    known.delete(id);
  }
}

/** Returns the request that a call came from; undefined if no adapter of this instance sent it. */
export function requestOfCall(leporello: Leporello, callId: string): RequestOfCall | undefined {
  return requests.get(leporello)?.get(callId);
}

/** True for the beginning of an object, a list, a string or a number: text that a program which asked for JSON may see at once. */
export function beginsLikeJson(text: string): boolean {
  return /^\s*[[{"\d]/.test(text);
}

type SendOutcome<Reply> =
  | { readonly status: 'answered'; readonly reply: Reply }
  | ({ readonly status: 'refused'; readonly error: unknown } & ProviderRefusal);

type ProviderRefusal = { readonly code: number; readonly text: string; readonly headers: HeaderList };

/** Returns a provider's refusal as a value. Rejects with any other error. */
async function attempt<Reply>(send: () => PromiseLike<Reply>): Promise<SendOutcome<Reply>> {
  try {
    return { status: 'answered', reply: await send() };
  } catch (error) {
    const refusal = refusalIn(error);
    if (refusal === undefined) throw error;
    return { status: 'refused', error, ...refusal };
  }
}

/** Returns the status and the body of a provider's answer in an error: SDKs name them differently, and wrap errors in errors. */
function refusalIn(error: unknown, depth = 0): ProviderRefusal | undefined {
  if (!(error instanceof Error) || depth > 4) return undefined;
  const {
    statusCode,
    status,
    responseBody,
    responseHeaders,
    error: body,
    cause,
  } = error as Error & JsonRecord;
  const code = statusCode ?? status;
  if (typeof code !== 'number') return refusalIn(cause, depth + 1);
  const headers = isRecord(responseHeaders)
    ? Object.entries(responseHeaders).map(([name, value]): HeaderList[number] => [name, String(value)])
    : [];
  if (typeof responseBody === 'string') return { code, text: responseBody, headers };
  const message =
    isRecord(body) && !('error' in body) ? { error: body } : (body ?? { error: { message: error.message } });
  return { code, text: JSON.stringify(message), headers };
}

/** Tells the gateway's code how the framework's model answered. It reads the body of refusals only. */
function responseOf(outcome: SendOutcome<unknown>): UpstreamResponse {
  const isRefused = outcome.status === 'refused';
  const text = isRefused ? outcome.text : '';
  return {
    status: isRefused ? outcome.code : 200,
    headers: isRefused ? outcome.headers : [],
    body: (async function* whole() {
      yield await Promise.resolve(new TextEncoder().encode(text));
    })(),
  };
}

function replyOf(
  content: readonly JsonRecord[],
  recalls: readonly ToolCall[],
  calls: readonly ToolCall[],
): ModelReply {
  return {
    text: '',
    recalls,
    calls,
    usage: undefined,
    rawUsage: undefined,
    finish: 'tool_use',
    turn: jsonBytes(content),
  };
}
