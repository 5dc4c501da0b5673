/** Leporello in process: folds request bodies before they are sent, answers recalls, and returns originals. */
import { isRecord } from '../conversation/json-scan.ts';
import type { RecalledMedia } from '../conversation/conversation.ts';
import type { Codec, RecallTool } from '../codecs/codec.ts';
import { type Engine, type PreparedRequest, passThrough } from '../engine/types.ts';
import { createCaches } from '../caches.ts';
import type { CompressedResult, PendingWords, ResultRequest } from './compress-result.ts';
import type * as defaultEngine from './default-engine.ts';
import { type Check, checkSettings, object, secretFor, shown } from '../checks.ts';
import {
  type Prepared,
  type PrepareRequest,
  checkCompact,
  checkId,
  checkPrepare,
  checkRecall,
  checkResult,
  checkTenant,
  notPrepared,
  preparedFor,
} from './prepared.ts';
import { bytesOfBody, codecFor } from './request-body.ts';
import { foldChecks, storeChecks } from './settings.ts';
import { recallToolFor, answerRecall, noteAnswer, notesToolFor } from '../recall/tool.ts';
import type { EncryptedStore } from '../store/encrypted-store.ts';
import { inMemoryStore } from '../store/in-memory.ts';
import type { Store } from '../store/store.ts';
import { choiceCheck } from '../strategies/by-name.ts';
import { type ProgramStrategies, strategiesIn } from '../strategies/default-strategies.ts';
import type { Strategy, Reach } from '../strategies/strategy.ts';
import type { TokenCounter } from '../tokens/token-counter.ts';
import { type TriggerSettings, defaultTriggers } from '../triggers/default-triggers.ts';
import type { Trigger } from '../triggers/trigger.ts';
import { LeporelloError, reasonOf } from '../errors.ts';

export type LeporelloOptions = defaultEngine.EngineSettings &
  ProgramStrategies & {
    /** The triggers: settings, or a list in the order of priority. Default: `defaultTriggers()`. */
    readonly triggers?: TriggerSettings | readonly Trigger[];
    /** Keeps originals and folds. Default: in this process, at most 128 MiB. */
    readonly store?: Store;
    /** At least 32 bytes, the same on every start: ids and encryption keys are derived from it. Required with a `store`; random without one. */
    readonly secret?: Uint8Array;
  };

export interface Leporello {
  /**
   * Returns the body to send. Its wire format is found by its shape unless `codec` names it. On a failure inside Leporello, the outcome is
   * `failed` and the body is unchanged. Throws `bad-config` at once for arguments that are not allowed; never rejects.
   */
  prepare(request: PrepareRequest): Promise<Prepared>;
  /**
   * Returns the text that answers a call of `prepared.recallTool`, at most `maxTokens` of it (default 8,000), whatever the model wrote into the
   * arguments.
   */
  recall(prepared: Prepared, argumentsJson: string, maxTokens?: number): Promise<string>;
  /**
   * Does the same for a program that can show images: `media` are the images and documents of the answer, each as the JSON of a content part of
   * the request's format. They belong into the result, or in Chat Completions into a message of the user after it.
   */
  recallWithMedia(
    prepared: Prepared,
    argumentsJson: string,
    maxTokens?: number,
  ): Promise<{ readonly text: string; readonly media: readonly RecalledMedia[] }>;
  /**
   * Returns the text that answers a call of `prepared.notesTool`, whatever the model wrote into the arguments. The note is the call itself: keep it
   * in the messages of the conversation.
   */
  saveContext(argumentsJson: string): string;
  /**
   * Folds the body for a program that keeps its own messages: old messages become one summary and stubs, and the program continues from the
   * folded messages, in this process or another with the same store and secret. The next call includes the last summary. If the body's tools
   * include `recallTool`, stubs name it. Throws as `prepare` does.
   */
  compact(
    request: Omit<PrepareRequest, 'refusal'>,
  ): Promise<Pick<Prepared, 'outcome' | 'body' | 'json' | 'report'>>;
  /** The definition of `read_memory`, for the tools of a program that keeps its own messages. */
  readonly recallTool: RecallTool;
  /** The definition of `save_context`, for the same programs. With `offerNotes: true`, `compact` leaves its newest calls in view. */
  readonly notesTool: RecallTool;
  /**
   * Returns the text that answers a call of `recallTool` from the store, at most `maxTokens` of it (default 8,000), for any arguments. Any
   * id of the tenant is answered. Rejects with `store-failed`.
   */
  readMemory(
    argumentsJson: string,
    options?: { readonly tenant?: string; readonly maxTokens?: number },
  ): Promise<string>;
  /**
   * Compresses a tool result for an agent loop that knows how many results it still expects. If the result is a list and takes more than its
   * part of the tokens left, its items are shortened, the least relevant first, as far as needed. A `summarizer` rewrites each item once;
   * its words are stored by text and question. Rejects with `store-failed`.
   */
  compressResult(request: ResultRequest): Promise<CompressedResult>;
  /** Returns the original for an id as exact JSON bytes; undefined when this tenant has none. Rejects with `store-failed`. */
  original(id: string, tenant?: string): Promise<Uint8Array | undefined>;
}

