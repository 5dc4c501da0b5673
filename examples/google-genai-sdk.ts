/**
 * Folds a tool loop of the Google GenAI SDK inside its `fetch`, and prints the receipt of each fold and recall. It asks the model at
 * GOOGLE_GEMINI_BASE_URL with GEMINI_API_KEY, or Google. Run it from a checkout: `npm run example examples/google-genai-sdk.ts`.
 */
import { type Content, GoogleGenAI, type Part } from '@google/genai';
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
const client = new GoogleGenAI({ apiKey: process.env['GEMINI_API_KEY'] ?? 'any', httpOptions: { fetch } });
const model = process.env['MODEL'] ?? 'gemini-3-pro';

const tool = {
  name: 'read_log',
  description: 'Returns the log of a service.',
  parametersJsonSchema: {
    type: 'object',
    properties: { service: { type: 'integer' } },
    required: ['service'],
  },
};
const readLog = (service: number) =>
  Array.from({ length: 90 }, (_, at) => `port of worker ${at} of service ${service}: ${4_000 + at}`).join(
    '\n',
  );

const question =
  'Read the logs of services 0 to 11, one at a time. Then say the port of worker 50 of service 0.';
const contents: Content[] = [{ role: 'user', parts: [{ text: question }] }];
for (;;) {
  const config = { tools: [{ functionDeclarations: [tool] }] };
  const { candidates } = await client.models.generateContent({ model, contents, config });
  const parts = candidates?.[0]?.content?.parts ?? [];
  contents.push({ role: 'model', parts });
  const results = parts.flatMap(({ functionCall }): Part[] => {
    if (functionCall === undefined) return [];
    const { id, name = '', args } = functionCall;
    const response = { output: readLog(Number(args?.['service'])) };
    return [{ functionResponse: { ...(id !== undefined && { id }), name, response } }];
  });
  if (results.length === 0) {
    console.log(parts.map(({ text = '' }) => text).join(''));
    break;
  }
  contents.push({ role: 'user', parts: results });
}
console.log(`The program keeps ${contents.length} contents; the recalls are not among them.`);
