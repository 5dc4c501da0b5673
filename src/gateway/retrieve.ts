/**
 * Returns originals to callers of Headroom's protocol, by hash. A hash is the id of an original in hexadecimal digits: both have the same 80 bits,
 * so nothing is stored for it.
 */
import { type JsonRecord, isRecord } from '../conversation/json-scan.ts';
import { openSlices, runInSlices } from '../conversation/steps.ts';
import { resolveRecall } from '../recall/resolve.ts';
import { type EncryptedStore, base32Digits } from '../store/encrypted-store.ts';
import { loadTokenCounter } from '../tokens/load-counter.ts';
import { type GatewayResponse, jsonResponse } from './http/http.ts';

type RetrieveDeps = { readonly encryptedStore: Pick<EncryptedStore, 'recall'> };

/** Tokens of the passages of one answer at most. */
const maxRetrievedTokens = 100_000;

/** Answers with the original of a hash; with a query, with the passages that answer it. Rejects with `store-failed`. */
export async function retrieve(
  deps: RetrieveDeps,
  tenant: string,
  hash: string,
  query: string | undefined,
): Promise<GatewayResponse> {
  const found = await textOfHash(deps, tenant, hash, query);
  if (found === undefined)
    return problem(
      404,
      'not_found_error',
      `There is no original ${JSON.stringify(hash.slice(0, 60))}, or it has expired.`,
    );
  const asked = query === undefined ? {} : { query, results: [found.text], count: 1 };
  return jsonResponse(200, { hash, original_content: found.text, original_tokens: found.tokens, ...asked });
}

async function textOfHash(
  { encryptedStore }: RetrieveDeps,
  tenant: string,
  hash: string,
  query: string | undefined,
): Promise<{ readonly text: string; readonly tokens: number } | undefined> {
  const id = idOfHash(hash);
  const found = id === undefined ? undefined : await encryptedStore.recall(tenant, id);
  if (id === undefined || found?.status !== 'found') return undefined;
  const original = new TextDecoder().decode(found.original);
  const counter = await loadTokenCounter(undefined);
  const countTokens = (one: string) => counter.count(one);
  if (query === undefined) {
    const value: unknown = JSON.parse(original);
    const text = typeof value === 'string' ? value : original;
    const steps = counter.countInSteps?.(text);
    return { text, tokens: steps ? await runInSlices(steps, openSlices()) : countTokens(text) };
  }
  const text = await resolveRecall({
    argumentsJson: JSON.stringify({ id, query }),
    lookup: async () => original,
    maxTokens: maxRetrievedTokens,
    countTokens,
  });
  return { text, tokens: countTokens(text) };
}

/** Answers a call of the tool in the form that belongs to the call's own. Rejects with `store-failed`. */
export async function answerCall(
  deps: RetrieveDeps,
  tenant: string,
  sent: JsonRecord,
): Promise<GatewayResponse> {
  const call = isRecord(sent['tool_call']) ? sent['tool_call'] : {};
  const input = argumentsIn(call);
  const hash = textIn(input, 'hash') ?? '';
  const found = await textOfHash(deps, tenant, hash, textIn(input, 'query'));
  const content =
    found?.text ?? `There is no original ${JSON.stringify(hash.slice(0, 60))}, or it has expired.`;
  const id = call['id'];
  const result = isRecord(call['input'])
    ? { type: 'tool_result', tool_use_id: id, content }
    : { role: 'tool', tool_call_id: id, content };
  return jsonResponse(200, { success: found !== undefined, tool_result: result });
}

function argumentsIn(call: JsonRecord): JsonRecord {
  if (isRecord(call['input'])) return call['input'];
  const given = isRecord(call['function']) ? call['function']['arguments'] : undefined;
  if (isRecord(given)) return given;
  try {
    const read: unknown = typeof given === 'string' ? JSON.parse(given) : {};
    return isRecord(read) ? read : {};
  } catch {
    return {};
  }
}

/** Returns the hash of an id: its 80 bits as 20 hexadecimal digits. */
export function hashOf(id: string): string {
  let bits = 0n;
  for (let at = 'mem_'.length; at < id.length; at++)
    bits = bits * 32n + BigInt(base32Digits.indexOf(id[at]!));
  return bits.toString(16).padStart(20, '0');
}

/** Returns the id of a hash; undefined for a text that is no hash. */
export function idOfHash(hash: string): string | undefined {
  if (!/^[0-9a-f]{20}$/i.test(hash)) return undefined;
  let bits = BigInt(`0x${hash}`);
  let id = '';
  for (let digit = 0; digit < 16; digit++) {
    id = base32Digits[Number(bits % 32n)]! + id;
    bits /= 32n;
  }
  return `mem_${id}`;
}

/** Returns a response with an error as clients of the protocol read it. */
export function problem(status: number, type: string, message: string): GatewayResponse {
  return jsonResponse(status, { error: { type, message } });
}

/** Returns a text member of an object; undefined for any other value. */
export function textIn(sent: JsonRecord, key: string): string | undefined {
  const value = sent[key];
  return typeof value === 'string' ? value : undefined;
}