/**
 * Creates Leporello for use in this process. Throws `bad-config` for options that are unknown or not allowed, and for a store without a secret.
 *
 * @example
 * const leporello = createLeporello({ triggers: [mustFit(), tokenBudget({ triggerTokens: 60_000, targetTokens: 25_000 })] });
 * const prepared = await leporello.prepare({ codec, body }); // of leporello/codecs/...;
 * await fetch(url, { method: 'POST', headers, body: prepared.body });
 */
export function createLeporello(options: LeporelloOptions = {}): Leporello {
  checkSettings(leporelloCheck, options);
  const { store = inMemoryStore() } = options;
  const secret = secretFor(options.store, options.secret);
  const { memoryTtlMs: ttlMs, storeDeadlineMs, cacheMb } = options;
  // There is an engine for `prepare` and one for `compact`, with one budget for both.
  const caches = createCaches(cacheMb);
  const open = async () => {
    const { createEncryptedStore } = await import('../store/encrypted-store.ts');
    return createEncryptedStore({ store, secret, ttlMs, storeDeadlineMs, caches });
  };
  const encryptedStore = once(open);
  const { triggers: wanted, strategies: _, ...settings } = options;
  const strategies = strategiesIn(options);
  const triggers = isTriggerList(wanted) ? wanted : defaultTriggers(wanted, options.preset);
  const engine = openedLater(async ({ createDefaultEngine }) =>
    createDefaultEngine(settings, await encryptedStore(), { caches, strategies, triggers }),
  );
  const historyEngine = openedLater(async ({ createHistoryEngine }) =>
    createHistoryEngine(settings, await open(), { caches, strategies, triggers }),
  );
  const pendingWords: PendingWords = new Map();
  const original = async (id: string, tenant: string): Promise<Uint8Array | undefined> => {
    const found = await (await encryptedStore()).recall(tenant, id);
    return found.status === 'found' ? found.original : undefined;
  };
  const requests = new WeakMap<Prepared, PreparedRequest>();
  // Arguments are checked outside of async functions, so that a mistake is thrown at once.
  const answer = (prepared: Prepared, argumentsJson: string, maxTokens: number) => {
    checkRecall(argumentsJson, maxTokens);
    const request = requests.get(prepared);
    if (!request) throw notPrepared(prepared);
    return answerRecall(request, argumentsJson, maxTokens);
  };
  const leporello: Leporello = {
    prepare(request) {
      checkPrepare(request);
      const answered = withCodec(readRequest(request), (codec, read) => prepareWith(engine, codec, read));
      return answered.then((prepared) => {
        const forProgram = preparedFor(prepared);
        requests.set(forProgram, prepared);
        return forProgram;
      });
    },
    recall(prepared, argumentsJson, maxTokens = 8_000) {
      return answer(prepared, argumentsJson, maxTokens).then(({ text, media }) => (media ? notAText : text));
    },
    recallWithMedia(prepared, argumentsJson, maxTokens = 8_000) {
      return answer(prepared, argumentsJson, maxTokens).then(({ text, media = [] }) => ({ text, media }));
    },
    saveContext(argumentsJson) {
      checkRecall(argumentsJson, 1);
      return noteAnswer(argumentsJson);
    },
    compact(request) {
      checkCompact(request);
      return withCodec(readRequest(request), (codec, { body, tenant = 'local' }) =>
        historyEngine.prepare({ codec, body, tenant }),
      )
        .then(preparedFor)
        .then(({ outcome, body: folded, json, report }) => ({ outcome, body: folded, json, report }));
    },
    recallTool: recallToolFor([], 'id'),
    notesTool: notesToolFor(recallToolFor([]).name),
    readMemory(argumentsJson, { tenant = 'local', maxTokens = 8_000 } = {}) {
      checkRecall(argumentsJson, maxTokens);
      checkTenant(tenant);
      return answerFrom(
        `this ${store.name} store, tenant ${tenant}`,
        (id) => original(id, tenant),
        argumentsJson,
        maxTokens,
      );
    },
    compressResult(request) {
      checkResult(request);
      return compressWith(request, encryptedStore, pendingWords);
    },
    original(id, tenant = 'local') {
      checkId(id);
      checkTenant(tenant);
      return original(id, tenant);
    },
  };
  parts.set(leporello, { engine, encryptedStore, options });
  return leporello;
}

