import { describe, expect, it } from 'vitest';
import { explainError } from './provider-errors.ts';

const explained = (body: string) =>
  new TextDecoder().decode(explainError(new TextEncoder().encode(body), 'Tools have 9000.'));

describe("explaining a provider's error", () => {
  it('adds the sentence to the message and keeps everything else', () => {
    expect(
      explained('{ "error": {"message":"Too \\"long\\".", "code" : "x", "n":1e400}, "type":"error"}'),
    ).toBe(
      '{ "error": {"message":"Too \\"long\\". Tools have 9000.", "code" : "x", "n":1e400}, "type":"error"}',
    );
  });

  it.each([
    '',
    'not json',
    '[]',
    '{"error":"text"}',
    '{"error":{"message":7}}',
    '{"error":{}}',
    '<html>502</html>',
  ])('leaves %j unchanged', (body) => {
    expect(explained(body)).toBe(body);
  });
});
