import { describe, expect, it } from 'vitest';
import { shown } from '../../../test/support/codec-suite/views.ts';
import { gemini } from './index.ts';

const encoder = new TextEncoder();
const read = (text: string) => gemini.readResponse(encoder.encode(text), new Set(['read_memory']));

function response(parts: string, more = '') {
  return `{"candidates":[{"content":{"parts":[${parts}],"role":"model"},"finishReason":"STOP","index":0${more}}],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":3},"responseId":"r"}`;
}

describe('a complete response', () => {
  it('counts tokens of thinking and of the tools of the provider', () => {
    const usage =
      '{"promptTokenCount":100,"cachedContentTokenCount":60,"candidatesTokenCount":7,"thoughtsTokenCount":30,"toolUsePromptTokenCount":5,"totalTokenCount":142}';
    expect(read(`{"candidates":[{}],"usageMetadata":${usage}}`)).toMatchObject({
      usage: { input: 105, sentPrompt: 100, cacheRead: 60, cacheWrite: 0, output: 37 },
      text: '',
      finish: undefined,
    });
  });

  it('may have no content, when the prompt was blocked or nothing was said', () => {
    expect(read('{"promptFeedback":{"blockReason":"SAFETY"}}')).toMatchObject({
      finish: 'SAFETY',
      text: '',
      calls: [],
    });
    expect(read('{"candidates":[{"finishReason":"MAX_TOKENS"}]}')).toMatchObject({
      finish: 'MAX_TOKENS',
      calls: [],
    });
    const blocked = encoder.encode('{"promptFeedback":{"blockReason":"SAFETY"}}');
    const recall = read(response('{"functionCall":{"name":"read_memory"}}'));
    expect(shown(gemini.writeResponse(blocked, [recall], read(shown(blocked))))).toBe(
      '{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":3}}',
    );
  });

  it('keeps thoughts and signatures of all rounds, and every other member', () => {
    const first = read(
      response('{"text":"hm","thought":true,"x":1.0},{"functionCall":{"name":"read_memory"}}'),
    );
    const last = response('{"text":"So.","thoughtSignature":"s"}', ',"avgLogprobs":-0.10');
    expect(shown(gemini.writeResponse(encoder.encode(last), [first], read(last)))).toBe(
      response(
        '{"text":"hm","thought":true,"x":1.0},{"text":"So.","thoughtSignature":"s"}',
        ',"avgLogprobs":-0.10',
      ).replace(
        '"promptTokenCount":10,"candidatesTokenCount":3',
        '"promptTokenCount":20,"candidatesTokenCount":6',
      ),
    );
  });

  it('gives the signature of a private call to the first call of the client', () => {
    const mixed = response(
      '{"functionCall":{"name":"read_memory"},"thoughtSignature":"s"},{"functionCall":{"name":"f","args":{"n":1.0}}},{"functionCall":{"name":"g"}}',
    );
    expect(shown(gemini.writeResponse(encoder.encode(mixed), [], read(mixed)))).toBe(
      response(
        '{"functionCall":{"name":"f","args":{"n":1.0}},"thoughtSignature":"s"},{"functionCall":{"name":"g"}}',
      ),
    );
    const second = response(
      '{"functionCall":{"name":"f"},"thoughtSignature":"s"},{"functionCall":{"name":"read_memory"}}',
    );
    expect(shown(gemini.writeResponse(encoder.encode(second), [], read(second)))).toBe(
      response('{"functionCall":{"name":"f"},"thoughtSignature":"s"}'),
    );
  });

  it('always has at least one part', () => {
    const only = response('{"functionCall":{"name":"read_memory"}}');
    expect(shown(gemini.writeResponse(encoder.encode(only), [], read(only)))).toBe(response('{"text":""}'));
  });
});

describe('errors', () => {
  it('have the shape of the provider', () => {
    expect(shown(gemini.errorBody({ status: 413, message: 'Too large.' }))).toBe(
      '{"error":{"code":413,"message":"Too large.","status":"INVALID_ARGUMENT"}}',
    );
  });
});
