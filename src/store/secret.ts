/**
 * The one secret that ids, tenant labels and encryption come from: given by the environment, or made once and kept in the
 * data folder. The file holds text, so that it can be copied into the environment of a second gateway as it is.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { link, mkdir, open, readFile, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { LeporelloError } from '../errors.ts';

const variable = 'LEPORELLO_SECRET';
const leastCharacters = 32;

export type SecretOptions = {
  /** The folder of the file `secret`; made when it is not there. */
  readonly dataDir: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
};

/**
 * LEPORELLO_SECRET, or else the file `secret`, or else a new file with 32 random bytes. Processes that start at once get the
 * same. Rejects with `bad-config` for a secret that is too short and for a file that cannot be read or made.
 */
export async function loadSecret({ dataDir, env = process.env }: SecretOptions): Promise<Uint8Array> {
  const given = givenSecret(env);
  if (given !== undefined) {
    return secretOf(given, variable, 'Set a longer one, or unset it to have one made in the data folder.');
  }
  const file = join(resolve(dataDir), 'secret');
  try {
    return (await read(file)) ?? (await make(resolve(dataDir), file));
  } catch (cause) {
    if (LeporelloError.isInstance(cause)) throw cause;
    const said = cause instanceof Error ? cause.message : String(cause);
    throw new LeporelloError(
      'bad-config',
      `The secret ${file} can be neither read nor made: ${said}. Give this user the right to write there, or set ${variable} to at least ${leastCharacters} characters.`,
      { cause },
    );
  }
}

/** The secret that the environment gives. An empty variable, as compose files set it, is one that is not set. */
export function givenSecret(env: Readonly<Record<string, string | undefined>>): string | undefined {
  return env[variable]?.trim() || undefined;
}

async function read(file: string): Promise<Uint8Array | undefined> {
  try {
    const remedy =
      'Restore it, or delete it to have a new one made; what was kept under the old one cannot be read then.';
    return secretOf(await readFile(file, 'utf8'), file, remedy);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Written whole under another name, then linked: nobody ever reads half a secret, and the first one to link wins. */
async function make(folder: string, file: string): Promise<Uint8Array> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
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
  if (made === undefined) throw new Error('it was deleted as soon as it was made');
  return made;
}

/** On the disk before it is used: a secret lost to a power cut would make everything kept since unreadable. */
async function writeThrough(file: string, text: string): Promise<void> {
  const handle = await open(file, 'wx', 0o600);
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Blanks at the ends do not count: files and orchestrators like to add a line feed. */
function secretOf(text: string, where: string, remedy: string): Uint8Array {
  const secret = text.trim();
  if (secret.length >= leastCharacters) return new TextEncoder().encode(secret);
  throw new LeporelloError(
    'bad-config',
    `${where} has ${secret.length} characters: it needs at least ${leastCharacters}. ${remedy}`,
  );
}
