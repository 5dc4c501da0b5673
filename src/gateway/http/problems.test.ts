import { describe, expect, it } from 'vitest';
import { upstreamError, upstreamProblem } from './problems.ts';
import { defaultUpstreams } from '../routing/routes.ts';

describe("the client's error for an upstream that cannot be reached", () => {
  const urls = {
    ...defaultUpstreams,
    openai: 'http://127.0.0.1:9/v1',
    anthropic: 'http://127.0.0.1:9',
    gemini: 'https://three.example',
  };
  const log = { info: () => undefined, warn: () => expect.unreachable('nothing to log') };
  const refused = Object.assign(new Error('no'), { code: 'ECONNREFUSED' });
  const problem = (origin: string, signal = new AbortController().signal) =>
    upstreamProblem(upstreamError(refused, origin, signal), `${origin}/v1/messages`, { urls, log });

  it('names the option of the URL, and the command that checks it', () => {
    expect(problem('https://three.example')).toEqual({
      status: 502,
      message:
        'https://three.example could not be reached, or the connection broke (ECONNREFUSED). Check that it is up and its URL is right. The option geminiUrl (LEPORELLO_GEMINI_URL) sets this URL; leporello doctor checks it.',
    });
    expect(problem('http://127.0.0.1:9').message).toContain(
      'The option openaiUrl (LEPORELLO_OPENAI_URL) or anthropicUrl (LEPORELLO_ANTHROPIC_URL) sets this URL',
    );
  });

  it('names no option for a URL that none sets, nor when the client canceled the request', () => {
    expect(problem('https://other.example').message).toMatch(/its URL is right\.$/);
    expect(problem('https://three.example', AbortSignal.abort()).message).toMatch(/was canceled\.$/);
  });
});
