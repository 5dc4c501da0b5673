/**
 * Spells Gemini generateContent as the provider does: plain, as server-sent events, and as one JSON array in pieces. Ids are
 * computed.
 */
import { checksSignatures } from './gemini-fields.ts';
import { geminiRefusal } from './gemini-rules.ts';
import { argumentsJson, pieces, textOf } from './script.ts';
import type { Answer, JsonObject, TurnPart, WireEvent, WireFormat } from './script.ts';

export function geminiFormat(strictRoles: boolean): WireFormat {
  return {
    idHeader: 'x-request-id',
    refusal: ({ body, model }) => geminiRefusal(body, { model, strictRoles }),
    whole: (answer) => reply(answer, wholeParts(answer), { said: answer.usage.output, isLast: true }),
    events: (answer) => {
      const chunks = chunksOf(answer);
      return chunks.map(({ said, part }, n): WireEvent => {
        const isLast = n === chunks.length - 1;
        // Running totals: only the last chunk counts everything.
        const output = isLast ? answer.usage.output : Math.min(n + 1, answer.usage.output);
        const json = JSON.stringify(reply(answer, [said], { said: output, isLast }));
        const text = answer.request.reply === 'array' ? inArray(json, n, isLast) : `data: ${json}\r\n\r\n`;
        return part === undefined ? { text } : { text, part };
      });
    },
    errorBody: (status, { message }) => ({
      error: { code: status, message, status: statuses[status] ?? (status >= 500 ? 'INTERNAL' : 'UNKNOWN') },
    }),
  };
}

function inArray(json: string, n: number, isLast: boolean): string {
  return `${n === 0 ? '[' : ',\r\n'}${json}${isLast ? '\n]' : ''}`;
}

type Progress = { readonly said: number; readonly isLast: boolean };

function reply(answer: Answer, parts: readonly JsonObject[], { said, isLast }: Progress): JsonObject {
  const { index, usage, finish, request } = answer;
  const thoughts = Math.min(said, thoughtTokens(answer));
  return {
    candidates: [
      {
        content: { parts, role: 'model' },
        ...(isLast ? { finishReason: finish ?? 'STOP' } : {}),
        index: 0,
      },
    ],
    usageMetadata: {
      promptTokenCount: usage.input,
      candidatesTokenCount: said - thoughts,
      totalTokenCount: usage.input + said,
      ...(usage.cacheRead > 0 ? { cachedContentTokenCount: usage.cacheRead } : {}),
      promptTokensDetails: [{ modality: 'TEXT', tokenCount: usage.input }],
      ...(thoughts > 0 ? { thoughtsTokenCount: thoughts } : {}),
    },
    modelVersion: request.model,
    responseId: `response-${index}`,
  };
}

/** Returns the thinking's share of the output, by length. */
function thoughtTokens({ parts, usage }: Answer): number {
  const lengthOf = (part: TurnPart): number => textOf(part).length;
  const all = parts.reduce((sum, part) => sum + lengthOf(part), 0);
  const thought = parts.reduce((sum, part) => sum + (part.type === 'thinking' ? lengthOf(part) : 0), 0);
  return all === 0 ? 0 : Math.floor((usage.output * thought) / all);
}

/** Returns the signature of a turn: that of its thinking, or one of ours if the model requires signed calls. */
function signatureOf({ parts, request, index }: Answer): string | undefined {
  const thought = parts.findLast((part) => part.type === 'thinking' && part.signature !== '');
  if (thought?.type === 'thinking') return thought.signature;
  return checksSignatures(request.model) ? btoa(`signature ${index}`) : undefined;
}

/** Signs the first call of the step, or the end of the text. */
function signed(answer: Answer, parts: readonly JsonObject[]): readonly JsonObject[] {
  const thoughtSignature = signatureOf(answer);
  if (thoughtSignature === undefined) return parts;
  const call = parts.findIndex((part) => 'functionCall' in part);
  const at = call < 0 ? parts.length - 1 : call;
  return parts.map((part, n) => (n === at ? { ...part, thoughtSignature } : part));
}

function wholeParts(answer: Answer): readonly JsonObject[] {
  const parts = answer.parts.map((part, n) => partOf(part, n, answer));
  // A turn of thoughts only has nothing to sign.
  return signed(answer, parts.some((part) => !('thought' in part)) ? parts : [...parts, { text: '' }]);
}

function partOf(part: TurnPart, n: number, { index }: Answer): JsonObject {
  switch (part.type) {
    case 'text':
      return { text: part.text };
    case 'thinking':
      return { text: part.text, thought: true };
    case 'tool-call': {
      const args = JSON.parse(argumentsJson(part)) as unknown;
      return { functionCall: { name: part.name, args, id: part.id ?? `call_${index}_${n}` } };
    }
    case 'block':
      return part.block;
  }
}

type Chunk = { readonly said: JsonObject; readonly part?: number };

/** Returns text in pieces, calls and blocks whole. A call may be the end itself; after text the end is an empty one. */
function chunksOf(answer: Answer): readonly Chunk[] {
  const chunks = answer.parts.flatMap((part, n): readonly Chunk[] => {
    const whole = partOf(part, n, answer);
    if (part.type === 'tool-call' || part.type === 'block') return [{ said: whole, part: n }];
    return pieces(part.text, answer.chunkSize).map((text, i) => ({
      said: { ...whole, text },
      ...(i === 0 ? { part: n } : {}),
    }));
  });
  if (answer.parts.at(-1)?.type !== 'tool-call') chunks.push({ said: { text: '' } });
  const parts = signed(
    answer,
    chunks.map(({ said }) => said),
  );
  return chunks.map((chunk, n) => ({ ...chunk, said: parts[n]! }));
}

const statuses: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  429: 'RESOURCE_EXHAUSTED',
  500: 'INTERNAL',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
};
