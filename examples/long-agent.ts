/**
 * Runs an agent of 500 actions whose requests stay below 16,000 tokens. The agent names its sub-goals, adds its actions and sends the context
 * of the trajectory. The model is scripted, and nothing is sent. Run it from a checkout: `npm run example examples/long-agent.ts`.
 */
import { openTrajectory } from '../src/index.ts';
import { loadTokenCounter } from '../src/tokens/load-counter.ts';

// In your own program, import { openTrajectory } from 'leporello'.
const system = 'You are a careful engineer. Take one step at a time.';
const trajectory = await openTrajectory({
  goal: 'Move all 100 services to the new logger. Never touch the billing service.',
  // The rest of the 16,000 tokens is for system prompt, tools and reply.
  budgetTokens: 14_000,
  model: 'gpt-4o',
});
const counter = await loadTokenCounter('gpt-4o');
let largest = 0;

for (let service = 1; service <= 100; service++) {
  trajectory.startSubgoal(`Move service-${service}`);
  for (const step of ['read', 'search', 'edit', 'test', 'commit']) {
    const request = requestOf();
    largest = Math.max(largest, counter.count(JSON.stringify(request)));
    // A real agent would send the request here, run the action that the model chose, and add it with its result.
    trajectory.addAction({
      action: `${step} {"path":"services/service-${service}/log.ts"}`,
      observation: `${step} of service-${service}: ${'line of output, '.repeat(60)} port ${4_000 + service}`,
    });
  }
  // With openTrajectory({ summarizer }), your own summarizer would write the summary of this sub-goal.
  await trajectory.completeSubgoal(`service-${service} logs to port ${4_000 + service}`);
}

const { actions, tokensSeen, tokensNow } = trajectory.report();
console.log(
  `${actions} actions with ${tokensSeen} tokens. The largest request had ${largest} tokens, the last context has ${tokensNow}.`,
);

// The model can recall any id in its context, and the ids between them:
console.log(await trajectory.recall('{"id":"s7"}', 120));
console.log((await trajectory.record('a33'))?.kind);

// After a restart, openTrajectory needs this state, the store and the secret:
console.log(`The state has ${JSON.stringify(trajectory.state()).length} bytes.`);

/** Returns a Chat Completions request. The messages alternate between user and assistant, so they fit every format. */
function requestOf(): object {
  const { name, description, parameters } = trajectory.recallTool;
  return {
    model: 'gpt-4o',
    messages: [{ role: 'system', content: system }, ...trajectory.context().messages],
    tools: [{ type: 'function', function: { name, description, parameters } }],
  };
}
