/**
 * Folds a tool loop of the Anthropic SDK inside its `fetch`, and prints the receipt of each fold and recall. It asks the model at
 * ANTHROPIC_BASE_URL with ANTHROPIC_API_KEY, or Anthropic. Run it from a checkout: `npm run example examples/anthropic-sdk.ts`.
 */
import Anthropic from '@anthropic-ai/sdk';
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
const client = new Anthropic({ fetch, apiKey: process.env['ANTHROPIC_API_KEY'] ?? 'any' });
const model = process.env['MODEL'] ?? 'claude-sonnet-5';

const tools: Anthropic.Tool[] = [
  {
    name: 'read_log',
    description: 'Returns the log of a service.',
    input_schema: { type: 'object', properties: { service: { type: 'integer' } }, required: ['service'] },
  },
];
const readLog = (service: number) =>
  Array.from({ length: 90 }, (_, at) => `port of worker ${at} of service ${service}: ${4_000 + at}`).join(
    '\n',
  );

const question =
  'Read the logs of services 0 to 11, one at a time. Then say the port of worker 50 of service 0.';
const messages: Anthropic.MessageParam[] = [{ role: 'user', content: question }];
for (;;) {
  const { content } = await client.messages.create({ model, max_tokens: 1_000, messages, tools });
  messages.push({ role: 'assistant', content });
  const results = content.flatMap((block): Anthropic.ToolResultBlockParam[] => {
    if (block.type !== 'tool_use') return [];
    const { service } = block.input as { service: number };
    return [{ type: 'tool_result', tool_use_id: block.id, content: readLog(service) }];
  });
  if (results.length === 0) {
    console.log(content.map((block) => (block.type === 'text' ? block.text : '')).join(''));
    break;
  }
  messages.push({ role: 'user', content: results });
}
console.log(`The program keeps ${messages.length} messages; the recalls are not among them.`);
