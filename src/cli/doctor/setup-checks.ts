/** Checks of `leporello doctor` on this machine: Node, data folder, secret, store, upstreams and proxies. Each only reads. */
import { once } from 'node:events';
import { access, constants, open, stat, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { LeporelloError } from '../../errors.ts';
import { defaultUpstreams, providers } from '../../gateway/routing/routes.ts';
import { givenSecret, isOfOtherSecret, loadSecret } from '../../store/secret.ts';
import { sqliteStore } from '../../store/sqlite/sqlite.ts';
import type { Store } from '../../store/store.ts';
import type { Config } from '../config/schema.ts';
import { storeFile } from '../../store/data-folder.ts';
import { runtimeProblem } from '../home.ts';
import { type StoreConfig, storeOptionsIn, storeServer } from '../open-store.ts';
import type { Environment } from '../terminal.ts';

/** Everything outside of this process that the checks ask. Tests replace it. */
export type DoctorDeps = {
  readonly nodeVersion: string;
  /** Resolves when a connection to the URL's host can be made, with TLS for https. Rejects with the system's error. */
  readonly reach: (url: string, deadlineMs: number) => Promise<void>;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Milliseconds that each answer may take. */
  readonly deadlineMs: number;
};

/** A result of one check. */
export type Finding = {
  /** The check's name, for programs. */
  readonly check: string;
  readonly level: 'ok' | 'warning' | 'failure';
  readonly says: string;
  /** An instruction that mends it. */
  readonly fix?: string;
};

export function nodeFinding(version: string): Finding {
  const problem = runtimeProblem({ node: version });
  return problem === undefined
    ? { check: 'node', level: 'ok', says: `Node ${version}.` }
    : {
        check: 'node',
        level: 'failure',
        says: problem,
        fix: 'Install a newer Node (https://nodejs.org), or start with npm start, which brings its own.',
      };
}

/** Checks that the data folder can be written, and that the store in it is a database that this secret can read. */
export async function dataFindings(
  dataDir: string | undefined,
  config: StoreConfig,
  secret: Uint8Array | undefined,
  freeMbIn = freeMbOf,
): Promise<readonly Finding[]> {
  if (storeOptionsIn(config).length > 0) return [];
  const check = 'data';
  if (dataDir === undefined) {
    const says = 'This user has no home folder, so originals are lost when the gateway ends.';
    return [{ check, level: 'failure', says, fix: 'Set a folder with --data or LEPORELLO_DATA.' }];
  }
  const why = await whyNotWritable(dataDir);
  if (why !== undefined) {
    const says = `The data folder ${dataDir} cannot be used: ${why}. Originals are lost when the gateway ends.`;
    const fix = `Let this user write there (chown, chmod), or set another folder with LEPORELLO_DATA.`;
    return [{ check, level: 'failure', says, fix }];
  }
  const file = storeFile(dataDir);
  const size = await stat(file).then(
    (found) => found.size,
    () => undefined,
  );
  if (size === undefined)
    return [{ check, level: 'ok', says: `The data folder ${dataDir} can be used. It holds no store yet.` }];
  if (size > 0 && !(await isDatabase(file))) {
    const says = `The store ${file} is damaged: it is not an SQLite database.`;
    return [
      {
        check,
        level: 'failure',
        says,
        fix: `Move it away; the gateway creates a new one: mv ${file} ${file}.damaged`,
      },
    ];
  }
  // SQLite keeps its newest pages beside the database until it merges them.
  const newest = await stat(`${file}-wal`).then(
    (found) => found.size,
    () => 0,
  );
  const mb = ((size + newest) / 1e6).toFixed(1);
  const says = `The data folder ${dataDir} can be used. Its store has ${mb} MB.`;
  const freeMb = await freeMbIn(dataDir);
  const usable: Finding =
    freeMb < minFreeMb
      ? {
          check,
          level: 'warning',
          says: `${says} But its disk has only ${freeMb.toFixed(1)} MB free: requests whose fold cannot be stored are sent without it.`,
          fix: 'Free some space, or set another folder with LEPORELLO_DATA.',
        }
      : { check, level: 'ok', says };
  if (size === 0 || secret === undefined) return [usable];
  try {
    const store = await sqliteStore({ file });
    const fix = `Restore ${join(dataDir, 'secret')}, or set LEPORELLO_SECRET to that secret. If it is lost, move the store away: mv ${file} ${file}.unreadable`;
    return [usable, ...(await otherSecretFindings(store, `The store ${file}`, secret, fix))];
  } catch (error) {
    if (!LeporelloError.isInstance(error)) throw error;
    const fix = `Mend that, or set another folder with LEPORELLO_DATA.`;
    return [{ check, level: 'failure', says: error.message, fix }];
  }
}

/** MB of free space below which the disk is nearly full. */
const minFreeMb = 20;

/** Returns the free space of a folder's disk in MB; Infinity if the system does not say it. */
async function freeMbOf(folder: string): Promise<number> {
  return statfs(folder).then(
    ({ bavail, bsize }) => (bavail * bsize) / 1e6,
    () => Infinity,
  );
}

/** Reports a store that was first used with another secret, and closes it. */
async function otherSecretFindings(
  store: Store,
  place: string,
  secret: Uint8Array,
  fix: string,
): Promise<readonly Finding[]> {
  try {
    if (!(await isOfOtherSecret(store, secret, { readOnly: true }))) return [];
    const says = `${place} was first used with another secret, so what it holds from then cannot be read.`;
    return [{ check: 'secret', level: 'failure', says, fix }];
  } finally {
    await store.close().catch(() => undefined);
  }
}

/** Returns why a folder cannot be written or created; undefined if it can. */
async function whyNotWritable(folder: string): Promise<string | undefined> {
  try {
    const found = await stat(folder);
    if (!found.isDirectory()) return `${folder} is a file`;
    const owner = `the user ${found.uid} owns it, with the rights ${(found.mode & 0o777).toString(8)}`;
    return await access(folder, constants.W_OK).then(
      () => undefined,
      (error: unknown) =>
        `the user ${process.getuid?.() ?? ''} cannot write ${folder} (${codeOf(error)}); ${owner}`,
    );
  } catch (error) {
    const parent = dirname(folder);
    return codeOf(error) === 'ENOENT' && parent !== folder
      ? whyNotWritable(parent)
      : `${folder} cannot be reached (${codeOf(error)})`;
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
}

async function isDatabase(file: string): Promise<boolean> {
  const handle = await open(file, 'r');
  try {
    const { buffer } = await handle.read(Buffer.alloc(15), 0, 15, 0);
    return buffer.toString('latin1') === 'SQLite format 3';
  } finally {
    await handle.close();
  }
}

/** Checks the secret, and returns it for other checks. A secret that is not there yet is not created. */
export async function secretFindings(
  dataDir: string | undefined,
  env: Environment,
  config: StoreConfig,
): Promise<{ readonly findings: readonly Finding[]; readonly secret: Uint8Array | undefined }> {
  const check = 'secret';
  const file = join(dataDir ?? '', 'secret');
  if (givenSecret(env) === undefined && (dataDir === undefined || !(await exists(file)))) {
    const isLost =
      storeOptionsIn(config).length > 0 || (dataDir !== undefined && (await exists(storeFile(dataDir))));
    const finding: Finding = isLost
      ? {
          check,
          level: 'failure',
          says: `There is no secret (${file}), so nothing that was stored before can be read.`,
          fix: 'Restore the file, or set LEPORELLO_SECRET to the secret of the other gateways.',
        }
      : { check, level: 'ok', says: 'The secret is created at the first start.' };
    return { findings: [finding], secret: undefined };
  }
  try {
    const secret = await loadSecret({ dataDir: dataDir ?? '', env });
    const where = givenSecret(env) === undefined ? file : 'LEPORELLO_SECRET';
    return { findings: [{ check, level: 'ok', says: `The secret can be read (${where}).` }], secret };
  } catch (error) {
    if (!LeporelloError.isInstance(error)) throw error;
    const isUnreadable = error.cause !== undefined;
    const fix = isUnreadable
      ? `Let this user read the file and its folder: chown -R "$USER" ${dataDir}; chmod -R u+rwX ${dataDir}`
      : `Restore the secret: ${file}, or LEPORELLO_SECRET.`;
    return { findings: [{ check, level: 'failure', says: error.message, fix }], secret: undefined };
  }
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

/** Checks that a store outside of the data folder answers, and that this secret can read it. */
export async function storeFindings(
  config: StoreConfig,
  deadlineMs: number,
  secret: Uint8Array | undefined,
): Promise<readonly Finding[]> {
  const check = 'store';
  const fix = `Start the server, or correct the options of ${storeOptionsIn(config).join(' and ')}.`;
  let place = 'The store';
  try {
    const server = storeServer(config);
    if (server === undefined) return [];
    ({ place } = server);
    const store = await server.open();
    const signal = AbortSignal.timeout(deadlineMs);
    try {
      await Promise.race([
        store.getMany(['doctor']),
        once(signal, 'abort').then(() => {
          throw new Error(`it did not answer within ${deadlineMs} ms.`);
        }),
      ]);
      const sharedSecret = 'Set LEPORELLO_SECRET to the secret of the other gateways.';
      return [
        { check, level: 'ok', says: `${place} answers.` },
        ...(secret ? await otherSecretFindings(store, place, secret, sharedSecret) : []),
      ];
    } finally {
      await store.close().catch(() => undefined);
    }
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    return [{ check, level: 'failure', says: `${place} cannot be used: ${problem}`, fix }];
  }
}

/** Checks that each upstream can be reached. One that nobody configured may not be needed, so it is only a warning. */
export async function upstreamFindings(
  config: Config,
  { reach, deadlineMs }: Pick<DoctorDeps, 'reach' | 'deadlineMs'>,
): Promise<readonly Finding[]> {
  const check = 'upstream';
  return Promise.all(
    providers.map(async (provider): Promise<Finding> => {
      const option = `${provider}Url` as const;
      const url = config[option];
      try {
        await reach(url, deadlineMs);
        return { check, level: 'ok', says: `${url} can be reached.` };
      } catch (error) {
        const level = url === defaultUpstreams[provider] ? 'warning' : 'failure';
        const { why, fix } = connectionProblem(error, option, new URL(url).hostname);
        return { check, level, says: `${url} (${option}) cannot be reached: ${why}.`, fix };
      }
    }),
  );
}

function connectionProblem(error: unknown, option: string, host: string): { why: string; fix: string } {
  const inner = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const code = inner instanceof Error && 'code' in inner ? String(inner.code) : '';
  const said = inner instanceof Error ? inner.message : String(inner);
  if (['ENOTFOUND', 'EAI_AGAIN'].includes(code))
    return { why: `the name ${host} has no address (${code})`, fix: `Check ${option}, the network and DNS.` };
  if (code === 'ECONNREFUSED')
    return { why: 'the connection was refused', fix: `Start the server there, or correct ${option}.` };
  if (/CERT|SIGNATURE|ISSUER|SELF_SIGNED/.test(code))
    return {
      why: `its certificate is not trusted (${code})`,
      fix: 'Set NODE_EXTRA_CA_CERTS to the file of your certificate authority before you start the gateway.',
    };
  return { why: said, fix: `Check ${option}, the network and the firewall.` };
}

/** Checks the proxies of this shell: the gateway uses none, and clients must not use one for this machine. */
export function proxyFindings(env: Environment): readonly Finding[] {
  const proxy = Object.keys(env).find((name) => /^(?:https?|all)_proxy$/i.test(name) && !!env[name]);
  if (proxy === undefined) return [];
  const bypassed = `${env['NO_PROXY'] ?? ''},${env['no_proxy'] ?? ''}`;
  const isBypassed = /(?:^|[,\s])(?:127\.0\.0\.1|\*)(?:[,\s]|$)/.test(bypassed);
  return [
    {
      check: 'proxy',
      level: 'warning',
      says: `${proxy} is set, but the gateway connects to providers directly.`,
      fix: 'Allow direct connections to the providers, or set the URL of a relay as upstream (LEPORELLO_ANTHROPIC_URL ...).',
    },
    ...(isBypassed
      ? []
      : [
          {
            check: 'proxy',
            level: 'warning',
            says: `${proxy} is set without an exception for this machine, so clients may not reach the gateway.`,
            fix: 'export NO_PROXY=127.0.0.1,localhost (leporello wrap does it for its client)',
          } as const,
        ]),
  ];
}
