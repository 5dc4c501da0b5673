/**
 * Writes the tables of the README and of pages in docs/ from bench/results/, so that no page can show a figure that no result has. Each table is between
 * `<!-- figures: NAME -->` and `<!-- /figures -->`; publish/tables.ts says what NAME shows. Run `node bench/publish.ts` after a benchmark, or
 * `node bench/publish.ts --check`, which writes nothing and fails when a page differs (`npm run check -- figures`).
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { againstBlocks } from './publish/against-tables.ts';
import { defectBlocks } from './publish/defects-table.ts';
import { blocks as otherBlocks } from './publish/tables.ts';
import { readResult, resultNames } from './results.ts';

const blocks = { ...otherBlocks, ...againstBlocks, ...defectBlocks };
const pages = ['README.md', 'docs/benchmarks.md', 'docs/memory.md', 'docs/against.md', 'docs/defects.md'];
/** Pages whose every table is made from a result. */
const generated = ['docs/benchmarks.md', 'docs/against.md'];
const marked = /<!-- figures: ([\w-]+) -->\n.*?<!-- \/figures -->/gs;

const isCheck = process.argv[2] === '--check';
const problems = [...pages.flatMap(publish), ...unusedBlocks(), ...unusedResults()];
for (const problem of problems) console.log(problem);
if (problems.length > 0) process.exitCode = 1;

/** Writes a page, or returns what is wrong with it. */
function publish(page: string): readonly string[] {
  const file = new URL(`../${page}`, import.meta.url);
  const text = readFileSync(file, 'utf8');
  const isByHand = generated.includes(page) && /^\|/m.test(text.replaceAll(marked, ''));
  const found = isByHand ? [`${page} has a table outside of the markers: a figure needs a result.`] : [];
  const next = text.replaceAll(marked, (_, name: string) => {
    const block = blocks[name];
    if (block === undefined) {
      found.push(`${page}: there is no table ${name}. The tables are ${Object.keys(blocks).join(', ')}.`);
      return '';
    }
    const result = readResult(block.from);
    const shown = result === undefined ? missing(block.from) : block.text(result);
    return `<!-- figures: ${name} -->\n${shown}\n<!-- /figures -->`;
  });
  if (found.length > 0) return found;
  if (next === text) return [];
  if (isCheck)
    return [`${page} differs from bench/results/. Run npm run bench bench/publish.ts, and commit the page.`];
  writeFileSync(file, next);
  return [];
}

/** Shows no figure where no result was recorded. */
function missing(name: string): string {
  return `Not measured yet: \`npm run bench bench/${name}.ts\` writes the result.`;
}

function unusedBlocks(): readonly string[] {
  const text = pages.map((page) => readFileSync(new URL(`../${page}`, import.meta.url), 'utf8')).join('\n');
  return Object.keys(blocks)
    .filter((name) => !text.includes(`<!-- figures: ${name} -->`))
    .map((name) => `No page shows the table ${name}.`);
}

/** The result `speed` is for `npm run check -- speed`. */
function unusedResults(): readonly string[] {
  const used = new Set(['speed', ...Object.values(blocks).map(({ from }) => from)]);
  return resultNames()
    .filter((name) => !used.has(name))
    .map((name) => `No page shows bench/results/${name}.json. Add a table of it, or delete it.`);
}
