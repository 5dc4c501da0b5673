/** Writes files for people: everything of a failed loop and, on demand, request bodies to make fixtures from. */
import { appendFile, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { clientsFolder } from './install.ts';
import { offeredTools } from './offered-tools.ts';
import type { Evidence } from './judge.ts';
import { isObject, parseJson } from '../support/fake-provider/json.ts';

/** Writes the evidence of a failed loop and resolves to the folder. */
export async function writeFailure(
  name: string,
  { runs, exchanges, sent, receipts }: Evidence,
): Promise<string> {
  const folder = join(clientsFolder, 'failed', name);
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  const output = runs.map(({ stdout, stderr }) => `${stdout}\n--- standard error\n${stderr}\n`);
  await writeFile(join(folder, 'output.txt'), output.join('\n--- next run\n'));
  await writeFile(join(folder, 'client-to-gateway.jsonl'), lines(exchanges));
  const decoded = sent.map(({ body, ...rest }) => ({ ...rest, body: new TextDecoder().decode(body) }));
  await writeFile(join(folder, 'gateway-to-provider.jsonl'), lines(decoded));
  await writeFile(join(folder, 'receipts.jsonl'), lines(receipts));
  return folder;
}

const lines = (list: readonly unknown[]) => list.map((one) => `${JSON.stringify(one)}\n`).join('');

/** Writes the first and the last request with tools of a loop as files, and a line for each in `index.jsonl`. */
export async function writeBodies(folder: string, name: string, { exchanges }: Evidence): Promise<void> {
  await mkdir(folder, { recursive: true });
  const calls = exchanges.filter(({ method, request }) => {
    const body = method === 'POST' ? parseJson(Buffer.from(request)) : undefined;
    return isObject(body) && offeredTools(body).length > 0;
  });
  const chosen = [calls[0], calls.at(-1)].filter((call) => call !== undefined);
  for (const [at, { method, target, headers, request }] of chosen.entries()) {
    const file = `${name}-${at + 1}.json`;
    await writeFile(join(folder, file), request);
    await appendFile(join(folder, 'index.jsonl'), `${JSON.stringify({ file, method, target, headers })}\n`);
  }
}
