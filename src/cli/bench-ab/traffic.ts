/** Watches the model calls of one run of `leporello bench-ab`: puts the arm's name before each prompt, and counts what the agent did. */
import type { Conversation } from '../../conversation/conversation.ts';
import { isRecord, type JsonRecord } from '../../conversation/json-scan.ts';
import { addedCounts, noCounts, type OutcomeCounts, outcomesOf } from '../../experiment/outcomes.ts';
import { receiveBody } from '../../gateway/http/body.ts';
import type { Handler } from '../../gateway/http/http.ts';
import { type UpstreamUrls, routeOf } from '../../gateway/routing/routes.ts';
import { sha256 } from '../../store/encrypted-store.ts';

/** Returns the handler with the namespace put into each model call, whose conversation is shown to `see`. */
export function watchedAgent(
  handler: Handler,
  urls: UpstreamUrls,
  namespace: string | undefined,
  see: (conversation: Conversation) => void,
): Handler {
  return async (request) => {
    const route = routeOf(request.method, request.target, request.headers, urls);
    if (route.kind !== 'model') return handler(request);
    const { body } = await receiveBody(request, maxBody, 'bench-ab');
    const sent = namespace === undefined ? body : inNamespace(route.codec.name, body, namespace);
    try {
      see(route.codec.read(sent, { digest: sha256, blocks: new Map() }));
    } catch {
      // A body that cannot be read is passed through, and counts nothing.
    }
    const headers = request.headers.filter(([name]) => name !== 'content-encoding');
    return handler({ ...request, headers, body: chunksOf(sent) });
  };
}

const maxBody = 64 * 1024 * 1024;

async function* chunksOf(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

/** Counts what an agent did, from the newest messages of its requests. A request that is sent again counts once. */
export function createAgentCounts() {
  const seen = new Set<string>();
  const calls = new Set<string>();
  let counts = noCounts;
  return {
    see(conversation: Conversation): void {
      const last = conversation.messages.findLast(({ role }) => role === 'assistant');
      if (last === undefined) return;
      const place = `${last.index} ${last.digest}`;
      if (seen.has(place)) return;
      seen.add(place);
      counts = addedCounts(counts, outcomesOf(conversation, last.index, calls));
    },
    counts: (): Pick<OutcomeCounts, 'refetches' | 'failedEdits'> => counts,
  };
}

// The namespace is a name at the beginning of a prompt. Providers cache prompts by their beginning, so prompts with different names share no cache.
// Both arms get one of the same length. The body is written again as JSON, which an agent's requests outside of a benchmark never are.

/** Returns the body with the name before everything else in its prompt; the body itself when it is not of the format. */
function inNamespace(format: string, body: Uint8Array, name: string): Uint8Array {
  try {
    const parsed: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
    if (!isRecord(parsed)) return body;
    const text = `Run ${name}.\n`;
    return new TextEncoder().encode(JSON.stringify({ ...parsed, ...named(format, parsed, text) }));
  } catch {
    return body;
  }
}

function named(format: string, body: JsonRecord, text: string): JsonRecord {
  if (Array.isArray(body['messages']) && format.endsWith('chat'))
    return { messages: [{ role: 'system', content: text }, ...(body['messages'] as unknown[])] };
  if (Array.isArray(body['messages'])) {
    const { system } = body;
    const rest =
      typeof system === 'string' ? [{ type: 'text', text: system }] : Array.isArray(system) ? system : [];
    return { system: [{ type: 'text', text }, ...(rest as unknown[])] };
  }
  if (Array.isArray(body['contents'])) {
    const name = isRecord(body['system_instruction']) ? 'system_instruction' : 'systemInstruction';
    const instruction = isRecord(body[name]) ? body[name] : {};
    const parts = Array.isArray(instruction['parts']) ? (instruction['parts'] as unknown[]) : [];
    return { [name]: { ...instruction, parts: [{ text }, ...parts] } };
  }
  const { instructions } = body;
  return { instructions: `${text}${typeof instructions === 'string' ? instructions : ''}` };
}
