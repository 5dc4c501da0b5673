/**
 * Serves `/v1/compress` and `/v1/retrieve`, the protocol of Headroom's service, so that programs that call such a service can call this gateway:
 * LiteLLM's guardrail `headroom` and the npm package `headroom-ai`. The messages are folded as in a model call, but by strategies that keep the
 * number of messages. The module is loaded with the first such request.
 */
import { memoryIdPattern } from '../checks.ts';
import type { Caches } from '../caches.ts';
import { type JsonRecord, isRecord } from '../conversation/json-scan.ts';
import type { Engine, PreparedRequest } from '../engine/types.ts';
import { LeporelloError } from '../errors.ts';
import { type FoldSettings, createDefaultEngine } from '../library/default-engine.ts';
import type { EncryptedStore } from '../store/encrypted-store.ts';
import { defaultStrategies } from '../strategies/default-strategies.ts';
import { receiveBody } from './http/body.ts';
import { type GatewayRequest, type GatewayResponse, jsonResponse } from './http/http.ts';
import { answerCall, hashOf, problem, retrieve, textIn } from './retrieve.ts';
import { callOf } from './routing/routes.ts';
import { type TenantRule, viewerOf } from './routing/tenant.ts';

export type CompressDeps = {
  readonly encryptedStore: EncryptedStore;
  readonly foldSettings: FoldSettings;
  readonly caches: Caches;
  readonly tenants: TenantRule;
  readonly maxBodyBytes: number;
};

/** Bytes of a body at most. It is parsed in one step, which must not hold up other clients. */
const maxBytes = 16 * 1024 * 1024;

/** Answers a request to one of these paths. */
export async function answerCompression(
  deps: CompressDeps,
  request: GatewayRequest,
  { path, query }: { readonly path: string; readonly query: URLSearchParams },
): Promise<GatewayResponse> {
  if (path === '/health') return jsonResponse(200, { status: 'healthy', service: 'leporello' });
  const viewer = viewerOf(deps.tenants.tenantOf(request));
  if ('problem' in viewer) return problem(403, 'permission_error', viewer.problem);
  const { tenant } = viewer;
  try {
    const [, inPath] = /^\/v1\/retrieve\/([^/]+)$/.exec(path) ?? [];
    if (inPath !== undefined && request.method === 'GET')
      return await retrieve(deps, tenant, inPath, query.get('query') ?? undefined);
    if (request.method !== 'POST' || (inPath !== undefined && inPath !== 'tool_call'))
      return problem(405, 'validation_error', `${path} does not answer ${request.method}.`);
    const sent = await jsonIn(deps, request);
    if (sent === undefined)
      return problem(400, 'validation_error', 'The body is not a JSON object: send one.');
    if (path === '/v1/compress') return await compress(deps, tenant, sent);
    if (inPath === 'tool_call') return await answerCall(deps, tenant, sent);
    return await retrieve(deps, tenant, textIn(sent, 'hash') ?? '', textIn(sent, 'query'));
  } catch (error) {
    if (!LeporelloError.isInstance(error)) throw error;
    const status = error.code === 'body-too-large' ? 413 : 503;
    return problem(status, status === 413 ? 'validation_error' : 'storage_error', error.message);
  }
}

async function jsonIn(
  { maxBodyBytes }: CompressDeps,
  request: GatewayRequest,
): Promise<JsonRecord | undefined> {
  const limit = Math.min(maxBytes, maxBodyBytes);
  const { body } = await receiveBody(request, limit, limit < maxBodyBytes ? 'this path' : undefined);
  try {
    const sent: unknown = JSON.parse(new TextDecoder().decode(body));
    return isRecord(sent) ? sent : undefined;
  } catch {
    return undefined;
  }
}

// Compression

/** The format of the protocol's messages. */
const { codec } = callOf('POST', '/v1/chat/completions', '')!;

/** The engines by their store: one for each gateway. */
const engines = new WeakMap<EncryptedStore, Engine>();

/** Strategies that keep each message and change only its content. */
const keepsMessages: ReadonlySet<string> = new Set([
  'offload-media',
  'offload-results',
  'compress-items',
  'offload-newest-media',
  'clip-newest',
]);

