/** Checks every tool result of the recorded conversations, if they exist: the output of real tools can be restored, too. */
import { describe, expect, it } from 'vitest';
import { readResults } from '../../bench/content/recorded-results.ts';
import { lossOf } from '../../bench/content/verify.ts';
import { shrink } from './shrink.ts';

const results = readResults();
const where = '../shared/data/trajectories-dev.jsonl.gz';

describe.skipIf(results === undefined)(
  `recorded tool results (${results ? where : `${where} is not here`})`,
  () => {
    it.each(['every', 'every-fifth'] as const)(
      'come back, and are not shrunk twice (%s line number)',
      (lineNumbers) => {
        const options = { lossless: true, lineNumbers };
        const problems: string[] = [];
        let touched = 0;
        for (const { tool, text } of results!) {
          const shrunk = shrink(text, options);
          if (!shrunk) continue;
          touched++;
          const loss = lossOf(text, shrunk);
          if (loss !== undefined) problems.push(`${tool}, ${shrunk.kind}: ${loss}`);
          if (shrunk.text.length >= text.length) problems.push(`${tool}, ${shrunk.kind}: not smaller`);
          if (shrink(shrunk.text, options)) problems.push(`${tool}, ${shrunk.kind}: shrunk twice`);
        }
        expect(problems).toEqual([]);
        expect(touched).toBeGreaterThan(1_000);
      },
    );
  },
);
