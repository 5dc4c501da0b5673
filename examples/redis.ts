/**
 * Runs one conversation through two gateways that share a Redis or Valkey server: requests alternate between them, and each repeats the folds
 * of the other. The server is at LEPORELLO_MEMORY_REDIS_HOST and _PORT (127.0.0.1 and 6379), the provider at LEPORELLO_OPENAI_URL, with
 * OPENAI_API_KEY. Run it from a checkout: `npm run example examples/redis.ts`.
 */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import OpenAI from 'openai';
import type { Receipt } from '../src/adapters/fetch.ts';

// In your own program, the command is 'leporello', without a path before its arguments. The default triggers fold later than these.
const cli = fileURLToPath(new URL('../src/cli/main.ts', import.meta.url));
const budget = 'triggers.tokenBudget={"triggerTokens":8000,"targetTokens":4000}';
const args = [cli, 'serve', '--port', '0', '--json', '--log-level', 'warn', '--set', budget];
const secret = randomBytes(32).toString('hex');
const env = { LEPORELLO_SECRET: secret, LEPORELLO_MEMORY_REDIS_HOST: '127.0.0.1', ...process.env };

async function startGateway() {
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  const { url, store } = JSON.parse(line.toString()) as { url: string; store: string };
  const apiKey = process.env['OPENAI_API_KEY'] ?? 'any';
  return { child, url, store, client: new OpenAI({ baseURL: `${url}/v1`, apiKey }) };
}
const gateways = [await startGateway(), await startGateway()];
console.log(`Stores: ${gateways.map(({ store }) => store).join(' and ')}.`);

const parameters = { type: 'object', properties: { service: { type: 'integer' } }, required: ['service'] };
const tools: OpenAI.ChatCompletionTool[] = [{ type: 'function', function: { name: 'read_log', parameters } }];
const readLog = (service: number) =>
  Array.from({ length: 90 }, (_, at) => `port of worker ${at} of service ${service}: ${4_000 + at}`).join(
    '\n',
  );

const model = process.env['MODEL'] ?? 'gpt-4o';
const question =
  'Read the logs of services 0 to 11, one at a time. Then say the port of worker 50 of service 0.';
const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: question }];
for (let turn = 0, calls = true; calls; turn++) {
  const { client, url } = gateways[turn % 2]!;
  const { data, response } = await client.chat.completions.create({ model, messages, tools }).withResponse();
  const id = response.headers.get('x-leporello-receipt');
  const receipt = (await (await fetch(`${url}/_leporello/receipts/${id}`)).json()) as Receipt;
  const { trigger = 'repeated folds', tokensBefore = 0, tokensAfter = 0 } = receipt;
  if (tokensAfter < tokensBefore)
    console.log(`Receipt of gateway ${turn % 2}: ${trigger}, ${tokensBefore} tokens → ${tokensAfter}.`);
  const { message } = data.choices[0]!;
  messages.push(message);
  calls = message.tool_calls !== undefined && message.tool_calls.length > 0;
  if (!calls) console.log(message.content);
  for (const call of message.tool_calls ?? []) {
    if (call.type !== 'function') continue;
    const { service } = JSON.parse(call.function.arguments) as { service: number };
    messages.push({ role: 'tool', tool_call_id: call.id, content: readLog(service) });
  }
}
for (const { child } of gateways) child.kill();
