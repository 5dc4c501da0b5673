/** Tests the figures of a client's requests and the differences of two requests. */
import { describe, expect, it } from 'vitest';
import type { Exchange } from '../tap.ts';
import { differences, figuresOf } from './request-figures.ts';

const exchange = (body: object, headers: readonly string[] = []): Exchange => ({
  method: 'POST',
  target: '/v1/messages',
  headers,
  request: JSON.stringify(body),
  status: 200,
  response: '',
});

const read = { name: 'Read', input_schema: {} };
const write = { name: 'Write', input_schema: {} };
const deferred = { name: 'Later', input_schema: {}, defer_loading: true };
const title = exchange({ messages: [{ role: 'user', content: 'A title?' }] });
const ahead = exchange({ tools: [read, write], messages: [], generate: false });

describe('figuresOf', () => {
  it('describes the first request that offers tools and wants an answer', () => {
    const main = exchange({ tools: [read, write, deferred], messages: [{ role: 'user', content: 'ä' }] });
    const bytes = Buffer.byteLength(main.request);
    expect(figuresOf([title, ahead, main, main])).toEqual({
      tools: 2,
      deferred: 1,
      bytes,
      toolBytes: [read, write, deferred].reduce((sum, tool) => sum + JSON.stringify(tool).length, 0),
      allBytes: title.request.length + ahead.request.length + 2 * bytes,
      calls: 4,
    });
  });

  it('is undefined if no request offers tools', () => {
    expect(figuresOf([title])).toBeUndefined();
  });
});

describe('differences', () => {
  it('lists tools, fields, breakpoints and headers, without values that differ in each run', () => {
    const base = exchange(
      {
        id: '01a202ff-5287-74c0-81b4-c5370a589dc4',
        tools: [read],
        diagnostics: true,
        system: [{ text: 'a', cache_control: { type: 'ephemeral' } }],
      },
      ['Host', 'api.example.com', 'Beta', 'one,two', 'x-kind', 'main'],
    );
    const now = exchange(
      { id: '02b202ff-5287-74c0-81b4-c5370a589dc4', tools: [write], system: [{ text: 'a' }] },
      ['host', '127.0.0.1', 'beta', 'one', 'x-new', 'yes'],
    );
    expect(differences(base, now)).toEqual([
      'tools gone (1): Read',
      'tools added (1): Write',
      'body.diagnostics: true → none',
      'body.system: [{"text":"a","cache_control":{"type":"ephemeral"}}] → [{"text":"a"}]',
      'cache marks: 1 "cache_control":{"type":"ephemeral"} → 0',
      'header beta: gone (1): two',
      'header x-kind: main → none',
      'header x-new: none → yes',
    ]);
  });
});
