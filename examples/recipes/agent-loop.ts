/**
 * Folds sub-goals at 10:1 in an agent loop of 50 actions: 5,000 tokens of finished work become 500. First in a loop that keeps its own state, then
 * behind the gateway, for an agent that sends its whole history. Run it from a checkout: `npm run example examples/recipes/agent-loop.ts`.
 */
import { openTrajectory } from '../../src/index.ts';
import { type Message, called, prose, startRecipe } from './play.ts';

// In your own program, import { openTrajectory } from 'leporello'.
const goal = 'Move ten services to the new logger. Never touch the billing service.';
let [before, after] = [0, 0];
const trajectory = await openTrajectory({
  goal,
  ratio: 10,
  // The context shows no finished sub-goal in full.
  newestShare: 0,
  model: 'gpt-4o',
  onCompression({ tokensBefore, tokensAfter }) {
    before += tokensBefore;
    after += tokensAfter;
  },
});
for (let service = 1; service <= 10; service++) {
  trajectory.startSubgoal(`Move service-${service}`);
  // A real agent sends trajectory.context() here, runs the action that the model chose, and adds it with its result.
  for (const { tool, input, result } of work(service))
    trajectory.addAction({ action: `${tool} ${JSON.stringify(input)}`, observation: result });
  await trajectory.completeSubgoal(`service-${service} logs to port ${4_000 + service}`);
}
const { actions, tokensNow } = trajectory.report();
console.log(
  `Own loop, ${actions} actions: ${before} tokens in, ${after} in records, ${(before / after).toFixed(1)}:1.`,
);
console.log(`The whole context has ${tokensNow} tokens:\n`);
console.log(trajectory.context().text.split('\n\n').slice(0, 4).join('\n\n'));
// The model recalls any id of the context: a sub-goal, or an action between two ids.
const recalled = await trajectory.recall('{"id":"a33"}', 200);
console.log(`\nAction a33, recalled: ${recalled.includes('The retry limit of service-7 is 21.')}.`);

// Ten such sub-goals behind the gateway, with longer results. It finds the sub-goals in the agent's plan.
await using gateway = await startRecipe('agent-loop.json');
const messages: Message[] = [{ role: 'user', content: goal }];
for (let service = 1; service <= 10; service++) {
  const todos = [{ content: `Move service-${service}`, status: 'in_progress' }];
  messages.push(...called(`plan_${service}`, 'todo_write', { todos }, 'ok'));
  for (const [at, { tool, input, result }] of work(service).entries()) {
    const long = `${prose(service * 10 + at, 650)}\n${result}`;
    messages.push(...called(`call_${service}_${at}`, tool, input, long));
    const { receipt, sent } = await gateway.ask(messages);
    if (receipt.trigger === undefined) continue;
    const inside = sum(receipt.compressions.map(({ tokensBefore }) => tokensBefore));
    const records = sum(receipt.compressions.map(({ tokensAfter }) => tokensAfter));
    const ports = new Set(sent.slice(0, -4).flatMap(({ content }) => content?.match(/to port \d+/g) ?? []));
    console.log(`
Gateway, in sub-goal ${service}: ${receipt.tokensBefore} tokens before, ${receipt.tokensAfter} after.
${receipt.compressions.length} records: ${inside} tokens in, ${records} in records, ${(inside / records).toFixed(1)}:1.
Finished services whose port is in view: ${ports.size} of ${service - 1}.`);
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((all, number) => all + number, 0);
}

/** The actions of one sub-goal, each with some noise. */
function work(service: number) {
  const path = `services/service-${service}/log.ts`;
  const noise = Array.from(
    { length: 5 },
    (_, at) => `[info] module ${at} of service-${service} is loaded\n`,
  ).join('');
  const action = (tool: string, input: object, found: string) => ({ tool, input, result: noise + found });
  return [
    action('read_file', { path }, `The logger of service-${service} was written in ${1_990 + service}.`),
    action(
      'search',
      { query: `openLogger ${service}` },
      `lib/boot-${service}.ts:${service}: the only caller`,
    ),
    action('edit_file', { path }, `The retry limit of service-${service} is ${service * 3}.`),
    action('run', { command: `npm test -- service-${service}` }, `${20 + service} passed`),
    action('run', { command: `leave ${service}` }, `service-${service} logs to port ${4_000 + service}`),
  ];
}
