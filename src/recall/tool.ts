/**
 * Defines the tool by which the model recalls originals. It is sent with every request, so every word of it is paid for each
 * turn; and it must never change within a conversation, or the cached prefix is lost. Pure.
 */
import type { RecallTool } from '../codecs/codec.ts';

const usualName = 'read_memory';

/**
 * Returns the tool under a name that the client does not use: `read_memory`, else `leporello_read_memory`, else that with `_2`,
 * `_3`. The same names give the same tool. A `query` without an id is possible where the stubs of the conversation are known.
 */
export function recallToolFor(
  takenNames: readonly string[],
  by: 'id' | 'id or query' = 'id or query',
): RecallTool {
  const name = freeName(new Set(takenNames));
  return by === 'id'
    ? { name, description, parameters: { ...parameters, required: ['id'] } }
    : { name, description: `${description}; query without id searches all`, parameters };
}

const description = 'Reads what a stub stands for, or a part: lines 10-40, path $.a[0]';

const text = { type: 'string' } as const;

// Plain types and no defaults, so that strict and lax providers accept it alike; arguments are read leniently.
const parameters = {
  type: 'object',
  properties: { id: text, query: text, lines: text, path: text },
} as const;

function freeName(taken: ReadonlySet<string>): string {
  if (!taken.has(usualName)) return usualName;
  const own = `leporello_${usualName}`;
  let name = own;
  for (let number = 2; taken.has(name); number++) name = `${own}_${number}`;
  return name;
}
