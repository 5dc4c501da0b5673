/**
 * An MCP server with 40 tools for measuring and for the tool search loop: JSON-RPC over stdio, one message per line.
 * Usage: node test/clients/many-tools-server.ts. Each tool returns a code that only a call of it reveals.
 */
import { createInterface } from 'node:readline';
import { secretOf } from './secret-files.ts';

const count = 40;

const names = Array.from({ length: count }, (_, at) => `lookup_shelf_${String(at + 1).padStart(2, '0')}`);

/** Returns a tool with a description and a schema of usual length, 1.2 kB in all. */
function toolOf(name: string) {
  const shelf = name.replace('lookup_', '').replace('_', ' ');
  return {
    name,
    description: `Looks up the inventory code of an article on ${shelf} of the warehouse. Use this tool when the user asks for an article that is kept on ${shelf}, when a code has to be checked against the shelf's own list, or when a delivery note names ${shelf}. Returns one line with the code. Do not use it for articles that are kept on another shelf: each shelf has a tool of its own.`,
    inputSchema: {
      type: 'object',
      properties: {
        article: { type: 'string', description: `The article's number as it is printed on ${shelf}.` },
        include_history: {
          type: 'boolean',
          description: 'Whether to list earlier codes of the same article, newest first. Default: false.',
        },
        unit: {
          type: 'string',
          enum: ['piece', 'box', 'pallet'],
          description: 'The packing unit that the code is wanted for. A code differs between units.',
        },
        max_results: {
          type: 'integer',
          minimum: 1,
          maximum: 100,
          description: 'How many codes to return at most where an article has several. Default: 1.',
        },
      },
      required: ['article'],
    },
  };
}

type Message = {
  readonly id?: unknown;
  readonly method: string;
  readonly params?: {
    readonly protocolVersion?: string;
    readonly name?: string;
    readonly arguments?: { readonly article?: unknown };
  };
};

function resultOf({ method, params = {} }: Message): object | undefined {
  switch (method) {
    case 'initialize':
      return {
        protocolVersion: params.protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name: 'warehouse', version: '1.0.0' },
      };
    case 'ping':
      return {};
    case 'tools/list':
      return { tools: names.map(toolOf) };
    case 'tools/call': {
      const file = `${params.name} ${String(params.arguments?.article)}`;
      return { content: [{ type: 'text', text: `the secret of ${file} is ${secretOf(file)}` }] };
    }
    default:
      return undefined;
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line) as Message;
  if (message.id === undefined) continue;
  const result = resultOf(message);
  const answer = result ? { result } : { error: { code: -32601, message: `No method ${message.method}` } };
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id: message.id, ...answer })}\n`);
}
