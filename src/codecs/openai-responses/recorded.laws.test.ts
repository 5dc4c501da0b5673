/** Tests recorded conversations as Responses bodies: they are read without a problem, and folded so that they fit and stay valid. */
import { existsSync, readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { beforeAll, describe, expect, it } from 'vitest';
import { asResponses } from '../../../test/support/as-responses.ts';
import { newReading, shown, view } from '../../../test/support/codec-suite/views.ts';
import { testEngine } from '../../../test/support/test-engine.ts';
import { openaiResponses } from './index.ts';

const source = '../shared/data/trajectories-dev.jsonl.gz';
const isThere = existsSync(source);

describe.skipIf(!isThere)(`recorded conversations (${isThere ? source : `${source} is not here`})`, () => {
  let recorded: readonly Uint8Array[];
  beforeAll(() => {
    const lines = gunzipSync(readFileSync(source)).toString().trim().split('\n');
    recorded = lines.map((line) => asResponses(new TextEncoder().encode(line)));
    expect(recorded.length).toBe(822);
  });

  it('are read completely', () => {
    const reading = newReading();
    const wrong = recorded.flatMap((body, at) => {
      const conversation = openaiResponses.read(body, reading);
      const problems = openaiResponses.rules.problems(conversation).map(({ rule }) => rule);
      const changed = openaiResponses.write(conversation, []) === body ? [] : ['changed'];
      const found = [...problems, ...changed];
      return found.length === 0 ? [] : [`conversation ${at}: ${found.join(', ')}`];
    });
    expect(wrong).toEqual([]);
  });

  it.each([8_000, 32_000])(
    'fit a window of %i and stay valid, the same again',
    async (window) => {
      const { engine } = testEngine({ window });
      let folded = 0;
      for (const body of recorded.filter((_, at) => at % 6 === 0)) {
        const request = { codec: openaiResponses, body, tenant: 'tenant' };
        const { outcome, report, body: sent } = await engine.prepare(request);
        expect([outcome.status === 'failed' ? outcome : undefined, report?.unfit]).toEqual([
          undefined,
          undefined,
        ]);
        expect(report.tokensAfter).toBeLessThanOrEqual(window);
        expect(openaiResponses.rules.problems(view(openaiResponses, sent))).toEqual([]);
        expect(shown((await engine.prepare(request)).body) === shown(sent)).toBe(true);
        if (outcome.status === 'compacted') folded++;
      }
      expect(folded).toBeGreaterThan(10);
    },
    120_000,
  );
});
