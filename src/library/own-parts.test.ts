import { describe, expect, it } from 'vitest';
import {
  createLeporello,
  defaultStrategies,
  mustFit,
  tokenBudget,
  type Edit,
  type Strategy,
} from '../index.ts';

/** Replaces old results, as docs/library.md shows it: the strategy does not look at the edits of earlier folds. */
const shortResults: Strategy = {
  name: 'short-results',
  reach: 'history',
  propose({ conversation, protects, mayEdit, idOf }) {
    return conversation.messages.flatMap(({ index: message, parts, span }) =>
      parts.flatMap((content, part) => {
        if (content.type !== 'tool-result' || protects.message(message) || protects.part(message, part))
          return [];
        const edits = content.texts.map(({ start, end }, text): Edit => {
          const memory = idOf(conversation.body.subarray(span.start + start, span.start + end));
          return {
            kind: 'replace-text',
            at: { message, part, text },
            stub: `[Cut. Call read_memory with ${JSON.stringify({ id: memory })}.]`,
            memory,
          };
        });
        return edits.every(mayEdit) ? edits : [];
      }),
    );
  },
};

function bodyOf(results: number): object {
  const steps = Array.from({ length: results }, (_, at) => [
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: `call_${at}`, type: 'function', function: { name: 'run', arguments: '{}' } }],
    },
    { role: 'tool', tool_call_id: `call_${at}`, content: `Result ${at}. ${'word '.repeat(400)}` },
  ]);
  const tools = [{ type: 'function', function: { name: 'run', parameters: { type: 'object' } } }];
  return { model: 'gpt-4o', messages: [{ role: 'user', content: 'Go.' }, ...steps.flat()], tools };
}

describe("a program's own strategy", () => {
  const triggers = [mustFit(), tokenBudget({ triggerTokens: 4_000, targetTokens: 1_000 })];

  it.each([
    ['alone', [shortResults]],
    ['before the others', [shortResults, ...defaultStrategies()]],
  ])('may propose in each fold what it proposed before: %s', async (_, strategies) => {
    const leporello = createLeporello({ triggers, strategies });
    const folds: (readonly [results: number, edits: number])[] = [];
    for (let results = 2; results <= 40; results++) {
      const { outcome, report } = await leporello.prepare({ body: bodyOf(results) });
      expect(outcome).not.toMatchObject({ status: 'failed' });
      for (const { strategy, edits: made } of report.steps)
        if (strategy === 'short-results') folds.push([results, made]);
    }
    expect(folds.length).toBeGreaterThan(2);
    // The newest result is protected. The edits of a fold are those that no earlier fold made; alone, each text has one.
    const edits = folds.reduce((sum, [, made]) => sum + made, 0);
    if (strategies.length === 1) expect(edits).toBe(folds.at(-1)![0] - 1);
  });

  it('names the original by its bytes, and the model can recall it', async () => {
    const leporello = createLeporello({ triggers, strategies: [shortResults] });
    const prepared = await leporello.prepare({ body: bodyOf(20) });
    const [id] = prepared.report.memories;
    expect(await leporello.recall(prepared, JSON.stringify({ id, lines: '1' }))).toContain('Result 0.');
  });
});
