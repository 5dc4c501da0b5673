/**
 * Reads the memory of a gateway with the official MCP client: an agent reads 12 logs through `leporello serve`, which folds them, and after it has
 * ended, `leporello mcp` gives one back. The provider is at LEPORELLO_OPENAI_URL, with OPENAI_API_KEY; the data folder is LEPORELLO_DATA. Run it
 * from a checkout: `npm run example examples/mcp.ts`.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import OpenAI from 'openai';

// In your own program, the command is 'leporello', without a path before its arguments. The default triggers fold later than these.
const command = process.execPath;
const cli = fileURLToPath(new URL('../src/cli/main.ts', import.meta.url));
const budget = 'triggers.tokenBudget={"triggerTokens":8000,"targetTokens":4000}';
const flags = ['--port', '0', '--json', '--log-level', 'warn', '--set', budget];
const gateway = spawn(command, [cli, 'serve', ...flags], { stdio: ['ignore', 'pipe', 'inherit'] });
const [line] = (await once(gateway.stdout, 'data')) as [Buffer];
const { url } = JSON.parse(line.toString()) as { url: string };

const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: process.env['OPENAI_API_KEY'] ?? 'any' });
const model = process.env['MODEL'] ?? 'gpt-4o';
const parameters = { type: 'object', properties: { service: { type: 'integer' } }, required: ['service'] };
const tools = [{ type: 'function', function: { name: 'read_log', parameters } }] as const;
const readLog = (service: number) =>
  Array.from({ length: 90 }, (_, at) => `port of worker ${at} of service ${service}: ${4_000 + at}`).join(
    '\n',
  );

const question =
  'Read the logs of services 0 to 11, one at a time. Then say the port of worker 50 of service 0.';
const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: question }];
for (let calls = true; calls; ) {
  const { choices } = await client.chat.completions.create({ model, messages, tools: [...tools] });
  const { message } = choices[0]!;
  messages.push(message);
  calls = message.tool_calls !== undefined && message.tool_calls.length > 0;
  if (!calls) console.log(message.content);
  for (const call of message.tool_calls ?? []) {
    if (call.type !== 'function') continue;
    const { service } = JSON.parse(call.function.arguments) as { service: number };
    messages.push({ role: 'tool', tool_call_id: call.id, content: readLog(service) });
  }
}
gateway.kill();
await once(gateway, 'exit');

const memory = new Client({ name: 'example', version: '1.0.0' });
const env = Object.fromEntries(Object.entries(process.env).map(([name, value]) => [name, value ?? '']));
await memory.connect(new StdioClientTransport({ command, args: [cli, 'mcp'], env }));
async function ask(name: string, args: Record<string, unknown>): Promise<string> {
  const [part] = (await memory.callTool({ name, arguments: args })).content;
  return part?.type === 'text' ? part.text : '';
}
console.log(`The receipt of the newest fold: ${await ask('list_folds', { limit: 1 })}`);
const [id] = /mem_\w+/.exec(await ask('search_memory', { query: 'worker 50 of service 0' })) ?? [];
console.log(`The memory found ${id}: ${await ask('read_memory', { id, lines: '51-52' })}`);
await memory.close();
