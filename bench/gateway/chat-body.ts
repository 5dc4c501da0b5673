/** Builds chat requests like those of coding agents: many tool calls with results. Their bytes are the same in every run. */

/** About the bytes of one call with its result. */
const turnBytes = 4_450;

/** Writes the turn into a body, and returns it: it is valid until the next call. */
export type NextBody = (turn: number) => Uint8Array;

/** Returns bodies of about `size` bytes that differ in the number in their last message. All are of one conversation. */
export function rewrittenBodies(size: number): NextBody {
  const text = textOf(size, 0, 'Go on with 00000000.');
  const bytes = encoder.encode(text);
  const at = text.indexOf('00000000');
  return (turn) => {
    encoder.encodeInto(String(turn).padStart(8, '0'), bytes.subarray(at, at + 8));
    return bytes;
  };
}

/** A conversation goes back to its beginning after so many requests, so that its bodies keep about their size. */
const turnsPerStart = 8;

/**
 * Returns the bodies of one conversation of about `size` bytes, each of which repeats the one before and adds a call with a result of 1.5 kB. `conversation`
 * is its number: each has its own task and results.
 */
export function growingBodies(size: number, conversation: number): NextBody {
  const text = textOf(size, conversation, 'Go on.');
  const end = text.lastIndexOf('],"tools"');
  const [head, tail] = [encoder.encode(text.slice(0, end)), encoder.encode(text.slice(end))];
  const bytes = new Uint8Array(text.length + turnsPerStart * 2 * turnBytes);
  bytes.set(head);
  let turns = 0;
  let length = head.length;
  return (turn) => {
    if (turns === turnsPerStart) [turns, length] = [0, head.length];
    turns += 1;
    for (const message of callWithLog(turn + 1_000_000, 20))
      length += encoder.encodeInto(`,${JSON.stringify(message)}`, bytes.subarray(length)).written;
    bytes.set(tail, length);
    return bytes.subarray(0, length + tail.length);
  };
}

const encoder = new TextEncoder();

/** The texts of bodies that were built: a benchmark sends the same ones in each round, and 16 of 2 MB take 0.2 s. */
const texts = new Map<string, string>();

function textOf(size: number, conversation: number, ask: string): string {
  const key = `${size} ${conversation} ${ask}`;
  const text =
    texts.get(key) ?? bodyText([...messagesOf(size, conversation), { role: 'user', content: ask }]);
  texts.set(key, text);
  return text;
}

function messagesOf(size: number, conversation: number): readonly object[] {
  const task = conversation === 0 ? 'nightly build' : `build ${conversation}`;
  const messages: object[] = [
    { role: 'system', content: 'You are a careful engineer. '.repeat(100) },
    { role: 'user', content: `Find out why the ${task} is red.` },
  ];
  for (let turn = 0; turn < size / turnBytes; turn += 1)
    messages.push(...callWithLog(turn + 1_000 * conversation, 62));
  return [...messages, { role: 'assistant', content: 'The cause is not in these.' }];
}

function bodyText(messages: readonly object[]): string {
  const tools = [
    { type: 'function', function: { name: 'run', parameters: { type: 'object', properties: {} } } },
  ];
  return JSON.stringify({ model: 'gpt-4.1', messages, tools });
}

function callWithLog(turn: number, lines: number): readonly object[] {
  const id = `call_${turn}`;
  const call = { name: 'run', arguments: JSON.stringify({ command: `cat logs/${turn}.log` }) };
  return [
    { role: 'assistant', content: null, tool_calls: [{ id, type: 'function', function: call }] },
    { role: 'tool', tool_call_id: id, content: logOf(turn, lines) },
  ];
}

function logOf(turn: number, count: number): string {
  const lines: string[] = [];
  for (let line = 0; line < count; line += 1) {
    const id = ((turn * 62 + line) * 2_654_435_761) >>> 0;
    lines.push(
      `2026-01-01T00:00:${line} INFO worker-${id % 97} "job ${id.toString(36)}" took ${id % 1000} ms\tok`,
    );
  }
  return lines.join('\n');
}
