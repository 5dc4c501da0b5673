/** Answers one request: refuses what the provider refuses, asks the script, and delivers its reply. Holds the state of a provider. */
import type { ServerResponse } from 'node:http';
import { chatFormat } from './chat-format.ts';
import { countFormats } from './counts.ts';
import { deliver, sendJson } from './deliver.ts';
import type { Endpoint } from './endpoints.ts';
import { geminiFormat } from './gemini-format.ts';
import { isObject, parseJson } from './json.ts';
import { messagesFormat } from './messages-format.ts';
import type { FakeProviderOptions, RecordedRequest } from './options.ts';
import { compaction, responsesFormat } from './responses-format.ts';
import { keptResponses } from './responses-memory.ts';
import type { KeptResponses } from './responses-memory.ts';
import type {
  JsonObject,
  ModelRequest,
  Reply,
  Script,
  ScriptFormat,
  ScriptRequest,
  WireFormat,
} from './script.ts';

export type Answerer = (
  endpoint: Endpoint,
  request: RecordedRequest,
  outgoing: ServerResponse,
) => Promise<void>;

export function createAnswerer({ script, other, strictRoles = false }: FakeProviderOptions): Answerer {
  const kept = keptResponses();
  const formats: Readonly<Record<ScriptFormat, WireFormat>> = {
    chat: chatFormat,
    messages: messagesFormat(strictRoles),
    responses: responsesFormat(kept),
    gemini: geminiFormat(strictRoles),
  };
  const counts = countFormats(strictRoles, formats.responses);
  let index = 0;
  let compactions = 0;

  return async (endpoint, request, outgoing) => {
    const format = formats[endpoint.format];
    const bytes = request.body.length;
    const refuse = refuser(format, outgoing);
    switch (endpoint.kind) {
      case 'alive':
        outgoing.writeHead(200).end();
        return;
      case 'other':
        if (other === undefined) refuse(404, `Invalid URL (${request.method} ${request.target})`);
        else await deliver(outgoing, other(request), { format, request: nothing, index: 0, bytes });
        return;
      case 'read':
      case 'delete':
        answerKept(kept, endpoint, outgoing, refuse);
        return;
      case 'reply':
      case 'count':
      case 'compact':
        break;
    }
    const body = parseJson(request.body);
    if (!isObject(body)) {
      refuse(400, 'We could not parse the JSON body of your request.');
      return;
    }
    const asked: ModelRequest = {
      body,
      ...((endpoint.kind === 'compact' ? undefined : endpoint.named) ?? inBody(body)),
    };
    const count = endpoint.kind === 'count' ? counts[endpoint.format] : undefined;
    const refusal = (count ?? format).refusal(asked);
    if (refusal) {
      const { status = 400 } = refusal;
      sendJson(outgoing, status, format.errorBody(status, refusal));
    } else if (count) sendJson(outgoing, 200, count.answer(Math.ceil(bytes / 4)));
    else if (endpoint.kind === 'compact') sendJson(outgoing, 200, compaction(body, compactions++, bytes));
    else {
      const context = { format, request: asked, index: index++, bytes };
      const seen = scriptRequest(endpoint.format, context);
      await deliver(outgoing, await replyOf(script, seen), context);
    }
  };
}

type Refuse = (status: number, message: string) => void;

function refuser(format: WireFormat, outgoing: ServerResponse): Refuse {
  return (status, message) => sendJson(outgoing, status, format.errorBody(status, { message }));
}

function answerKept(
  kept: KeptResponses,
  { kind, id }: Endpoint & { readonly kind: 'read' | 'delete' },
  outgoing: ServerResponse,
  refuse: Refuse,
): void {
  const response = kept.response(id);
  if (!response) refuse(404, `Response with id '${id}' not found.`);
  else if (kind === 'read') sendJson(outgoing, 200, response);
  else {
    kept.forget(id);
    sendJson(outgoing, 200, { id, object: 'response', deleted: true });
  }
}

const nothing: ModelRequest = { body: {}, model: '', reply: 'whole' };

function inBody({ model, stream }: JsonObject): Omit<ModelRequest, 'body'> {
  return { model: typeof model === 'string' ? model : '', reply: stream === true ? 'events' : 'whole' };
}

function scriptRequest(
  name: ScriptFormat,
  { format, request, index }: { format: WireFormat; request: ModelRequest; index: number },
): ScriptRequest {
  return {
    format: name,
    body: request.body,
    index,
    model: request.model,
    streaming: request.reply !== 'whole',
    history: format.memory?.historyOf(request) ?? [],
  };
}

const failed = (message: string): Reply => ({ type: 'error', status: 400, body: { error: { message } } });

/** A script that fails answers 400, which no client retries. */
async function replyOf(script: Script, request: ScriptRequest): Promise<Reply> {
  const { index } = request;
  if (typeof script !== 'function') {
    return (
      script[index] ?? failed(`The script has ${script.length} replies and this is request ${index + 1}.`)
    );
  }
  try {
    return await script(request);
  } catch (error) {
    return failed(`The script failed: ${String(error)}`);
  }
}
