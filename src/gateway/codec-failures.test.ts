/** Tests errors of our own code while a reply is read: the client keeps what it paid for if nothing in it must be hidden. */
import { describe, expect, it } from 'vitest';
import { codecs, recall, run, served, words } from '../../test/support/served-reply.ts';
import type { Codec } from '../codecs/codec.ts';

const fail = (): never => {
  throw new TypeError('SECRET of the reply');
};

describe.each(codecs)('an error of our own code in a reply of $name', (codec, fixture) => {
  const afterTwo: Codec['openStream'] = (options) => {
    const relay = codec.openStream(options);
    let events = 0;
    return {
      ...relay,
      skip: (_, from) => from,
      take: (event) => (events++ < 2 ? relay.take(event) : fail()),
    };
  };

  it.each([
    ['whole', { ...codec, readResponse: fail }, false],
    ['streamed', { ...codec, openStream: afterTwo }, true],
  ] as const)('leaves the %s reply as the provider sent it', async (_, failing, streamed) => {
    const { status, text, provider, logged, problems } = await served(failing, fixture, {
      streamed,
      parts: [words],
    });
    expect([status, text]).toEqual([200, provider]);
    expect(problems).toEqual(['the response could not be read: TypeError']);
    expect(logged.join()).toMatch(
      /^an error of Leporello itself: please report it .*"error":"TypeError","at":\["at .*fail.*:\d+:\d+/,
    );
    expect(logged.join()).not.toContain('SECRET');
  });

  it.each([
    ['read', { ...codec, readResponse: fail }],
    ['written', { ...codec, writeResponse: fail }],
  ] as const)(
    'is reported as what it is if a recall must be hidden and the reply cannot be %s',
    async (_, failing) => {
      const { status, text, logged } = await served(failing, fixture, {
        streamed: false,
        parts: [words, recall, run],
      });
      expect(status).toBe(500);
      expect(text).toContain('Leporello itself failed on this request. Its log says where.');
      expect(text).not.toContain('read_memory');
      expect(logged.join()).toContain('an error of Leporello itself');
    },
  );
});