/** Prepares a request. One that the provider refused is folded further if a fold can help, and else passed on. */
async function prepareWith(
  engine: Engine,
  codec: Codec,
  { body, tenant = 'local', refusal }: ReadRequest,
): Promise<PreparedRequest> {
  if (!refusal) return engine.prepare({ codec, body, tenant });
  const overflow = codec.overflowIn(refusal.status, refusal.body);
  if (overflow) return engine.prepare({ codec, body, tenant, refusal: { reason: 'too long', overflow } });
  if (codec.refusesReasoning(refusal.status, refusal.body))
    return engine.prepare({ codec, body, tenant, refusal: { reason: 'reasoning' } });
  return passThrough(body, { status: 'untouched', reason: `the provider answered ${refusal.status}` });
}

/** Answers a recall from originals of the store. */
async function answerFrom(
  place: string,
  original: (id: string) => Promise<Uint8Array | undefined>,
  argumentsJson: string,
  maxTokens: number,
): Promise<string> {
  const [{ resolveRecall }, counter] = await Promise.all([
    import('../recall/resolve.ts'),
    loadUsualCounter(),
  ]);
  return resolveRecall({
    argumentsJson,
    store: place,
    async lookup(id) {
      const bytes = await original(id);
      return bytes && new TextDecoder().decode(bytes);
    },
    maxTokens,
    countTokens: (text) => counter.count(text),
  });
}

async function compressWith(
  request: ResultRequest,
  openStore: () => Promise<EncryptedStore>,
  pendingWords: PendingWords,
): Promise<CompressedResult> {
  const [{ compressResult }, counter, encryptedStore] = await Promise.all([
    import('./compress-result.ts'),
    loadUsualCounter(),
    openStore(),
  ]);
  const count = (text: string) => counter.count(text);
  return compressResult(request, { encryptedStore, count, recallTool: recallToolFor([]).name, pendingWords });
}

/** Prepares a request with its codec. A request whose codec cannot be loaded is sent as it is. */
function withCodec(
  request: ReadRequest,
  prepare: (codec: Codec, request: ReadRequest) => Promise<PreparedRequest>,
): Promise<PreparedRequest> {
  return Promise.resolve(request.codec).then(
    (codec) => prepare(codec, request),
    (error) => passThrough(request.body, { status: 'failed', reason: reasonOf(error) }),
  );
}

/** Returns an engine that is loaded with the first request, so that the root entry stays small. A request that cannot load it is sent as it is. */
function openedLater(create: (from: typeof defaultEngine) => Promise<Engine>): Engine {
  const open = once(() => import('./default-engine.ts').then(create));
  return {
    prepare: (request) =>
      open().then(
        (engine) => engine.prepare(request),
        (error) => passThrough(request.body, { status: 'failed', reason: reasonOf(error) }),
      ),
    unfolded: (request, outcome, waitMs) =>
      open().then(
        (engine) => engine.unfolded(request, outcome, waitMs),
        () => passThrough(request.body, outcome),
      ),
    disableFolding: (request) => open().then((engine) => engine.disableFolding(request), nothing),
    reportPromptTokens: (request, reported) =>
      open().then((engine) => engine.reportPromptTokens(request, reported), nothing),
  };
}

