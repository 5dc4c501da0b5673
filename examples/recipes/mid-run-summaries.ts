/**
 * Summarizes in the middle of a run: at 22,000 tokens, everything but the system prompt, the current user message and the last tool batch becomes
 * one summary, sent as a user message. Run it from a checkout: `npm run example examples/recipes/mid-run-summaries.ts`.
 */
import { type Message, called, prose, recalls, says, startRecipe } from './play.ts';

await using gateway = await startRecipe('mid-run-summaries.json', ({ body }) => {
  const messages = body['messages'] as readonly Message[];
  const last = messages.at(-1)?.content ?? '';
  const port = /service-3 listens on port \d+/.exec(last)?.[0];
  if (!last.startsWith('Which port')) return says(port ?? 'Done.');
  // Only the originals say it, so the scripted model reads the first id of the summary.
  return recalls({ id: idsIn(messages.find(isSummary))[0], query: 'port of service-3' });
});

const demand = 'Never restart the billing service.';
const current = 'Go on with the others.';
const messages: Message[] = [
  { role: 'system', content: `You are a careful engineer. ${prose(1, 300)}` },
  { role: 'user', content: `Check every service. ${demand}` },
];
for (let service = 1; service <= 50; service++) {
  const result = `service-${service} is healthy\n${prose(service, 850)}\nservice-${service} listens on port ${4_000 + service}`;
  messages.push(...called(`call_${service}`, 'run', { command: `check service-${service}` }, result));
  const { sent, receipt } = await gateway.ask(messages);
  if (service === 10)
    messages.push({ role: 'assistant', content: 'Ten are healthy.' }, { role: 'user', content: current });
  if (receipt.trigger === undefined) continue;
  const [summary, ...others] = sent.filter(isSummary);
  console.log(`Request ${service}: ${receipt.tokensBefore} tokens before, ${receipt.tokensAfter} after.
  system prompt unchanged: ${sent[0]?.content === messages[0]?.content}
  current user message unchanged: ${sent.some(({ content }) => content === current)}
  last tool batch unchanged: ${sent.at(-1)?.content === result}
  summaries: ${1 + others.length}, as a message of the ${summary?.role}, with ids: ${idsIn(summary).length}
  the user's demand is in it: ${summary?.content?.includes(demand)}`);
}

messages.push(
  { role: 'assistant', content: 'All healthy.' },
  { role: 'user', content: 'Which port has service-3?' },
);
const { answer, receipt } = await gateway.ask(messages);
console.log(`Recalls: ${receipt.recalls.length}. The model answers: ${answer}.`);

function isSummary({ role, content }: Message): boolean {
  return role === 'user' && content?.startsWith('[Summary of ') === true;
}

function idsIn(summary: Message | undefined): readonly string[] {
  return summary?.content?.match(/mem_[\w-]+/g) ?? [];
}
