/** Whether a client was told of the private tool. Pure. */
import { isObject } from '../support/fake-provider/json.ts';
import type { Exchange } from './tap.ts';

/**
 * In anything it said or heard, but for the list of tools that a response repeats from the request as it was sent: no client here
 * reads that.
 */
export function sawRecall({ request, response }: Exchange): boolean {
  const heard = response
    .split('\n')
    .map((line) => withoutRepeatedTools(line.replace(/^data: /, '')))
    .join('\n');
  return `${request}${heard}`.includes('read_memory');
}

function withoutRepeatedTools(line: string): string {
  if (!line.startsWith('{')) return line;
  return JSON.stringify(JSON.parse(line), (key, value: unknown) =>
    key === 'response' && isObject(value) ? { ...value, tools: undefined } : value,
  );
}