function engineOf({ encryptedStore, foldSettings, caches }: CompressDeps): Engine {
  const known = engines.get(encryptedStore);
  if (known) return known;
  const { minResultBytes } = foldSettings;
  const strategies = defaultStrategies({ minResultBytes });
  const engine = createDefaultEngine(
    {
      ...foldSettings,
      offerRecall: 'always',
      repairEdits: false,
      // A reference to an earlier result names its call, which the service may not know.
      shrinks: withoutRepeats(foldSettings),
    },
    encryptedStore,
    { caches, strategies: strategies.filter(({ name }) => keepsMessages.has(name)) },
  );
  engines.set(encryptedStore, engine);
  return engine;
}

function withoutRepeats({ shrinks }: FoldSettings): NonNullable<FoldSettings['shrinks']> {
  return shrinks === false ? false : { ...shrinks, repeats: false };
}

/** Compresses a request, also one in the body of Portkey's webhook guardrail, which gets the whole request back. */
async function compress(deps: CompressDeps, tenant: string, body: JsonRecord): Promise<GatewayResponse> {
  const { eventType, request } = body;
  const hooked =
    typeof eventType === 'string' && isRecord(request) && isRecord(request['json'])
      ? request['json']
      : undefined;
  // It also asks about replies and about calls without messages.
  if (hooked && (eventType !== 'beforeRequestHook' || !('messages' in hooked)))
    return jsonResponse(200, { verdict: true });
  const sent = hooked ?? body;
  const { messages } = sent;
  const model = textIn(sent, 'model');
  if (!Array.isArray(messages) || !messages.every(isRecord))
    return problem(400, 'validation_error', "The body has no list 'messages' of objects: send one.");
  const budget = sent['token_budget'];
  const limit = typeof budget === 'number' && budget > 0 ? budget : undefined;
  const engine = engineOf(deps);
  const { rows, places } = withCalls(messages);
  const overhead = await overheadOf(engine, tenant, model);
  const prepare = async (atMost?: number): Promise<PreparedRequest> =>
    engine.prepare({
      codec,
      body: bodyOf(model, rows),
      tenant,
      ...(atMost !== undefined && {
        // A budget is the caller's, so it says nothing about the window of the model elsewhere.
        upstream: `budget ${atMost}`,
        refusal: {
          reason: 'too long' as const,
          overflow: { unit: 'tokens' as const, limit: atMost + overhead.after, prompt: undefined },
        },
      }),
    });
  let prepared = await prepare();
  const tokensAfter = ({ report }: PreparedRequest) => (report.tokensAfter ?? 0) - overhead.after;
  if (limit !== undefined && tokensAfter(prepared) > limit) prepared = await prepare(limit);
  const { report } = prepared;
  const before = Math.max(0, (report.tokensBefore ?? 0) - overhead.before);
  const compressed = rowsFrom(messages, places, rows.length, prepared);
  const after = compressed ? Math.min(before, Math.max(0, tokensAfter(prepared))) : before;
  const figures = {
    tokens_before: before,
    tokens_after: after,
    tokens_saved: before - after,
    compression_ratio: before === 0 ? 1 : after / before,
    transforms_applied: compressed ? transformsOf(prepared) : [],
    ccr_hashes: compressed ? report.memories.map(hashOf) : [],
  };
  if (!hooked) return jsonResponse(200, { messages: compressed ?? messages, ...figures });
  const json = { ...hooked, messages: compressed };
  return jsonResponse(200, {
    verdict: true,
    data: figures,
    ...(compressed && { transformedData: { request: { json } } }),
  });
}

function transformsOf({ report }: PreparedRequest): readonly string[] {
  return [
    ...new Set([
      ...(report.replayed > 0 ? ['replay'] : []),
      ...(report.shrunk > 0 ? ['shrink-results'] : []),
      ...report.steps.map(({ strategy }) => strategy),
    ]),
  ];
}

/** Tokens of a request without messages, as it came and with the recall tool of the engine. */
type FixedTokens = { readonly before: number; readonly after: number };

async function overheadOf(engine: Engine, tenant: string, model: string | undefined): Promise<FixedTokens> {
  const { report } = await engine.prepare({ codec, body: bodyOf(model, []), tenant });
  const before = report.tokensBefore ?? 0;
  return { before, after: report.tokensAfter ?? before };
}

