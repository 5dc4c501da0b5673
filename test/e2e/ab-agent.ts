/**
 * A scripted agent for the test of `leporello bench-ab`: asks the model, runs the calls of its tools, and repeats until the model says that it is done. It exits
 * with 0 if the model says SOLVED. A refused request is sent once more.
 */
type ToolCall = {
  readonly id: string;
  readonly function: { readonly name: string; readonly arguments: string };
};
type AgentMessage = {
  readonly role: string;
  readonly content?: string | null;
  readonly tool_calls?: readonly ToolCall[];
  readonly tool_call_id?: string;
};

const [task = ''] = process.argv.slice(2);
const url = `${process.env['OPENAI_BASE_URL']}/chat/completions`;
const tools = ['read', 'edit'].map((name) => ({
  type: 'function',
  function: { name, description: `Tool ${name}.`, parameters: { type: 'object' } },
}));
const messages: AgentMessage[] = [
  { role: 'system', content: 'You solve tasks.' },
  { role: 'user', content: `Solve ${task}.` },
];

async function ask(attempts: number): Promise<AgentMessage> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer dummy' },
    body: JSON.stringify({ model: 'gpt-4o', messages, tools }),
  });
  if (response.ok) {
    const { choices } = (await response.json()) as { choices: readonly { message: AgentMessage }[] };
    return choices[0]!.message;
  }
  await response.arrayBuffer();
  return attempts > 1 ? ask(attempts - 1) : { role: 'assistant', content: 'GIVEN UP' };
}

function resultOf({ function: { name, arguments: input } }: ToolCall): string {
  if (name === 'edit') return 'String to replace not found in file.';
  const lines = Array.from(
    { length: 150 },
    (_, line) => `${input} line ${line} of the file, value ${(line * 7919) % 10007}`,
  );
  return lines.join('\n');
}

process.exitCode = 1;
for (let step = 0; step < 30; step++) {
  const reply = await ask(2);
  messages.push(reply);
  if (!reply.tool_calls) {
    if (reply.content === 'SOLVED') process.exitCode = 0;
    break;
  }
  for (const call of reply.tool_calls)
    messages.push({ role: 'tool', tool_call_id: call.id, content: resultOf(call) });
}
