/**
 * Makes the pictures of docs/page.md: Claude Code and Codex run at once under `leporello wrap`, on one gateway, until both have folded and recalled;
 * then a browser opens its page.
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import { startBrowser } from '../browser/browser.ts';
import { startFakeProvider } from '../support/fake-provider/fake-provider.ts';
import { freePort } from '../support/free-port.ts';
import { clientsFolder, install, path } from './install.ts';
import { type Loop, plainLoop, type Sizes, sizesOf, stepsOf } from './loops.ts';
import { runClient } from './run-client.ts';
import { scriptedModel } from './scripted-model.ts';
import { contentOf } from './secret-files.ts';
import { keepGateway, playUnderWrap, receiptsOf, wrappedClients } from './wrapped.ts';

const names = ['claude', 'codex'] as const;

/** Writes the pictures below `target`. Resolves with what each client's wrap said last. Rejects if a client failed. */
export async function takePictures(target: string): Promise<readonly string[]> {
  const runs = [];
  for (const name of names) runs.push(await prepared(name));
  const home = await mkdtemp(join(clientsFolder, 'pictures-'));
  const port = await freePort();
  const over = new AbortController();
  try {
    const config = join(home, 'leporello.json');
    const [claude, codex] = runs;
    await writeFile(
      config,
      JSON.stringify({
        port,
        anthropicUrl: claude!.provider.url,
        openaiUrl: codex!.provider.url,
        models: Object.fromEntries(runs.map(({ model, loop }) => [model, { maxInputTokens: loop.window }])),
        calibrate: false,
        shrinks: false,
        triggers: { windowFraction: { targetShare: Math.max(...runs.map(({ loop }) => loop.foldTo)) } },
        limits: { prepareDeadlineMs: 600_000, storeDeadlineMs: 60_000 },
      }),
    );
    const keeping = keepGateway(port, over.signal);
    const closings = await Promise.all(runs.map((run) => played(run, home, config)));
    over.abort();
    const hold = await keeping;
    if (!hold) throw new Error('The gateway of the two clients did not run.');
    await writePictures(`http://127.0.0.1:${port}`, await receiptsOf(port), target);
    hold.release();
    return closings;
  } finally {
    over.abort();
    for (const { provider } of runs) await provider.close();
    await rm(home, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Measures a client in the loop that fits, and starts the provider of the loop that does not. */
async function prepared(name: (typeof names)[number]) {
  const one = wrappedClients.find((known) => known.name === name)!;
  const command = await install(one.client);
  const { problems, receipts } = await playUnderWrap(one, command, plainLoop, await freePort());
  if (problems.length > 0) throw new Error(`${name}: ${problems.join('; ')}`);
  const loop = longLoop(sizesOf(receipts));
  const folder = await mkdtemp(join(tmpdir(), 'shop-'));
  const steps = stepsOf(loop);
  for (const file of steps.flatMap(({ read = [] }) => read))
    await writeFile(join(folder, file), contentOf(file, loop.tokensPerFile));
  const provider = await startFakeProvider({ script: scriptedModel(steps, folder, true).script });
  const model = receipts.findLast(({ model: used }) => used !== undefined)!.model!;
  return { name, one, command, loop, folder, provider, model };
}

type PreparedRun = Awaited<ReturnType<typeof prepared>>;

/** Returns a loop of 60 files whose window overflows at sixteen and keeps four after a fold, with two recalls. */
function longLoop({ prompt, file }: Sizes): Loop {
  const tokensPerFile = 2_000;
  const takes = (tokensPerFile / file.of) * file.takes;
  const window = (prompt + 16 * takes) / 0.85;
  const files = Array.from({ length: 60 }, (_, at) => `part-${String(at + 1).padStart(2, '0')}.log`);
  const reads = files.map((name) => ({ read: [name] }));
  const steps = [
    ...reads.slice(0, 26),
    { recall: files[2]! },
    ...reads.slice(26, 46),
    { recall: files[7]! },
    ...reads.slice(46),
    { answer: [files[2]!, files[7]!, files[59]!] },
  ];
  return {
    name: 'folded',
    sessions: [{ task: 'Read the log files of the shop and tell me their secrets.', steps }],
    tokensPerFile,
    window: Math.round(window),
    foldTo: (prompt + 4 * takes) / window,
  };
}

/** Runs a client under wrap. Resolves with the line that the wrap ends with. */
async function played(
  { name, one, command, loop, folder }: PreparedRun,
  home: string,
  config: string,
): Promise<string> {
  const { args, env, files = {} } = one.setup(loop.sessions[0]!.task);
  const own = join(home, name);
  await mkdir(own);
  const run = await runClient(
    process.execPath,
    {
      args: [resolve('src/cli/main.ts'), 'wrap', name, '--config', config, '--', ...args],
      env: {
        ...env,
        PATH: [dirname(command), path].join(delimiter),
        LEPORELLO_DATA: join(home, 'data'),
      },
      files,
    },
    { home: own, folder },
  );
  await rm(folder, { recursive: true, force: true });
  const closing = /^leporello: (\d.*)$/m.exec(run.stderr)?.[1];
  if (run.code === 0 && closing !== undefined && / folds?, 2 recalls/.test(closing))
    return `${name}: ${closing}`;
  throw new Error(`${name} ended with ${run.code}: ${run.stdout.slice(-600)}\n${run.stderr.slice(-1_200)}`);
}

type Receipts = Awaited<ReturnType<typeof receiptsOf>>;

async function writePictures(url: string, receipts: Receipts, target: string): Promise<void> {
  const folded = receipts.find(
    ({ model, steps }) => model?.startsWith('claude') && steps.some(({ edits }) => edits > 0),
  )!;
  const looks = [
    { name: 'requests', path: '/_leporello/', look: {} },
    { name: 'fold', path: `/_leporello/requests/${folded.id}`, look: {} },
    {
      name: 'session-dark',
      path: `/_leporello/sessions/${encodeURIComponent(folded.session!)}`,
      look: { isDark: true },
    },
    { name: 'phone', path: '/_leporello/', look: { width: 400, height: 860 } },
  ];
  await mkdir(target, { recursive: true });
  await using browser = await startBrowser();
  for (const { name, path: place, look } of looks) {
    const { page, errors } = await browser.open({ height: 860, ...look });
    await page.goto(url + place);
    // The list follows live requests; the other pages have no such mark.
    if (place.endsWith('/_leporello/')) await page.locator('#state.on').waitFor();
    if (errors.length > 0) throw new Error(`${place}: ${errors.join('; ')}`);
    const session = await page.context().newCDPSession(page);
    const { data } = await session.send('Page.captureScreenshot', { format: 'webp', quality: 82 });
    await writeFile(join(target, `${name}.webp`), Buffer.from(data, 'base64'));
    await page.context().close();
  }
}