/** The first message of each body. No other request begins with it, so that folds of model calls, which may drop messages, are not repeated here. */
const firstRow: JsonRecord = { role: 'system', content: 'The following messages are to be compressed.' };

/** The tool with which a model reads originals. The engine folds only what a model can read again. */
const retrieveTool = 'headroom_retrieve';

const tools = [
  {
    type: 'function',
    function: {
      name: retrieveTool,
      parameters: { type: 'object', properties: { hash: { type: 'string' }, query: { type: 'string' } } },
    },
  },
];

function bodyOf(model: string | undefined, rows: readonly JsonRecord[]): Uint8Array {
  return new TextEncoder().encode(JSON.stringify({ model, tools, messages: [firstRow, ...rows] }));
}

/**
 * Adds a reply with the calls ahead of results without one, because LiteLLM keeps the model's replies back. `places`: the index of each
 * message in `rows`.
 */
function withCalls(messages: readonly JsonRecord[]): {
  readonly rows: readonly JsonRecord[];
  readonly places: readonly number[];
} {
  const rows: JsonRecord[] = [];
  const places: number[] = [];
  let called: ReadonlySet<unknown> = new Set();
  for (let at = 0; at < messages.length; at++) {
    const message = messages[at]!;
    if (!isResult(message)) called = callsIn(message);
    else if (!called.has(idOfCall(message, at)))
      // Each gets a reply of its own: the results of one reply would all count as the newest.
      rows.push({ role: 'assistant', content: null, tool_calls: [callWith(idOfCall(message, at))] });
    places.push(rows.length);
    rows.push(
      isResult(message) ? { ...message, role: 'tool', tool_call_id: idOfCall(message, at) } : message,
    );
  }
  return { rows, places };
}

function isResult({ role }: JsonRecord): boolean {
  return role === 'tool' || role === 'function';
}

function idOfCall({ tool_call_id: id }: JsonRecord, at: number): unknown {
  return id ?? `message-${at}`;
}

function callsIn({ tool_calls: calls }: JsonRecord): ReadonlySet<unknown> {
  return new Set(Array.isArray(calls) ? calls.filter(isRecord).map(({ id }) => id) : []);
}

function callWith(id: unknown): JsonRecord {
  return { id, type: 'function', function: { name: 'tool', arguments: '{}' } };
}

/** Returns the client's messages with their new content; undefined when nothing changed, or when a message is not where it was. */
function rowsFrom(
  messages: readonly JsonRecord[],
  places: readonly number[],
  rows: number,
  prepared: PreparedRequest,
): readonly JsonRecord[] | undefined {
  if (prepared.outcome.status !== 'compacted') return undefined;
  const { messages: sent } = JSON.parse(new TextDecoder().decode(prepared.body)) as {
    messages: readonly JsonRecord[];
  };
  if (sent.length !== rows + 1) return undefined;
  return messages.map((message, at) => {
    const content = sent[places[at]! + 1]!['content'];
    // Replies stay as they are: a model imitates what it seems to have written.
    if (message['role'] === 'assistant' || JSON.stringify(content) === JSON.stringify(message['content']))
      return message;
    return { ...message, content: withHashes(content, prepared.recallTool ?? '') };
  });
}

/** Names the tool and the hashes that the caller knows in place of those of the engine. */
function withHashes(content: unknown, recallTool: string): unknown {
  const call = new RegExp(`\\b${recallTool}( with)? \\{"id":"(${memoryIdPattern})"[^{}]*\\}`, 'g');
  const spelled = (text: string) =>
    text
      .replaceAll(call, (_, words: string | undefined, id: string) => {
        return `${retrieveTool}${words ?? ''} ${JSON.stringify({ hash: hashOf(id) })}`;
      })
      .replaceAll(new RegExp(`\\b${memoryIdPattern}\\b`, 'g'), hashOf);
  if (typeof content === 'string') return spelled(content);
  if (!Array.isArray(content)) return content;
  return content.map((part: unknown) =>
    isRecord(part) && typeof part['text'] === 'string' ? { ...part, text: spelled(part['text']) } : part,
  );
}
