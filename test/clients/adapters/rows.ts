/**
 * Runs the tests of the adapters, which use the real packages against the scripted provider, and turns their results into rows of the table. A row
 * is an adapter or an SDK over one wire format; a cell says whether all tests of that kind passed.
 */
import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { installPackage, mastraPackage } from '../install.ts';
import type { MatrixRow } from '../matrix.ts';

/** One test of a report of vitest. */
export type TestResult = {
  readonly file: string;
  /** The names of the groups that it is in. */
  readonly groups: readonly string[];
  readonly name: string;
  readonly hasPassed: boolean;
};

const folders = ['test/e2e/adapters', 'test/e2e/sdks', 'test/e2e/mcp.test.ts'];

/** Runs the tests and returns their rows. Rejects if they could not be run. */
export async function adapterRows(): Promise<readonly MatrixRow[]> {
  const folder = await mkdtemp(join(tmpdir(), 'leporello-adapters-'));
  try {
    const file = join(folder, 'report.json');
    const args = ['run', ...folders, '--reporter=json', `--outputFile=${file}`];
    // Without Mastra, its tests would be skipped.
    await installPackage(mastraPackage);
    const child = spawn(process.execPath, ['node_modules/vitest/vitest.mjs', ...args], { stdio: 'ignore' });
    await new Promise((resolve, reject) => child.once('error', reject).once('close', resolve));
    const report = JSON.parse(await readFile(file, 'utf8')) as VitestReport;
    const broken = report.testResults.filter(
      ({ status, assertionResults }) => status === 'failed' && assertionResults.length === 0,
    );
    if (broken.length > 0)
      throw new Error(
        `These tests of adapters could not be loaded: ${broken.map(({ name }) => name).join(', ')}. Run them with npm test.`,
      );
    return rowsOf(resultsIn(report));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

type VitestReport = {
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly assertionResults: readonly {
      readonly ancestorTitles: readonly string[];
      readonly title: string;
      readonly status: string;
    }[];
  }[];
};

function resultsIn({ testResults }: VitestReport): readonly TestResult[] {
  return testResults.flatMap(({ name: file, assertionResults }) =>
    assertionResults.map(({ ancestorTitles, title, status }) => ({
      file,
      groups: ancestorTitles,
      name: title,
      hasPassed: status === 'passed',
    })),
  );
}

/** The columns that a test of each name speaks for. */
const columns: readonly (readonly [test: RegExp, of: readonly Column[]])[] = [
  [/folds and hidden recalls, plain/, ['fold', 'recall']],
  [/folds and hidden recalls, streamed/, ['stream']],
  [/is sent and counted as by the gateway/, ['fold']],
  [/^not streaming continues through folds and recalls|^not streaming does so with/, ['fold', 'recall']],
  [/^streaming continues through folds and recalls|^streaming does so with/, ['stream']],
  [/second instance on the same store|another instance on the same store/, ['restart']],
  [/^reads, searches and lists/, ['recall']],
];

type Column = 'fold' | 'recall' | 'stream' | 'restart';

/** Returns a row for each adapter and each SDK over each format, in the order of the tests. */
export function rowsOf(results: readonly TestResult[]): readonly MatrixRow[] {
  const rows = Map.groupBy(
    results.filter((result) => columnsOf(result).length > 0),
    nameOf,
  );
  return [...rows].map(([name, own]) => {
    const word = (column: Column): string => {
      const tests = own.filter((result) => columnsOf(result).includes(column));
      if (tests.length === 0) return 'not apart';
      return tests.every(({ hasPassed }) => hasPassed) ? 'yes' : 'FAILED';
    };
    const [fold, recall, stream, restart] = (['fold', 'recall', 'stream', 'restart'] as const).map(word);
    return {
      name,
      runtime: `Node ${process.versions.node}`,
      fold: fold!,
      recall: recall!,
      stream: stream!,
      restart: restart!,
    };
  });
}

function columnsOf({ groups, name }: TestResult): readonly Column[] {
  const said = [groups[1], name].filter((part) => part !== undefined).join(' ');
  return columns.flatMap(([test, of]) => (test.test(said) ? of : []));
}

const adapters: Readonly<Record<string, string>> = {
  'ai-sdk': 'leporello/ai-sdk',
  langchain: 'leporello/langchain',
  mastra: `leporello/ai-sdk in ${mastraPackage}`,
  'openai-agents': 'leporello/openai-agents',
};

/** Names a row after the entry of the package, and what it was used with. */
function nameOf({ file, groups: [group = ''] }: TestResult): string {
  const [, adapter = ''] = /adapters[/\\]([a-z-]+)\.laws/.exec(file) ?? [];
  const [, format] = /^leporello\w+ over (.+)$/.exec(group) ?? [];
  if (format !== undefined) return `${adapters[adapter] ?? adapter}, ${format}`;
  const [, sdk, way] = /^(.+) (through the gateway|with leporello\/fetch)$/.exec(group) ?? [];
  if (sdk === undefined) return 'leporello/mcp, the official client';
  return way === 'with leporello/fetch' ? `leporello/fetch in ${sdk}` : `the gateway with ${sdk}`;
}
