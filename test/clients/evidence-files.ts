/** Writes what a client sent, for people: everything of a loop that failed, and on demand request bodies to make fixtures of. */
import { appendFile, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { workshop } from './install.ts';
import { offeredTools } from './offered-tools.ts';
import type { Evidence } from './judge.ts';
import { isObject, parseJson } from '../support/fake-provider/json.ts';

/** Resolves to the folder. */
export async function writeFailure(
  name: string,
  { runs, exchanges, sent, receipts }: Evidence,
): Promise<string> {
  const folder = join(workshop, 'failed', name);
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  const output = runs.map(({ stdout, stderr }) => `${stdout}\n--- standard error\n${stderr}\n`);
  await writeFile(join(folder, 'output.txt'), output.join('\n--- next run\n'));
  await writeFile(join(folder, 'client-to-gateway.jsonl'), lines(exchanges));
  const told = sent.map(({ body, ...rest }) => ({ ...rest, body: new TextDecoder().decode(body) }));
  await writeFile(join(folder, 'gateway-to-provider.jsonl'), lines(told));
  await writeFile(join(folder, 'receipts.jsonl'), lines(receipts));
  return folder;
}

const lines = (list: readonly unknown[]) => list.map((one) => `${JSON.stringify(one)}\n`).join('');

/** The first and the last request of a loop that offer tools, as files, and a line for each in `index.jsonl`. */
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