/** Returns a function that opens something with its first call, and again after a failure. */
function once<Opened>(open: () => Promise<Opened>): () => Promise<Opened> {
  let opened: Promise<Opened> | undefined;
  return () => {
    opened ??= open();
    opened.catch(() => (opened = undefined));
    return opened;
  };
}

function nothing(): void {}

/** The parts of an instance that the adapters of this package use. */
type LeporelloParts = {
  readonly engine: Engine;
  /** Opens the store with the first call, so that the root entry stays small. */
  readonly encryptedStore: () => Promise<EncryptedStore>;
  readonly options: LeporelloOptions;
};

const parts = new WeakMap<Leporello, LeporelloParts>();

/** Returns the parts of an instance. Throws `bad-config` for anything that `createLeporello` of this copy of the package did not return. */
export function partsOf(leporello: Leporello): LeporelloParts {
  const found = parts.get(leporello);
  if (found) return found;
  throw new LeporelloError(
    'bad-config',
    `The first argument is ${shown(leporello)}, but must be what createLeporello() returned.`,
  );
}

type ReadRequest = Omit<PrepareRequest, 'codec' | 'body'> & {
  readonly codec: Codec | Promise<Codec>;
  readonly body: Uint8Array;
};

/** Reads the body of a request now, so that the program may change its object later. Throws `bad-config` for an unknown wire format. */
function readRequest({ codec, body, ...others }: PrepareRequest): ReadRequest {
  const bytes = bytesOfBody(body);
  return { ...others, codec: codec ?? codecFor(bytes), body: bytes };
}

// Checks the lists of strategies and triggers that a program passes in, and adapts the strategies to a program that keeps its
// own messages.

const reaches: Readonly<Record<Reach, true>> = { history: true, newest: true, everything: true };

export const strategyList = listOfThings(
  'strategy',
  'offloadResults()',
  isStrategy,
  `{ name, reach, propose }, with reach ${Object.keys(reaches)
    .join(', ')
    .replace(/, (?=\w+$)/, ' or ')}`,
  // An entry without code names a strategy.
  (thing) => typeof thing === 'string' || (isRecord(thing) && !Object.hasOwn(thing, 'propose')),
);

const triggerList = listOfThings(
  'trigger',
  'mustFit()',
  (thing) => isNamed(thing) && typeof thing['demand'] === 'function',
  '{ name, demand }',
);

/** Checks triggers: their settings, or a list of them. */
export const triggersCheck: Check = (value, path) =>
  Array.isArray(value) ? triggerList(value, path) : foldChecks.triggers(value, path);

export const isTriggerList = Array.isArray as (value: unknown) => value is readonly Trigger[];

function listOfThings(
  word: string,
  example: string,
  isOne: (thing: unknown) => boolean,
  form: string,
  isChoice: (thing: unknown) => boolean = () => false,
): Check {
  return (value, path) => {
    if (!Array.isArray(value))
      return [`${path} is ${shown(value)}, but must be a list, such as [${example}].`];
    return value.flatMap((thing: unknown, at) => {
      if (isOne(thing)) return [];
      if (isChoice(thing)) return choiceCheck(thing, `${path}[${at}]`);
      const must =
        typeof thing === 'function' ? 'but must be called, such as' : `but must be a ${word}: ${form}, or`;
      return [`${path}[${at}] is ${shown(thing)}, ${must} ${example}.`];
    });
  };
}

function isStrategy(thing: unknown): thing is Strategy {
  return (
    isNamed(thing) && typeof thing['propose'] === 'function' && Object.hasOwn(reaches, String(thing['reach']))
  );
}

function isNamed(thing: unknown): thing is Readonly<Record<string, unknown>> {
  return isRecord(thing) && typeof thing['name'] === 'string' && thing['name'] !== '';
}

/** Counts like the usual models. It is loaded when a text is first counted. */
async function loadUsualCounter(): Promise<TokenCounter> {
  const { loadTokenCounter } = await import('../tokens/load-counter.ts');
  return loadTokenCounter(undefined);
}

/** The model reads it in place of an image in a program that shows only texts. */
const notAText = 'This is an image or a document, and only texts can be shown here. Go on without it.';

const leporelloCheck = object<LeporelloOptions>({
  ...foldChecks,
  strategies: strategyList,
  triggers: triggersCheck,
  ...storeChecks,
});
