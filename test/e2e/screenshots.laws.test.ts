import { describe, expect, it } from 'vitest';
import type { ScriptRequest, Turn } from '../support/fake-provider/script.ts';
import { actionOf, type LoopFormat, screenshot, screenshotLoop } from '../support/screenshot-loop.ts';
import { startStack } from './stack.ts';

const steps = 100;
const bytes = 3_000;
const windowTokens = 32_000;
const formats: readonly LoopFormat[] = ['messages', 'responses', 'computer tool', 'chat', 'gemini'];

/** The numbers of the screenshots that a request holds. */
function screenshotsIn(text: string): readonly number[] {
  return shots.flatMap((data, at) => (text.includes(data) ? [at + 1] : []));
}

const shots = Array.from({ length: steps + 3 }, (_, at) => screenshot(at + 1, bytes));

/** A model that clicks a hundred times, recalls the oldest screenshot that it sees a stub of, says which one it saw, and clicks on. */
function agent() {
  let calls = 0;
  let asked: string | undefined;
  const seen: (readonly number[])[] = [];
  const script = ({ body }: ScriptRequest): Turn => {
    const text = JSON.stringify(body);
    if (calls === steps && asked === undefined) {
      asked = /\[Folded image: .*?(mem_[0-9a-z]{16})/.exec(text)?.[1] ?? 'mem_none';
      seen.push(screenshotsIn(text));
      return { type: 'turn', parts: [{ type: 'tool-call', name: 'read_memory', arguments: { id: asked } }] };
    }
    if (asked !== undefined && seen.length === 1) {
      seen.push(screenshotsIn(text));
      return { type: 'turn', parts: [{ type: 'text', text: 'I see it again.' }], chunkSize: 100 };
    }
    calls++;
    const call = {
      type: 'tool-call',
      name: 'computer',
      id: `call_${calls}`,
      arguments: actionOf(calls),
    } as const;
    return { type: 'turn', parts: [call] };
  };
  return { script, seen };
}

describe.each(formats)('A computer-use loop of 100 screenshots in %s', (format) => {
  it.each([
    ['plain', false],
    ['streamed', true],
  ])(
    'fits a window of 32,000 tokens, and shows the model an old screenshot again: %s',
    async (_, streaming) => {
      const loop = screenshotLoop(format, bytes);
      const { script, seen } = agent();
      await using stack = await startStack(script, {
        models: { '*': { windowTokens } },
        offerRecall: 'always',
      });
      const ask = async (messages: readonly object[]) => {
        const response = await fetch(stack.url + loop.path(streaming), {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'anthropic-version': '2023-06-01' },
          body: JSON.stringify(loop.body(messages, streaming)),
        });
        const text = await response.text();
        expect([response.status, text.slice(0, 300)]).toEqual([200, text.slice(0, 300)]);
        return text;
      };
      const messages: object[] = [];
      for (let step = 1; step <= steps; step++) {
        await ask(messages);
        messages.push(...loop.step(step));
      }
      expect(await ask(messages)).toContain('I see it again.');
      messages.push(loop.says('model', 'I see it again.'), loop.says('user', 'Go on.'));
      await ask(messages);
      messages.push(...loop.step(steps + 1));
      await ask(messages);

      const sent = stack.provider.requests.map(({ body }) => new TextDecoder().decode(body));
      // The newest four are whole in every request, and the recalled one besides.
      const [before = [], after = []] = seen;
      const [recalled] = after;
      expect(after).toEqual([recalled, ...before]);
      expect(before.slice(-4)).toEqual([97, 98, 99, 100]);
      for (const [at, text] of sent.slice(0, steps).entries())
        expect(screenshotsIn(text).slice(-4)).toEqual([at - 3, at - 2, at - 1, at].filter((one) => one > 0));
      expect(screenshotsIn(sent.at(-2)!)).toContain(recalled);
      expect(screenshotsIn(sent.at(-1)!).slice(-4)).toEqual([98, 99, 100, 101]);
      // A request is stable when all messages of the request before are sent again unchanged.
      // The gateway moves its cache marks along, and providers do not compare them.
      const unmarked = sent.map((text) => text.replaceAll(/,"cache_control":\{[^}]*\}/g, ''));
      const lists = unmarked.map((text) => loop.messagesOf(JSON.parse(text) as Record<string, unknown>));
      const stable = lists.slice(1).filter((list, at) => {
        const earlier = lists[at]!;
        return JSON.stringify(list.slice(0, earlier.length)) === JSON.stringify(earlier);
      });
      expect(stable.length / (lists.length - 1)).toBeGreaterThanOrEqual(0.9);
      const largest = Math.max(...sent.map((text) => screenshotsIn(text).length));
      expect(largest).toBeLessThan(27);
    },
  );
});
