/**
 * Folds a tool loop of the OpenAI SDK inside its `fetch`, and prints the receipt of each fold and recall. It asks the model at OPENAI_BASE_URL
 * with OPENAI_API_KEY, or OpenAI. Run it from a checkout: `npm run example examples/openai-sdk.ts`.
 */
import OpenAI from 'openai';
import { createLeporelloFetch } from '../src/adapters/fetch.ts';

// In your own program, import { createLeporelloFetch } from 'leporello/fetch'. The default triggers fold later than these.
const fetch = createLeporelloFetch({
  triggers: { tokenBudget: { triggerTokens: 8_000, targetTokens: 4_000 } },
  onReceipt(receipt) {
    if (receipt.kind !== 'request' || (receipt.trigger === undefined && receipt.recalls.length === 0)) return;
    const { trigger = 'no new fold', tokensBefore, tokensAfter, recalls } = receipt;
    console.log(`Receipt: ${trigger}, ${tokensBefore} tokens → ${tokensAfter}, recalls: ${recalls.length}.`);
  },
});
const client = new OpenAI({ fetch, apiKey: process.env['OPENAI_API_KEY'] ?? 'any' });
const model = process.env['MODEL'] ?? 'gpt-4o';

const tools: OpenAI.ChatCompletionTool[] = [
  {
    type: 'function',
    function: {
      name: 'read_log',
      description: 'Returns the log of a service.',
      parameters: { type: 'object', properties: { service: { type: 'integer' } }, required: ['service'] },
    },
  },
];
const readLog = (service: number) =>
  Array.from({ length: 90 }, (_, at) => `port of worker ${at} of service ${service}: ${4_000 + at}`).join(
    '\n',
  );

const question =
  'Read the logs of services 0 to 11, one at a time. Then say the port of worker 50 of service 0.';
const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: question }];
for (;;) {
  const { choices } = await client.chat.completions.create({ model, messages, tools });
  const { message } = choices[0]!;
  messages.push(message);
  if (!message.tool_calls?.length) {
    console.log(message.content);
    break;
  }
  for (const call of message.tool_calls) {
    if (call.type !== 'function') continue;
    const { service } = JSON.parse(call.function.arguments) as { service: number };
    messages.push({ role: 'tool', tool_call_id: call.id, content: readLog(service) });
  }
}
console.log(`The program keeps ${messages.length} messages; the recalls are not among them.`);
