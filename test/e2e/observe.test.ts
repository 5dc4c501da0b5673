import { expect, it } from 'vitest';
import { formats, longBody, post } from './bodies.ts';
import { startStack } from './stack.ts';

it.each(formats)(
  'a gateway in observe mode sends a %s request unchanged, and reports what a fold would have saved',
  async (format) => {
    await using stack = await startStack([{ type: 'turn', parts: [{ type: 'text', text: 'Hello.' }] }], {
      mode: 'observe',
      models: { '*': { windowTokens: 10_000 } },
    });
    const body = longBody(format, 30);
    const response = await post(stack.url, format, body);
    expect(response.status).toBe(200);
    expect(new TextDecoder().decode(stack.provider.requests[0]!.body)).toBe(body);
    const reported = ['outcome', 'tokens-before', 'tokens-after'].map((name) =>
      response.headers.get(`x-leporello-${name}`),
    );
    expect(reported[0]).toBe('observed');
    expect(Number(reported[2])).toBeLessThan(Number(reported[1]) * 0.8);
  },
);
