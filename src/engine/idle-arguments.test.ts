import { describe, expect, it } from 'vitest';
import { stubArguments } from '../strategies/offload.ts';
import { placesEdited } from '../strategies/lib/editable-texts.ts';
import { chatBody, readChat, type Step } from '../../test/support/chat-conversation.ts';
import { planInputFor } from '../../test/support/plan-input.ts';
import { foldView } from '../../test/support/strategy-suite.ts';
import { idleArguments } from './idle-content.ts';

const file = 'const x = 1;\n'.repeat(100);
const write = (content: string): Step => ({
  calls: [{ name: 'write_file', input: JSON.stringify({ path: 'a.ts', content }), result: 'ok' }],
});
const steps: readonly Step[] = [{ user: 'Go' }, write(file), write('short'), write(file), write(file)];

/** Counts characters divided by four, and the calls of the counter. */
function scene(
  pins: { readonly tools: readonly string[]; readonly texts: readonly string[] } = { tools: [], texts: [] },
) {
  let counted = 0;
  const conversation = readChat(chatBody(steps));
  const input = planInputFor(conversation, { pins, onCount: () => (counted += 1) });
  const asked = (gone = placesEdited([])) =>
    conversation.messages.map((message) => idleArguments(input, gone, message));
  return { conversation, asked, counted: () => counted };
}

describe('idle arguments', () => {
  it('are the tokens that stubs would save in long texts, except in the newest batch', () => {
    expect(scene().asked()).toEqual([0, 325 - 80, 0, 0, 0, 325 - 80, 0, 0, 0]);
  });

  it('exclude pinned and stubbed arguments', () => {
    const { conversation, asked } = scene();
    const [first] = stubArguments().propose(foldView(conversation));
    expect(asked(placesEdited([first!]))).toEqual([0, 0, 0, 0, 0, 325 - 80, 0, 0, 0]);
    expect(scene({ tools: ['write_file'], texts: [] }).asked()).toEqual(Array(9).fill(0));
  });

  it('are counted once, however often they are needed', () => {
    const { asked, counted } = scene();
    const first = asked();
    const before = counted();
    expect(asked()).toEqual(first);
    expect(counted()).toBe(before);
  });
});
