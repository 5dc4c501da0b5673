/** Defines a prepared request as programs get it, and checks the arguments that programs pass to the library. */
import { isRecord } from '../conversation/json-scan.ts';
import type { Codec, RecallTool } from '../codecs/codec.ts';
import {
  type Check,
  allowed,
  checkSettings,
  numberFrom,
  object,
  secret,
  shown,
  someText,
  thingWith,
  wholeNumber,
} from '../checks.ts';
import type { PreparedRequest, SummaryJob } from '../engine/types.ts';
import { LeporelloError } from '../errors.ts';
import type { FoldReport, Outcome } from '../receipts/receipt.ts';
import { notesToolFor, recallToolFor } from '../recall/tool.ts';
import type { ResultRequest } from './compress-result.ts';
import type { GivenBody } from './request-body.ts';

/** A request that is ready to be sent. */
export type Prepared = {
  /** The bytes to send. */
  readonly body: Uint8Array<ArrayBuffer>;
  /** Returns the body as an object, for SDKs that take one. Numbers above 2^53 lose digits: send `body` if yours has such numbers. */
  readonly json: () => unknown;
  /** Says whether the body was changed, and why not. */
  readonly outcome: Outcome;
  /** The changes to the request, and its size before and after, in tokens and bytes. */
  readonly report: FoldReport;
  /** The tool that the body offers for recalls; undefined when it offers none. Answer its calls with `leporello.recall`. */
  readonly recallTool: RecallTool | undefined;
  /** The tool for notes that the body offers; undefined when it offers none. Answer its calls with `leporello.saveContext`. */
  readonly notesTool: RecallTool | undefined;
  /** A summary, or texts of items and records, that the next fold will need. Have it written in the background; only where a strategy asks for a model. */
  readonly summary: SummaryJob | undefined;
  /**
   * Makes later token counts more exact. `promptTokens` is the provider's count of the whole prompt, including what it read from or wrote to
   * its cache; undefined is ignored. Throws `bad-config` for anything else.
   */
  learn(usage: { readonly promptTokens: number | undefined }): void;
};

/** The arguments of `prepare`. */
export type PrepareRequest = {
  /** The wire format, from `leporello/codecs/`. Default: it is found by the shape of the body. */
  readonly codec?: Codec;
  /** The request body: its bytes, their text, or the object. It must not change before `prepare` resolves. */
  readonly body: GivenBody;
  /** The owner of the conversation: 1 to 64 of a-z, 0-9, -. Originals of one tenant are never read for another. Default `local`. */
  readonly tenant?: string;
  /**
   * The response with which the provider refused the body of an earlier `prepare` for this request. If the body was too long, it is folded
   * below the limit that the response names, and later requests to this model keep that limit. Refused reasoning is dropped. For any other
   * refusal, the body is returned unchanged.
   */
  readonly refusal?: { readonly status: number; readonly body: string };
};

/** Returns the part of a prepared request that a program needs. */
export function preparedFor(request: PreparedRequest): Prepared {
  const { body, outcome, report, recallTool: name, notesTool, summary } = request;
  return {
    body: body as Uint8Array<ArrayBuffer>,
    json: () => JSON.parse(new TextDecoder().decode(body)) as unknown,
    outcome,
    report,
    recallTool: name === undefined ? undefined : { ...recallToolFor([]), name },
    notesTool: notesTool === undefined || name === undefined ? undefined : notesToolFor(name),
    summary,
    learn(usage) {
      checkSettings(usageCheck, usage, 'usage');
      if (usage.promptTokens !== undefined) request.reportPromptTokens(usage.promptTokens);
    },
  };
}

// Checks of arguments. No error contains content.

const usageCheck = object<{ promptTokens: number | undefined }>({ promptTokens: numberFrom(0) });

const text = (words: string): Check => secret(words, (value) => typeof value === 'string', typeOf);

function typeOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (value instanceof Uint8Array) return shown(value);
  if (typeof value === 'string') return `a text of ${value.length} characters`;
  return Array.isArray(value) ? 'a list' : `a value of the type ${typeof value}`;
}

const checks = {
  codec: secret('a codec, imported from leporello/codecs/', isCodec, typeOf),
  body: secret(
    'the request body: an object, its JSON text, or the bytes of that text',
    (value) => value instanceof Uint8Array || typeof value === 'string' || isRecord(value),
    typeOf,
  ),
  tenant: allowed(
    "1 to 64 of a-z, 0-9 and -, such as a digest of a user's name in hex",
    (value) => typeof value === 'string' && /^[a-z0-9-]{1,64}$/.test(value),
  ),
};

const compactCheck = object<Omit<PrepareRequest, 'refusal'>>(checks, { required: ['body'] });

const prepareCheck = object<PrepareRequest>(
  {
    ...checks,
    refusal: object<NonNullable<PrepareRequest['refusal']>>(
      { status: wholeNumber(100, 999), body: text('the text of the response: await response.text()') },
      { required: ['status', 'body'] },
    ),
  },
  { required: ['body'] },
);

const resultCheck = object<ResultRequest>(
  {
    text: text('the text of the result'),
    question: text("the user's question"),
    tool: text('the name of the tool'),
    budget: object<ResultRequest['budget']>(
      { tokens: finite, results: numberFrom(1) },
      { required: ['tokens', 'results'] },
    ),
    summarizer: thingWith('a summarizer', 'summarize'),
    waitMs: numberFrom(0),
    tenant: checks.tenant,
  },
  { required: ['text', 'budget'] },
);

function isCodec(value: unknown): boolean {
  return isRecord(value) && typeof value['read'] === 'function' && typeof value['write'] === 'function';
}

/** Allows every finite number: a program may have used more tokens than it had. */
function finite(value: unknown, path: string): readonly string[] {
  return allowed('a finite number', Number.isFinite)(value, path);
}

export function checkPrepare(request: PrepareRequest): void {
  checkSettings(prepareCheck, request, 'request');
}

export function checkCompact(request: Omit<PrepareRequest, 'refusal'>): void {
  checkSettings(compactCheck, request, 'request');
}

export function checkResult(request: ResultRequest): void {
  checkSettings(resultCheck, request, 'request');
}

/** Checks the arguments of a recall, but not what the model wrote into them. */
export function checkRecall(argumentsJson: string, maxTokens: number): void {
  const words =
    'the JSON text of the arguments that the model sent, such as call.arguments or JSON.stringify(call.input)';
  checkSettings(text(words), argumentsJson, 'argumentsJson');
  checkSettings(wholeNumber(1), maxTokens, 'maxTokens');
}

export function checkTenant(tenant: string): void {
  checkSettings(checks.tenant, tenant, 'tenant');
}

export function checkId(id: string): void {
  checkSettings(someText, id, 'id');
}

/** Throws `bad-config` for a request that this instance did not prepare. */
export function notPrepared(value: unknown): LeporelloError {
  return new LeporelloError(
    'bad-config',
    `prepared is ${typeOf(value)}, but must be what prepare() of the same instance resolved with: const prepared = await leporello.prepare({ codec, body }).`,
  );
}
