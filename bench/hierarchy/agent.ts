/** Generates runs of a coding agent: sub-goals with outcomes, and actions with results as tools print them. A seed always gives the same run. */
import type { Action } from '../../src/index.ts';

export type RunSubgoal = {
  readonly goal: string;
  readonly outcome?: string;
  readonly actions: readonly Action[];
};

/** Generates sub-goals with this many actions in all. 80 % of them have 3 to 7 actions, 10 % have 1 or 2, 10 % have 8 to 14. */
export function generateRun(actions: number, seed = 1): readonly RunSubgoal[] {
  const random = createRandom(seed);
  const subgoals: RunSubgoal[] = [];
  for (let left = actions; left > 0; ) {
    const kind = random(10);
    const length = Math.min(left, kind === 0 ? 1 + random(2) : kind === 1 ? 8 + random(7) : 3 + random(5));
    subgoals.push(generateSubgoal(length, subgoals.length, random));
    left -= length;
  }
  return subgoals;
}

type Random = (below: number) => number;

const areas = [
  'auth',
  'billing',
  'search',
  'export',
  'session',
  'mailer',
  'queue',
  'report',
  'upload',
  'audit',
];
const faults = ['token has expired', 'row not found', 'date is off by one', 'lock is held', 'total is wrong'];
const tasks = [
  'Find why the tests fail in',
  'Mend the handling of dates in',
  'Add a limit to',
  'Take the old client out of',
];

function generateSubgoal(length: number, at: number, random: Random): RunSubgoal {
  const area = areas[random(areas.length)]!;
  const path = `src/${area}/${area}-${at % 89}.ts`;
  const fault = faults[random(faults.length)]!;
  return {
    goal: `${tasks[random(tasks.length)]} ${path}`,
    outcome: `${path}: ${fault} in line ${1 + random(400)}; changed and tested`,
    actions: Array.from({ length }, () => generateAction(path, area, fault, random)),
  };
}

function generateAction(path: string, area: string, fault: string, random: Random): Action {
  switch (random(5)) {
    case 0:
      return {
        action: `read_file {"path":"${path}"}`,
        observation: lines(
          10 + random(50),
          (n) => `${n}\tconst ${area}${random(900)} = load${random(90)}(${random(9_999)});`,
        ),
      };
    case 1:
      return {
        action: `grep {"pattern":"${area}${random(900)}","path":"src"}`,
        observation: lines(
          2 + random(20),
          () => `src/${areas[random(10)]}/part-${random(99)}.ts:${random(500)}: use(${area}${random(900)})`,
        ),
      };
    case 2:
      return {
        action: `run_tests {"files":["${path.replace('.ts', '.test.ts')}"]}`,
        observation: `${lines(3 + random(25), (n) => `ok ${n} ${area} case ${random(999)} (${random(90)} ms)`)}\nFAIL ${area} case ${random(999)}: ${fault}\n1 failed`,
      };
    case 3:
      return {
        action: `edit_file {"path":"${path}","old":"load${random(90)}(${random(9_999)})","new":"reload(${random(9_999)})"}`,
        observation: `Changed 1 place in ${path}.`,
      };
    default:
      return {
        action: `git_log {"path":"${path}"}`,
        observation: lines(
          3 + random(12),
          () =>
            `${(random(2 ** 28) + 2 ** 28).toString(16)} ${tasks[random(tasks.length)]} ${areas[random(10)]} (#${random(5_000)})`,
        ),
      };
  }
}

function lines(count: number, line: (number: number) => string): string {
  return Array.from({ length: count }, (_, number) => line(number + 1)).join('\n');
}

/** Returns a Mulberry32 generator: small, and good enough to generate text. */
function createRandom(seed: number): Random {
  let state = seed;
  return function random(below) {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below);
  };
}
