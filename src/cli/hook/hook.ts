/**
 * Implements `leporello hook`: the post-tool hook of an agent CLI. It reads a tool result from standard input, stores the original, and
 * prints a reply with a smaller text. Whatever goes wrong, the client keeps the result that it has.
 */
import { mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { text as textOf } from 'node:stream/consumers';
import { mayLose } from '../../arrival/kind.ts';
import { shrink } from '../../arrival/shrink.ts';
import { type JsonRecord, parseRecord } from '../../conversation/json-scan.ts';
import { LeporelloError } from '../../errors.ts';
import { isFileContent, isSearch } from '../../outline/files-shown.ts';
import { commandIn, isListingCall } from '../../outline/outcome.ts';
import { kindOf, pathIn } from '../../outline/step-line.ts';
import { createEncryptedStore } from '../../store/encrypted-store.ts';
import type { HookArgs } from '../command-args.ts';
import { loadConfig } from '../config/load-config.ts';
import { homeOf, ownCommand, quoted } from '../home.ts';
import { openStore } from '../open-store.ts';
import type { Environment, Terminal } from '../terminal.ts';
import { parsedJson, readSettings } from '../wrap/read-settings.ts';
import { type HookContract, type HookedResult, type HookReply, hookContracts } from './contracts.ts';

/** UTF-16 units of a result below which a hook does nothing. */
const minLength = 2_000;

/** The share of a result that the new text may have at most, so that the note and the reader's effort pay. */
const maxShare = 0.9;

/** The tenant of a gateway on this machine. */
const tenant = 'local';

/** Runs the command. Resolves with the exit code, which is 0 also when the result stays as it is. */
export async function hook(args: HookArgs, terminal: Terminal): Promise<number> {
  if (args.print) return printEntry(args, terminal);
  const payload = parseRecord(await textOf(terminal.input()));
  if (payload === undefined)
    throw new LeporelloError(
      'bad-usage',
      'hook needs the JSON of a tool call on standard input. An agent CLI runs it: see leporello hook --help.',
    );
  await terminal.out(`${await answerTo(payload, args, terminal)}\n`);
  return 0;
}

/** Returns the JSON that the client reads; an empty object if the result stays as it is. */
async function answerTo(payload: JsonRecord, args: HookArgs, terminal: Terminal): Promise<string> {
  try {
    const contract = hookContracts[args.client];
    const result = contract.read(payload);
    const isOpen = result && mayShrink(result) && !isKept(contract, result, terminal.env);
    const reply = isOpen ? await shrunkReply(result, args, terminal) : undefined;
    if (reply?.file) await writeShown(reply.file);
    return JSON.stringify(reply?.json ?? {});
  } catch (error) {
    // JSON.parse reads values that are nested more deeply than the stack allows others to follow.
    if (error instanceof RangeError) return '{}';
    throw error;
  }
}

/** True unless the call read or searched, is our own, or failed. */
function mayShrink({ tool, input, text }: HookedResult): boolean {
  if (text.length < minLength || !mayLose(text)) return false;
  const sent = parseRecord(input) ?? {};
  const call = { name: tool, input };
  if (isFileContent(call) || isSearch(tool) || isListingCall(kindOf(tool, sent, pathIn(sent)), sent))
    return false;
  const isOwn =
    /read_memory|search_memory|list_folds/.test(tool) ||
    /leporello(?:(?!leporello).)* recall /.test(commandIn(sent) ?? '');
  return !isOwn;
}

/** True if settings of the user or of the project keep the client from showing another text. */
function isKept({ file, isKeptBy }: HookContract, { folder = '.' }: HookedResult, env: Environment): boolean {
  if (!isKeptBy) return false;
  const own = file(homeOf(env) ?? '/', env);
  const settings = [own, join(folder, basename(dirname(own)), basename(own))];
  return settings.some((path) => isKeptBy(parsedJson(readSettings(path)) ?? {}));
}

/** Writes a text for the client to read, in a folder of ours, and removes the texts that it has read. */
async function writeShown({ path, text }: NonNullable<HookReply['file']>): Promise<void> {
  const folder = dirname(path);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  for (const name of await readdir(folder)) {
    const file = join(folder, name);
    const { mtimeMs } = await stat(file).catch(() => ({ mtimeMs: Date.now() }));
    if (/^mem_\w+\.txt$/.test(name) && Date.now() - mtimeMs > keepShownMs) await rm(file, { force: true });
  }
  await writeFile(path, text, { mode: 0o600 });
}

/** Milliseconds after which a client has read a text for certain. */
const keepShownMs = 600_000;

async function shrunkReply(
  { text, replyWith }: HookedResult,
  args: HookArgs,
  terminal: Terminal,
): Promise<HookReply | undefined> {
  const { config, dataDir } = await loadConfig(args.settings, terminal);
  if (!config.shrinks) return undefined;
  const shrunk = shrink(text, config.shrinks);
  if (shrunk === undefined || shrunk.text.length > text.length * maxShare) return undefined;
  const memory = await openStore(dataDir, terminal.env, config);
  try {
    const encryptedStore = createEncryptedStore(memory);
    const original = new TextEncoder().encode(JSON.stringify(text));
    const id = encryptedStore.idOf(tenant, original);
    await encryptedStore.keep(tenant, [{ id, original }]);
    const kept = await encryptedStore.recall(tenant, id);
    if (kept.status !== 'found' || !Buffer.from(kept.original).equals(original))
      throw new LeporelloError(
        'store-failed',
        `The original ${id} could not be read back, so the result stays as it is.`,
      );
    const note = hookNote({ characters: text.length, memory: id, recall: recallCommand(args, terminal) });
    return replyWith(`${shrunk.text.trimEnd()}\n${note}`, id);
  } finally {
    await memory.store.close();
  }
}

/** Ends a result that a hook shortened. The model can run the command, or call the tool of `leporello mcp`. */
export function hookNote(shrunk: {
  readonly characters: number;
  readonly memory: string;
  readonly recall: string;
}): string {
  const { characters, memory, recall } = shrunk;
  return `[Shortened from ${characters} characters. To read it again run ${recall} ${memory}, or call read_memory with ${JSON.stringify({ id: memory })} if you have that tool.]`;
}

function recallCommand(args: HookArgs, terminal: Terminal): string {
  return [ownCommand, 'recall', ...placeFlags(args, terminal)].join(' ');
}

/** Returns the flags with which a process in another folder finds the same store. */
function placeFlags({ settings: { file, values } }: HookArgs, { cwd }: Terminal): readonly string[] {
  const own = file === undefined ? [] : [['--config', file] as const];
  return [...own, ...values.map(({ flag, text }) => [flag, text] as const)].flatMap(([flag, path]) => [
    flag,
    quoted(resolve(cwd, path)),
  ]);
}

async function printEntry(args: HookArgs, terminal: Terminal): Promise<number> {
  const { title, file, entry, note } = hookContracts[args.client];
  const place = file(homeOf(terminal.env) ?? '~', terminal.env);
  const run = [ownCommand, 'hook', args.client, ...placeFlags(args, terminal)].join(' ');
  // Without Leporello, the entry does nothing.
  const command = `command -v ${ownCommand} >/dev/null || exit 0; ${run}`;
  const content = entry(command);
  if (args.json) {
    await terminal.out(`${JSON.stringify({ file: place, entry: content })}\n`);
    return 0;
  }
  const intro = `Put this into ${place} of ${title}, beside what is there:\n\n`;
  const notes = [
    ...(note === undefined ? [] : [note]),
    `To let the model read originals as a tool, add the MCP server ${[ownCommand, 'mcp', ...placeFlags(args, terminal)].join(' ')}.`,
    `Nothing was written. ${ownCommand} off removes the entry again.`,
  ];
  await terminal.out(`${intro}${JSON.stringify(content, null, 2)}\n\n${notes.join('\n')}\n`);
  return 0;
}
