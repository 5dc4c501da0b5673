import { describe, expect, it } from 'vitest';
import { LeporelloError } from '../../errors.ts';
import { engineChoice } from './replay.ts';

function problem(text: string): string {
  try {
    engineChoice(text);
  } catch (error) {
    if (LeporelloError.isInstance(error)) return `${error.code}: ${error.message}`;
    throw error;
  }
  return 'no problem';
}

describe('engineChoice', () => {
  it('reads a name, and a configuration as in a file', () => {
    const { name, settings } = engineChoice('no budget={"triggers":{"tokenBudget":false}}');
    expect(name).toBe('no budget');
    expect(settings.triggers?.tokenBudget).toBe(false);
  });

  it('says what is wrong', () => {
    const form = `must be NAME=JSON, as in 'early={"triggers":{"tokenBudget":{"triggerTokens":60000,"targetTokens":20000}}}'.`;
    expect(problem('early')).toBe(`bad-usage: --engine is early, but ${form}`);
    expect(problem('early={"a"')).toBe(`bad-usage: --engine is early={"a", but ${form}`);
    expect(problem('early={"trigers":{}}')).toMatch(/^bad-config: .*trigers/);
  });
});
