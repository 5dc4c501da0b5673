/** Builds a chat request like those of coding agents: many tool calls with results. Its bytes are the same in every run. */

/** About the bytes of one call with its result. */
const turnBytes = 4_450;

/**
 * Returns a body of about `size` bytes and the byte offset of its turn number of eight digits. Another number changes only the last message.
 */
export function chatBody(size: number): { readonly bytes: Uint8Array; readonly counterAt: number } {
  const messages: unknown[] = [
    { role: 'system', content: 'You are a careful engineer. '.repeat(100) },
    { role: 'user', content: 'Find out why the nightly build is red.' },
  ];
  for (let turn = 0; turn < size / turnBytes; turn += 1) {
    const id = `call_${turn}`;
    const call = { name: 'run', arguments: JSON.stringify({ command: `cat logs/${turn}.log` }) };
    messages.push({
      role: 'assistant',
      content: null,
      tool_calls: [{ id, type: 'function', function: call }],
    });
    messages.push({ role: 'tool', tool_call_id: id, content: logOf(turn) });
  }
  messages.push({ role: 'assistant', content: 'The cause is not in these.' });
  messages.push({ role: 'user', content: 'Go on with 00000000.' });
  const tools = [
    { type: 'function', function: { name: 'run', parameters: { type: 'object', properties: {} } } },
  ];
  const text = JSON.stringify({ model: 'gpt-4.1', messages, tools });
  return { bytes: new TextEncoder().encode(text), counterAt: text.indexOf('00000000') };
}

function logOf(turn: number): string {
  const lines: string[] = [];
  for (let line = 0; line < 62; line += 1) {
    const id = ((turn * 62 + line) * 2_654_435_761) >>> 0;
    lines.push(
      `2026-01-01T00:00:${line} INFO worker-${id % 97} "job ${id.toString(36)}" took ${id % 1000} ms\tok`,
    );
  }
  return lines.join('\n');
}
