/** Detects a recall tool that a client could see. Pure. */
import { isObject } from '../support/fake-provider/json.ts';
import type { Exchange } from './tap.ts';

/**
 * Returns true if the exchange mentions the recall tool. The tools that a response repeats from the sent request do not count, because no
 * client here reads them.
 */
export function sawRecall({ request, response }: Exchange): boolean {
  const received = response
    .split('\n')
    .map((line) => withoutRepeatedTools(line.replace(/^data: /, '')))
    .join('\n');
  return `${request}${received}`.includes('read_memory');
}

function withoutRepeatedTools(line: string): string {
  if (!line.startsWith('{')) return line;
  return JSON.stringify(JSON.parse(line), (key, value: unknown) =>
    key === 'response' && isObject(value) ? { ...value, tools: undefined } : value,
  );
}
