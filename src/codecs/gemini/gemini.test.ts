/**
 * The codec suite on generateContent. Three things of the suite have no bytes in this format: model and streaming stand in the URL, so
 * the suite's codec is the one of the route a body was made for; the suite's conversations have neighbours of one side and count every
 * content after an edit, so it writes without joining and does not mind neighbours (join.test.ts holds that); and one case of the
 * prefix chain looks for `messages`, which has as many letters as `contents`.
 */
import { appendingCases } from '../../testing/codec-suite/appending-cases.ts';
import { editingCases } from '../../testing/codec-suite/editing-cases.ts';
import type { CodecFixture } from '../../testing/codec-suite/fixture.ts';
import { streamingLabel } from '../../testing/codec-suite/gemini/bodies.ts';
import { geminiFixture } from '../../testing/codec-suite/gemini/fixture.ts';
import { hostileCases } from '../../testing/codec-suite/hostile-cases.ts';
import { prefixCases } from '../../testing/codec-suite/prefix-cases.ts';
import { readingCases } from '../../testing/codec-suite/reading-cases.ts';
import { responseCases } from '../../testing/codec-suite/response-cases.ts';
import { streamCases } from '../../testing/codec-suite/stream-cases.ts';
import type { Codec } from '../codec.ts';
import { gemini, geminiFor } from './index.ts';
import { writeApart } from './write.ts';

const decoder = new TextDecoder();
const encoder = new TextEncoder();

const onItsRoute: Codec = {
  ...gemini,
  read: (body, reading) => {
    const streaming = decoder.decode(body).includes(streamingLabel);
    return geminiFor({ model: 'gemini-2.5-pro', streaming }).read(body, reading);
  },
  write: writeApart,
  rules: {
    ...gemini.rules,
    problems: (conversation) =>
      gemini.rules.problems(conversation).filter(({ rule }) => rule !== 'roles-alternate'),
  },
};

readingCases(onItsRoute, geminiFixture);
editingCases(onItsRoute, geminiFixture);
appendingCases(onItsRoute, geminiFixture);
hostileCases(onItsRoute, geminiFixture);
responseCases(onItsRoute, geminiFixture);
streamCases(onItsRoute, geminiFixture);

const renamed = (bytes: Uint8Array, from: string, to: string) =>
  encoder.encode(decoder.decode(bytes).replace(`{"${from}":`, `{"${to}":`));

const withMessages: CodecFixture = {
  ...geminiFixture,
  body: (request) => renamed(geminiFixture.body(request), 'contents', 'messages'),
};
const readingMessages: Codec = {
  ...onItsRoute,
  read: (body, reading) => onItsRoute.read(renamed(body, 'messages', 'contents'), reading),
};

prefixCases(readingMessages, withMessages);
