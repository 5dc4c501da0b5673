/**
 * An agent of 500 actions whose requests stay under 16,000 tokens: it names its sub-goals, adds its actions, and sends the context it
 * gets. The model is a script here, and nothing is sent. Run from a checkout: `npm run bench examples/long-agent.ts`.
 */
import { loadTokenCounter, openTrajectory } from '../src/index.ts';

// In a program of your own: import { openTrajectory } from 'leporello'.
const system = 'You are a careful engineer. Take one step at a time.';
const trajectory = await openTrajectory({
  goal: 'Move all 100 services to the new logger. Never touch the billing service.',
  // System prompt, tools and the reply have the rest.
  budget: 14_000,
  model: 'gpt-4o',
});
const counter = await loadTokenCounter('gpt-4o');
let largest = 0;

for (let service = 1; service <= 100; service++) {
  trajectory.startSubgoal(`Move service-${service}`);
  for (const step of ['read', 'search', 'edit', 'test', 'commit']) {
    const request = requestOf();
    largest = Math.max(largest, counter.count(JSON.stringify(request)));
    // Here a model would be asked; what it wants done is done, and added with what came of it.
    trajectory.addAction({
      action: `${step} {"path":"services/service-${service}/log.ts"}`,
      observation: `${step} of service-${service}: ${'line of output, '.repeat(60)} port ${4_000 + service}`,
    });
  }
  // A summarizer of your own would write this one's summary: openTrajectory({ summarizer }).
  await trajectory.completeSubgoal(`service-${service} logs to port ${4_000 + service}`);
}

const { actions, tokensSeen, tokensNow } = trajectory.report();
console.log(
  `${actions} actions of ${tokensSeen} tokens; the largest request had ${largest}, the context now has ${tokensNow}.`,
);

// What the model asks of memory, by any id that stands in its context or between two of them:
console.log(await trajectory.recall('{"id":"s7"}', 120));
console.log((await trajectory.record('a33'))?.kind);

// What a restart needs beside the store and the secret:
console.log(`The state has ${JSON.stringify(trajectory.state()).length} bytes.`);

/** The form of Chat Completions; the messages fit any other, as two sides that alternate. */
function requestOf(): object {
  const { name, description, parameters } = trajectory.recallTool;
  return {
    model: 'gpt-4o',
    messages: [{ role: 'system', content: system }, ...trajectory.context().messages],
    tools: [{ type: 'function', function: { name, description, parameters } }],
  };
}
