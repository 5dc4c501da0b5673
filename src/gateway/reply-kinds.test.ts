/** Tests that a reply is read, and its recalls are hidden, however its content type is spelled. */
import { describe, expect, it } from 'vitest';
import { codecs, recall, run, served, words } from '../../test/support/served-reply.ts';

describe.each(codecs)('a reply of $name', (codec, fixture) => {
  it.each([
    [true, 'text/event-stream'],
    [true, 'Text/Event-Stream;charset=UTF-8'],
    [true, 'none'],
    [false, 'application/json'],
    [false, 'APPLICATION/JSON ; charset=utf-8'],
    [false, 'application/vnd.provider+json'],
    [false, 'none'],
  ])('is read; streamed: %s, content type: %s', async (streamed, type) => {
    const { status, text } = await served(codec, fixture, { streamed, parts: [words, recall, run], type });
    const { calls } = streamed
      ? fixture.client(text)
      : fixture.clientResponse(new TextEncoder().encode(text));
    expect([status, calls.map(({ name }) => name)]).toEqual([200, ['run']]);
  });

  it.each(['application/stream+json', 'application/x-ndjson', 'text/event-stream-of-mine', 'text/html'])(
    'passes through unread with the content type %s',
    async (type) => {
      const { text, provider } = await served(codec, fixture, {
        streamed: false,
        parts: [recall, run],
        type,
      });
      expect(text).toBe(provider);
    },
  );
});
