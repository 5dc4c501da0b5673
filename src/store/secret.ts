/**
 * Loads the secret from which ids, tenant labels and encryption keys are derived. The environment gives it, or it is created once in the
 * data folder. The file holds text, so that it can be copied unchanged into the environment of a second gateway.
 */
import { createHmac, randomBytes, randomUUID } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { link, open, readFile, rm } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { LeporelloError } from '../errors.ts';
import type { Store } from './store.ts';

const variable = 'LEPORELLO_SECRET';
const minCharacters = 32;

export type SecretOptions = {
  /** The folder of the file `secret`; created if it does not exist. */
  readonly dataDir: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
};

/**
 * Returns LEPORELLO_SECRET, else the content of the file `secret`, else creates that file with 32 random bytes. Processes that start at
 * the same time get the same secret. Rejects with `bad-config` for a secret that is too short and for a file that cannot be read or
 * created.
 */
export async function loadSecret({ dataDir, env = process.env }: SecretOptions): Promise<Uint8Array> {
  const given = givenSecret(env);
  if (given !== undefined) {
    return secretOf(
      given,
      variable,
      'Set a longer one, or unset the variable: then a secret is created in the data folder.',
    );
  }
  const file = join(resolve(dataDir), 'secret');
  try {
    return (await read(file)) ?? (await make(resolve(dataDir), file));
  } catch (cause) {
    if (LeporelloError.isInstance(cause)) throw cause;
    const said = cause instanceof Error ? cause.message : String(cause);
    throw new LeporelloError(
      'bad-config',
      `Cannot read or create the secret file ${file}: ${said}. Let this user write there, or set ${variable} to at least ${minCharacters} characters.`,
      { cause },
    );
  }
}

/** Returns the secret in the environment. An empty variable, as compose files set it, counts as unset. */
export function givenSecret(env: Readonly<Record<string, string | undefined>>): string | undefined {
  return env[variable]?.trim() || undefined;
}

/** The key in a store for the mark of the secret that was first used with it. */
const markKey = 'secret';

/**
 * True if a store was first used with another secret, so that what it holds from then cannot be read with this one. A store without a mark gets that of this
 * secret, unless `readOnly`. Rejects with `store-failed`.
 */
export async function isOfOtherSecret(
  store: Store,
  secret: Uint8Array,
  { readOnly = false } = {},
): Promise<boolean> {
  const mark = new Uint8Array(createHmac('sha256', secret).update('leporello: mark of a store').digest());
  const entry = { key: markKey, value: mark, expiresAt: undefined };
  const found = readOnly ? await store.get(markKey) : (await store.putUnless([markKey], [entry]))?.value;
  return found !== undefined && !mark.every((byte, at) => byte === found[at]);
}

async function read(file: string): Promise<Uint8Array | undefined> {
  try {
    const remedy =
      'Restore it, or delete it: then a new secret is created, and nothing stored under the old one can be read.';
    return secretOf(await readFile(file, 'utf8'), file, remedy);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Creates the file. It is written under another name and then linked: nobody ever reads half a secret, and the first link wins. */
async function make(folder: string, file: string): Promise<Uint8Array> {
  makePrivateFolder(folder);
  const draft = `${file}.${randomUUID()}.new`;
  try {
    await writeThrough(draft, `${randomBytes(32).toString('base64url')}\n`);
    await link(draft, file).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
  } finally {
    await rm(draft, { force: true });
  }
  const made = await read(file);
  if (made === undefined) throw new Error('it was deleted right after it was created');
  return made;
}

/** Writes a file and syncs it to disk: a secret lost in a power cut would make everything stored since unreadable. */
async function writeThrough(file: string, text: string): Promise<void> {
  const handle = await open(file, 'wx', 0o600);
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Checks a secret. White space at its ends does not count: files and orchestrators often add a line feed. */
function secretOf(text: string, where: string, remedy: string): Uint8Array {
  const secret = text.trim();
  if (secret.length >= minCharacters) return new TextEncoder().encode(secret);
  throw new LeporelloError(
    'bad-config',
    `${where} has ${secret.length} characters; it needs at least ${minCharacters}. ${remedy}`,
  );
}

/**
 * Creates a folder and those above it; one that exists stays as it is. Throws the system's error. Node's own `recursive` never returns where the
 * system says of an existing folder that it does not exist, as in /proc.
 */
export function makePrivateFolder(folder: string): void {
  if (tryToMake(folder) !== 'no parent') return;
  makePrivateFolder(dirname(folder));
  mkdirSync(folder, { mode: 0o700 });
}

function tryToMake(folder: string): 'exists' | 'no parent' {
  try {
    mkdirSync(folder, { mode: 0o700 });
    return 'exists';
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'EEXIST') return 'exists';
    if (code === 'ENOENT' && dirname(folder) !== folder) return 'no parent';
    throw error;
  }
}
