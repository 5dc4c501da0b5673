/**
 * Fuzzes the gateway: `npm run fuzz -- --count 100000 --seed 1 --routes chat,messages-stream`. Prints counts per
 * route, and for each failure the seed that repeats it: `npm run fuzz -- --seed SEED --count 1 --routes ROUTE`.
 */
import { parseArgs } from 'node:util';
import { openGateways } from './gateways.ts';
import { play, type PlayResult, type Route, routes } from './play.ts';

const { values } = parseArgs({
  options: {
    count: { type: 'string', default: '10000' },
    seed: { type: 'string', default: '1' },
    routes: { type: 'string', default: routes.map(({ name }) => name).join() },
  },
});

const names = values.routes.split(',');
const chosen = routes.filter(({ name }) => names.includes(name));
const unknown = names.filter((name) => !routes.some((route) => route.name === name));
if (unknown.length > 0) {
  console.error(
    `There is no route ${unknown.join(', ')}. Routes: ${routes.map(({ name }) => name).join(', ')}.`,
  );
  process.exit(1);
}

const [count, seed] = [Number(values.count), Number(values.seed)];
const sums = new Map<string, PlayResult>();
let gateways = openGateways();
let failures = 0;
for (let bodies = 0, at = 0; bodies < count; at++) {
  // Gateways are replaced often, so that a conversation can be repeated without the earlier ones.
  const route = chosen[at % chosen.length]!;
  if (at % 1_000 === 0) gateways = openGateways();
  const played = await play(gateways, route, seed + at);
  bodies += played.requests;
  sums.set(route.name, added(sums.get(route.name), played));
  for (const failure of played.failures) {
    failures++;
    if (failures <= 40) console.log(`${route.name} --seed ${seed + at}: ${failure}`);
  }
  if (at % 5_000 === 4_999) console.error(`${bodies} bodies, ${failures} failures`);
}
print(chosen);
process.exitCode = failures > 0 ? 1 : 0;

function added(sum: PlayResult | undefined, played: PlayResult): PlayResult {
  if (!sum) return played;
  const { requests, valid, folded, recalls, overflows } = played;
  return {
    requests: sum.requests + requests,
    valid: sum.valid + valid,
    folded: sum.folded + folded,
    recalls: sum.recalls + recalls,
    overflows: sum.overflows + overflows,
    failures: [...sum.failures, ...played.failures],
  };
}

function print(of: readonly Route[]): void {
  console.log(
    '| route | bodies | valid | folded | recalls | overflows | failures |\n|---|---|---|---|---|---|---|',
  );
  const rows = [
    ...of.map(({ name }) => [name, sums.get(name)] as const),
    ['all', [...sums.values()].reduce(added)] as const,
  ];
  for (const [name, sum] of rows) {
    if (!sum) continue;
    const { requests, valid, folded, recalls, overflows } = sum;
    console.log(
      `| ${[name, requests, valid, folded, recalls, overflows, sum.failures.length].join(' | ')} |`,
    );
  }
}
