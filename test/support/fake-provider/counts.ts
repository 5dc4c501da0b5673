/** Answers a token count as each provider does. Tokens are computed from the size of the body. */
import { fieldOf } from './gemini-fields.ts';
import { geminiRefusal } from './gemini-rules.ts';
import { isObject } from './json.ts';
import { messagesRefusal } from './messages-rules.ts';
import type { JsonObject, ModelRequest, Refusal, ScriptFormat, WireFormat } from './script.ts';

export type CountFormat = {
  refusal(request: ModelRequest): Refusal | undefined;
  answer(tokens: number): JsonObject;
};

export function countFormats(
  strictRoles: boolean,
  responses: WireFormat,
): Readonly<Partial<Record<ScriptFormat, CountFormat>>> {
  return {
    messages: {
      refusal: ({ body }) => messagesRefusal(body, { maxTokens: false, strictRoles }),
      answer: (input_tokens) => ({ input_tokens }),
    },
    responses: {
      refusal: (request) => responses.refusal(request),
      answer: (input_tokens) => ({ object: 'response.input_tokens', input_tokens }),
    },
    gemini: {
      refusal: ({ body, model }) => geminiRefusal(wholeRequest(body), { model, strictRoles }),
      answer: (totalTokens) => ({
        totalTokens,
        promptTokensDetails: [{ modality: 'TEXT', tokenCount: totalTokens }],
      }),
    },
  };
}

/** A count may hold the whole request to be sent, or only its contents. */
function wholeRequest(body: JsonObject): JsonObject {
  const whole = fieldOf(body, 'generateContentRequest');
  return isObject(whole) ? whole : body;
}
