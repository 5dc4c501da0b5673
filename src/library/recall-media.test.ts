import { expect, it } from 'vitest';
import { screenshot, screenshotLoop } from '../../test/support/screenshot-loop.ts';
import { openaiChat } from '../codecs/openai-chat/index.ts';
import { createLeporello } from './leporello.ts';

const loop = screenshotLoop('chat', 3_000);
const messages = Array.from({ length: 30 }, (_, at) => loop.step(at + 1)).flat();
const body = new TextEncoder().encode(JSON.stringify(loop.body(messages, false)));
const open = () => createLeporello({ models: { 'gpt-4o': { windowTokens: 32_000 } } });

it('a program gets a recalled screenshot as a content part of its format', async () => {
  const leporello = open();
  const prepared = await leporello.prepare({ codec: openaiChat, body });
  const [id] = prepared.report.memories;
  const argumentsJson = JSON.stringify({ id });
  expect(await leporello.recallWithMedia(prepared, argumentsJson)).toEqual({
    text: `The image of ${id}, as it was:`,
    media: [
      {
        json: `{"type":"image_url","image_url":{"url":"data:image/png;base64,${screenshot(1, 3_000)}"}}`,
        inResult: false,
      },
    ],
  });
  expect(await leporello.recall(prepared, argumentsJson)).toBe(
    'This is an image or a document, and only texts can be shown here. Go on without it.',
  );
  expect(await leporello.recallWithMedia(prepared, argumentsJson, 200)).toEqual({
    text: 'The image takes about 1105 tokens; there is room for 200.',
    media: [],
  });
});

it('a program that keeps its own messages keeps its images, because its recalls are texts', async () => {
  const { body: folded } = await open().compact({ codec: openaiChat, body });
  expect(new TextDecoder().decode(folded)).not.toContain('[Folded image');
});
