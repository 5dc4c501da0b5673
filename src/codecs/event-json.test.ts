import { describe, expect, it } from 'vitest';
import {
  addUsage,
  eventBytes,
  jsonList,
  memberBytes,
  objectBytes,
  setMembers,
  withMembers,
} from './shared-json.ts';

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const bytes = (text: string) => encoder.encode(text);
const text = (value: Uint8Array | undefined) => value && decoder.decode(value);

describe('changing members of an object', () => {
  it('replaces existing ones, removes those without a value, and keeps every other byte', () => {
    const json = bytes(' { "a" : 1.0 , "b":{"a":2}, "c":"\\u00e9" }\n');
    expect(text(setMembers(json, { a: bytes('[]'), c: undefined, d: bytes('5') }))).toBe(
      ' { "a" : [] , "b":{"a":2} }\n',
    );
    expect(text(setMembers(json, { a: undefined, b: undefined, c: undefined }))).toBe(' {  }\n');
    expect(setMembers(json, {})).toBe(json);
  });

  it('adds missing ones at the end when asked to', () => {
    expect(text(withMembers(bytes('{"a":1}'), { a: bytes('2'), 'b"': bytes('3') }))).toBe('{"a":2,"b\\"":3}');
    expect(text(withMembers(bytes('{ }'), { a: bytes('2') }))).toBe('{ "a":2}');
  });

  it('handles keys that are special in JavaScript', () => {
    expect(text(setMembers(bytes('{"toString":1,"__proto__":2}'), { a: bytes('3') }))).toBe(
      '{"toString":1,"__proto__":2}',
    );
  });

  it('finds the bytes of one', () => {
    expect(text(memberBytes(bytes('{"b":[1, 2]}'), 'b'))).toBe('[1, 2]');
    expect(memberBytes(bytes('{"b":1}'), 'a')).toBeUndefined();
    expect(text(memberBytes(bytes('{"b":1,"b":2}'), 'b'))).toBe('2');
    expect(['b', 'c', 'd'].map((key) => text(objectBytes(bytes('{"b":{"x":1},"c":5}'), key)))).toEqual([
      '{"x":1}',
      '{}',
      '{}',
    ]);
  });
});

describe('lists and events', () => {
  it('are built from JSON', () => {
    expect(text(jsonList([bytes('1'), bytes('{}')]))).toBe('[1,{}]');
    expect(text(jsonList([]))).toBe('[]');
    expect(text(eventBytes('x', '{"a":1}'))).toBe('event: x\ndata: {"a":1}\n\n');
    expect(text(eventBytes(undefined, bytes('{\n"a":1}')))).toBe('data: {\ndata: "a":1}\n\n');
  });
});

describe('adding usage', () => {
  it('adds numbers, joins lists, descends into objects, and keeps the later of other values', () => {
    const one = { input: 1, tier: 'a', parts: { x: 1, y: 2 }, rounds: [1], only: 7, gone: 3 };
    const other = { input: 10, tier: 'b', parts: { x: 10, z: 3 }, rounds: [2], more: 5, gone: null };
    expect(addUsage(one, other)).toEqual({
      input: 11,
      tier: 'b',
      parts: { x: 11, y: 2, z: 3 },
      rounds: [1, 2],
      only: 7,
      more: 5,
      gone: 3,
    });
  });

  it('returns the other side when one is missing', () => {
    expect([addUsage(undefined, { a: 1 }), addUsage({ a: 1 }, undefined), addUsage(null, null)]).toEqual([
      { a: 1 },
      { a: 1 },
      null,
    ]);
  });
});
