import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { stepLine, stepWords } from '../step-line.ts';
import { verdictOf } from './verdict.ts';

const announced = 'Now I have a complete picture of the changes. Let me provide a comprehensive review:';
const report = (...sections: readonly string[]): string => [announced, ...sections].join('\n\n');
const padding = 'The module keeps its state in one place, and the tests cover each of its branches well.';

describe('a report in a line', () => {
  it('says its verdict, not how it announces itself', () => {
    const text = report(
      '## Review Summary',
      '**Verdict: APPROVE**',
      '### What was checked',
      `- All 17 packages pass.\n- ${padding}\n- ${padding}`,
    );
    const task = { tool: 'Task', input: '{"description":"Review PR 102"}', result: text, isError: undefined };
    expect(stepLine(stepWords(task))).toMatch(
      /^Task "Review PR 102": "Verdict: APPROVE … All 17 packages pass\./,
    );
  });

  it('says its conclusion, in any language', () => {
    const of = (title: string, said: string) =>
      verdictOf(report('## Details', padding, padding, padding, `## ${title}`, said));
    expect([
      of('Conclusion', 'The `cache` in store.ts is never cleared, so memory grows.'),
      of('Fazit', 'Der Zwischenspeicher in store.ts wird nie geleert, daher wächst der Speicher.'),
      of('Conclusión', 'La memoria intermedia de store.ts nunca se vacía, por eso crece.'),
      of('結論', 'store.tsのキャッシュは消去されないため、メモリが増え続けます。'),
      of('结论', 'store.ts的缓存从不清除，所以内存不断增长。'),
    ]).toEqual([
      expect.stringMatching(/^"The `cache` in store.ts is never cleared/),
      expect.stringMatching(/^"Der Zwischenspeicher in store.ts wird nie geleert/),
      expect.stringMatching(/^"La memoria intermedia de store.ts nunca/),
      expect.stringMatching(/^"store.tsのキャッシュは消去されない/),
      expect.stringMatching(/^"store.ts的缓存从不清除/),
    ]);
  });

  it('tells no items of a list without the line that announces them, and rather what is said behind it', () => {
    const list = [
      'And your plan proposes to add this:',
      '- A struct with three fields',
      '- A tree of commands',
    ];
    const ends = ['The best prompt is the one that interrupts nobody.', 'Delete it.'];
    expect(
      verdictOf(
        report('## The real problem', 'The command asks too much. '.repeat(3), list.join('\n'), ...ends),
      ),
    ).toBe('"The command asks too much. … The best prompt is the one that interrupts nobody."');
    expect(
      verdictOf(report('## Plan', padding.slice(0, 9), [...list, `- ${padding}`, `- ${padding}`].join('\n'))),
    ).toBe(
      '"And your plan proposes to add this: A struct with three fields; A tree of commands; The module keeps its state in one place, and the tests cover each of its branches well. …"',
    );
  });

  it('takes the newest of several verdicts, and no value that a label only announces', () => {
    const text = report(
      '## Storage',
      '**Recommendation:** Rename `save`.',
      padding,
      '## Transport',
      '**Recommendation:** Consider this:',
      padding,
      '## All',
      '**Recommendation: REQUEST CHANGES** until `save` is renamed.',
    );
    expect(verdictOf(text)).toMatch(/^"Recommendation: REQUEST CHANGES until `save` is renamed\./);
  });

  it('is no place alone, and no sentence about the report itself', () => {
    const text = report(
      '## Locks',
      '**Cause:** `save()` takes the lock of the queue twice.',
      '**File**: `src/store/queue.ts` (lines 3-19)',
      padding,
      '## All',
      'This covers all of the code that was asked for.',
      'Only `queue.ts` writes the file, so one lock is enough.',
      'These are the places that were found in the end.',
    );
    expect(verdictOf(text)).toBe(
      '"Cause: `save()` takes the lock of the queue twice. … Only `queue.ts` writes the file, so one lock is enough."',
    );
  });

  it('leaves out what clients add to the answer of a sub-agent', () => {
    const text = `${report('## Findings', 'The hooks run `go build` each time.', padding, padding)}\nagentId: a102bdd (for resuming)\n<usage>total_tokens: 1</usage>`;
    expect(verdictOf(text)).toContain('The hooks run `go build` each time.');
    expect(verdictOf(text)).not.toMatch(/agentId|total_tokens/);
  });

  it('is none of a log, of JSON, of a short answer, or of a task that was only started', () => {
    const log = Array.from({ length: 90 }, (_, at) => `job ${at}: step 50 took 30 ms`).join('\n');
    const started = `Async agent launched successfully.\nagentId: a2f0c7b\n${'The agent is working in the background. '.repeat(8)}`;
    expect([log, JSON.stringify({ log }), 'Verdict: APPROVE', started].map(verdictOf)).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
  });

  it('cuts no word, and is short, for any text', () => {
    fc.assert(
      fc.property(fc.array(fc.lorem({ maxCount: 12 }), { minLength: 5, maxLength: 40 }), (lines) => {
        const text = report('## Findings', ...lines.map((line) => `${line} in \`store.ts\`.`));
        const said = verdictOf(text)?.replaceAll(/^"|"$| …|;(?= )/g, '') ?? '';
        expect(said.length).toBeLessThanOrEqual(190);
        const words = new Set(text.replaceAll('"', "'").split(/\s+/));
        for (const word of said.split(/\s+/).filter(Boolean)) expect(words).toContain(word);
      }),
    );
  });
});
