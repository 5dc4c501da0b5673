import { createCaches } from '../caches.ts';
import { describe, expect, it } from 'vitest';
import { createEarlierRequests, type EarlierRequest } from './cost.ts';

const request = (at: number): EarlierRequest => ({
  at,
  prompt: 10,
  baseline: 10,
  counted: 10,
  edits: 0,
  hiddenRecalls: 0,
  cached: false,
  lifetimeMs: 1,
});

const none = { earlier: undefined, continues: false };

/** `a` is a conversation without messages: all conversations share the first hash. */
const standing = (links: string, tenant = 't1') => ({ tenant, links: links.split(''), beginning: links[1] });

describe('the earlier request', () => {
  it('is the newest that this one continues, on its own branch', () => {
    const requests = createEarlierRequests();
    requests.note(standing('abc'), request(1));
    requests.note(standing('abcde'), request(2));
    requests.note(standing('abcxy'), request(3));
    const found = ['abcdefg', 'abcxyz', 'abcq', 'abcde'].map((links) => requests.find(standing(links)));
    expect(found).toEqual([2, 3, 1, 2].map((at) => ({ earlier: request(at), continues: true })));
  });

  it('is the newest with the same beginning if the client has rewritten its history', () => {
    const requests = createEarlierRequests();
    requests.note(standing('abcde'), request(1));
    requests.note(standing('abcdefg'), request(2));
    expect(requests.find(standing('abxyz'))).toEqual({ earlier: request(2), continues: false });
    expect(requests.find({ ...standing('axyz'), beginning: undefined })).toEqual(none);
  });

  it('is never of another tenant, nor of a conversation that only shares the system prompt', () => {
    const requests = createEarlierRequests();
    requests.note(standing('abcde'), request(1));
    expect(requests.find(standing('abcdefg', 't2'))).toEqual(none);
    expect(requests.find(standing('aghi'))).toEqual(none);
    expect(requests.find({ tenant: 't1', links: [], beginning: undefined })).toEqual(none);
  });

  it('is forgotten after too many others', () => {
    // Two entries of 500 bytes each: one by the last message, and one by the beginning.
    const requests = createEarlierRequests(createCaches(0.05));
    requests.note(standing('abc'), request(1));
    for (let at = 2; at < 60; at++)
      requests.note(standing(`b${String.fromCodePoint(0x400 + at)}`), request(at));
    const last = `b${String.fromCodePoint(0x400 + 59)}`;
    const found = ['abc', last].map((links) => requests.find(standing(links)).earlier?.at);
    expect(found).toEqual([undefined, 59]);
  });
});
