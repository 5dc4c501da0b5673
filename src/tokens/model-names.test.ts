import { describe, expect, it } from 'vitest';
import { bestMatch, namesOf } from './catalog.ts';

describe('namesOf', () => {
  it.each([
    ['gpt-4o', ['gpt-4o']],
    ['OpenAI/GPT-4o:free', ['openai/gpt-4o:free', 'openai/gpt-4o', 'gpt-4o:free', 'gpt-4o']],
    [
      'us.anthropic.claude-sonnet-4-20250514-v1:0',
      ['us.anthropic.claude-sonnet-4-20250514-v1:0', 'claude-sonnet-4-20250514'],
    ],
    ['claude-sonnet-4@20250514', ['claude-sonnet-4@20250514', 'claude-sonnet-4-20250514']],
    ['claude-opus-4-6[1m]', ['claude-opus-4-6[1m]', 'claude-opus-4-6']],
    [
      'ft:gpt-4o-mini-2024-07-18:org:name:id',
      ['ft:gpt-4o-mini-2024-07-18:org:name:id', 'gpt-4o-mini-2024-07-18'],
    ],
    ['gemini-2.5-flash', ['gemini-2.5-flash']],
    ['', []],
  ])('reads %j as %j', (model, names) => {
    expect(namesOf(model)).toEqual(names);
  });

  it('does not read a very long text as a name', () => {
    expect(namesOf('a/'.repeat(200_000))).toEqual([]);
  });
});

const hit = (pattern: string, model: string) => bestMatch(model, { [pattern]: true }) ?? false;

describe('bestMatch', () => {
  const table = {
    '*': 'any',
    'gpt-*': 'family',
    'gpt-5*': 'generation',
    'gpt-*-mini': 'small',
    'gpt-5': 'exact',
  };

  it.each([
    ['gpt-5', 'exact'],
    ['openai/gpt-5', 'exact'],
    ['gpt-5.1', 'generation'],
    ['gpt-4o', 'family'],
    ['gpt-4o-mini', 'small'],
    ['gpt-5-mini', 'small'],
    ['llama', 'any'],
  ])('%s is %s', (model, value) => {
    expect(bestMatch(model, table)).toBe(value);
  });

  it('takes the first of equally long globs', () => {
    expect(bestMatch('ab', { 'a*': 1, '*b': 2 })).toBe(1);
  });

  it('matches stars anywhere, without taking a character twice', () => {
    expect(hit('a*b*c', 'a-b-b-c')).toBe(true);
    expect(hit('ab*ba', 'aba')).toBe(false);
    expect(hit('a*bc*c', 'abc')).toBe(false);
    expect(hit('*', 'x')).toBe(true);
    expect(hit('GPT-*', 'gpt-x')).toBe(true);
  });

  it('lets a single star fit everything, even what is no name', () => {
    expect(['', 'x'.repeat(1_000)].map((model) => bestMatch(model, { '*': 1 }))).toEqual([1, 1]);
  });

  it('is undefined when nothing fits, and for no name', () => {
    expect(bestMatch('llama', { 'gpt-*': 1 })).toBeUndefined();
    expect(bestMatch('', { 'gpt-*': 1 })).toBeUndefined();
  });
});
