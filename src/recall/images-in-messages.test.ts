import { expect, it } from 'vitest';
import { screenshot, screenshotLoop } from '../../test/support/screenshot-loop.ts';
import type { ScriptFormat } from '../../test/support/fake-provider/script.ts';
import { readOriginal } from './read-original.ts';

const formats: readonly ScriptFormat[] = ['messages', 'responses', 'chat', 'gemini'];

it.each(formats)('removed messages with a screenshot are read without its base64: %s', (format) => {
  const stored = JSON.stringify(screenshotLoop(format, 6_000).step(3));
  const { text, json } = readOriginal(stored);
  expect(text).toContain('Clicked.');
  expect(text.length).toBeLessThan(500);
  expect(json).toContain(screenshot(3, 6_000));
});
