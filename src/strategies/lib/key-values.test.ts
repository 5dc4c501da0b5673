import { describe, expect, it } from 'vitest';
import { chatBody, readChat, type Step } from '../../../test/support/chat-conversation.ts';
import { keyValues } from './stubs.ts';

const call = (name: string, input: unknown): Step => ({
  calls: [{ name, input: JSON.stringify(input), result: 'ok' }],
});

function valuesOf(steps: readonly Step[], { max = 1_000, known = '' } = {}) {
  const conversation = readChat(chatBody(steps));
  return keyValues(conversation, conversation.messages, { max, known });
}

describe('key values', () => {
  it('are the short values of arguments: names unchanged, others quoted', () => {
    const steps = [
      call('run', { command: 'npm test 2>&1', timeout: 60 }),
      call('read', { path: '/src/app.ts', options: { tags: ['v1.2'] } }),
    ];
    expect(valuesOf(steps)).toEqual(['v1.2', '/src/app.ts', '"npm test 2>&1"']);
  });

  it('are large numbers with the names of their arguments, and none in lists', () => {
    const steps = [
      call('run', { command: 'npm test', timeout: 120_000, retries: 3 }),
      call('read', { path: '/src/app.ts', offset: 280, lines: [300, 400], 'an odd key': 500 }),
    ];
    expect(valuesOf(steps)).toEqual(['offset=280', '/src/app.ts', 'timeout=120000', '"npm test"']);
  });

  it('are those used most first, then those used last', () => {
    const steps = ['/a/one.ts', '/a/two.ts', '/a/one.ts', '/a/three.ts'].map((path) =>
      call('read', { path }),
    );
    expect(valuesOf(steps)).toEqual(['/a/one.ts', '/a/three.ts', '/a/two.ts']);
  });

  it('are no contents, no multi-line text, and nothing shorter than a name', () => {
    expect(
      valuesOf([call('write', { text: 'x'.repeat(161), note: 'one\ntwo', flag: 'yes', other: 'a/b/c' })]),
    ).toEqual(['a/b/c']);
  });

  it('are only as many as fit, and none that are known', () => {
    const steps = ['/a/one.ts', '/a/two.ts', '/a/three.ts'].map((path) => call('read', { path }));
    expect(valuesOf(steps, { max: 24, known: 'They named /a/three.ts.' })).toEqual([
      '/a/two.ts',
      '/a/one.ts',
    ]);
  });

  it('are none for arguments that are not JSON', () => {
    expect(valuesOf([{ calls: [{ name: 'run', input: '{"path": "/a/b', result: 'no' }] }])).toEqual([]);
  });
});
