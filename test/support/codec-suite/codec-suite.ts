/**
 * Declares what every codec must do, as vitest cases. A codec's own test calls it with a fixture that answers each case in its
 * wire format; anything that only one format has is tested next to the codec.
 */
import type { Codec } from '../../../src/codecs/codec.ts';
import { appendingCases } from './appending-cases.ts';
import { chunkingCases } from './chunking-cases.ts';
import { editingCases } from './editing-cases.ts';
import type { CodecFixture } from './fixture.ts';
import { hiddenRecallCases } from './hidden-recall-cases.ts';
import { hostileCases } from './hostile-cases.ts';
import { prefixCases } from './prefix-cases.ts';
import { promptCases } from './prompt-cases.ts';
import { readingCases } from './reading-cases.ts';
import { recallPlaceCases } from './recall-place-cases.ts';
import { responseCases } from './response-cases.ts';
import { skippingCases } from './skipping-cases.ts';
import { streamCases } from './stream-cases.ts';
import { usageCases } from './usage-cases.ts';

/** Declares the cases that every codec must pass; the fixture answers each in its own format. */
export function codecSuite(codec: Codec, fixture: CodecFixture): void {
  readingCases(codec, fixture);
  promptCases(codec, fixture);
  editingCases(codec, fixture);
  appendingCases(codec, fixture);
  prefixCases(codec, fixture);
  hostileCases(codec, fixture);
  responseCases(codec, fixture);
  streamCases(codec, fixture);
  chunkingCases(codec, fixture);
  skippingCases(codec, fixture);
  recallPlaceCases(codec, fixture);
  usageCases(codec, fixture);
  hiddenRecallCases(codec, fixture);
}
