/**
 * Finds and reads the session files that agent CLIs leave behind. Nothing is written: a database is copied to a temporary folder first, because
 * opening it would change files beside it. A folder or a file that cannot be read counts as missing.
 */
import { copyFile, mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { groupBy } from '../../es2024.ts';
import type { AgentCliName } from '../wrap/clients.ts';
import type { SettingsObject } from '../wrap/read-settings.ts';
import type { Environment } from '../terminal.ts';
import {
  readClaudeCode,
  readCodex,
  readGeminiCli,
  readOpencode,
  readPi,
  readQwenCode,
  recordsIn,
} from './formats.ts';
import type { ClientSession, SessionConversation } from './session.ts';

type FileKind = {
  readonly client: AgentCliName;
  readonly folders: (place: SessionPlace) => readonly string[];
  /** Matches the paths of session files below the folders. */
  readonly path: RegExp;
  readonly read: (records: readonly SettingsObject[]) => readonly SessionConversation[];
};

/** The environment and the home folder that session folders depend on. */
export type SessionPlace = { readonly env: Environment; readonly home: string };

const fileKinds: readonly FileKind[] = [
  {
    client: 'claude',
    folders: ({ env, home }) => [join(env['CLAUDE_CONFIG_DIR'] || join(home, '.claude'), 'projects')],
    path: /\.jsonl$/,
    read: readClaudeCode,
  },
  {
    client: 'codex',
    folders: ({ env, home }) =>
      ['sessions', 'archived_sessions'].map((name) => join(env['CODEX_HOME'] || join(home, '.codex'), name)),
    path: /rollout-[^/\\]*\.jsonl$/,
    read: readCodex,
  },
  {
    client: 'gemini',
    folders: ({ env, home }) => [join(env['GEMINI_CLI_HOME'] || home, '.gemini', 'tmp')],
    path: /[/\\]chats[/\\].*\.jsonl?$/,
    read: readGeminiCli,
  },
  {
    client: 'pi',
    folders: ({ env, home }) => [join(env['PI_CODING_AGENT_DIR'] || join(home, '.pi', 'agent'), 'sessions')],
    path: /\.jsonl$/,
    read: readPi,
  },
  {
    client: 'qwen',
    folders: ({ home }) => [join(home, '.qwen', 'projects')],
    path: /[/\\]chats[/\\].*\.jsonl$/,
    read: readQwenCode,
  },
];

/** Yields the sessions of all clients in files that changed at or after `since`, in milliseconds since the epoch. */
export async function* findSessions(place: SessionPlace, since: number): AsyncGenerator<ClientSession> {
  for (const { client, folders, path, read } of fileKinds) {
    for (const folder of folders(place)) {
      for (const file of await filesBelow(folder)) {
        if (!path.test(file) || !(await isNew(file, since))) continue;
        const text = await readFile(file, 'utf8').catch(() => '');
        const conversations = read(file.endsWith('.json') ? wholeFile(text) : recordsIn(text));
        yield { client, id: file, conversations };
      }
    }
  }
  yield* opencodeSessions(place, since);
}

/** Returns a file of one JSON value as its only record. */
function wholeFile(text: string): readonly SettingsObject[] {
  return recordsIn(text.replaceAll(/\r?\n/g, ' '));
}

async function filesBelow(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { withFileTypes: true, recursive: true }).catch(() => []);
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .toSorted();
}

async function isNew(file: string, since: number): Promise<boolean> {
  return stat(file).then(
    ({ mtimeMs }) => mtimeMs >= since,
    () => false,
  );
}

/** Returns the folders that are searched for sessions. */
export function sessionFolders(place: SessionPlace): readonly string[] {
  return [...fileKinds.flatMap(({ folders }) => folders(place)), opencodeFolder(place)];
}

function opencodeFolder({ env, home }: SessionPlace): string {
  return env['OPENCODE_DATA_DIR'] || join(env['XDG_DATA_HOME'] || join(home, '.local', 'share'), 'opencode');
}

/** opencode keeps its sessions in an SQLite database: tables of messages and of their parts, each with a column of JSON. */
async function* opencodeSessions(place: SessionPlace, since: number): AsyncGenerator<ClientSession> {
  const folder = opencodeFolder(place);
  const names = await readdir(folder).catch(() => []);
  for (const name of names.filter((one) => /^opencode.*\.db$/.test(one)).toSorted()) {
    const copy = await mkdtemp(join(tmpdir(), 'leporello-savings-'));
    try {
      const file = join(copy, name);
      await copyFile(join(folder, name), file);
      await copyFile(join(folder, `${name}-wal`), `${file}-wal`).catch(() => undefined);
      for (const session of await sessionsInDatabase(file, since)) yield session;
    } catch {
      // Another version has other tables, and a database that is being written may not be readable now.
    } finally {
      await rm(copy, { recursive: true, force: true });
    }
  }
}

async function sessionsInDatabase(file: string, since: number): Promise<readonly ClientSession[]> {
  const { DatabaseSync } = await import('node:sqlite');
  const database = new DatabaseSync(file);
  try {
    const parts = new Map<string, SettingsObject[]>();
    const rows = (table: string): readonly SettingsObject[] =>
      database
        .prepare(
          `SELECT * FROM ${table} WHERE session_id IN (SELECT session_id FROM message WHERE time_created >= ?) ORDER BY time_created, id`,
        )
        .all(since);
    for (const row of rows('part')) {
      const message = String(row['message_id']);
      parts.set(message, [...(parts.get(message) ?? []), dataOf(row)]);
    }
    const messages = rows('message').map((row) => ({
      session: String(row['session_id']),
      message: { ...dataOf(row), id: row['id'] },
      parts: parts.get(String(row['id'])) ?? [],
    }));
    return [...groupBy(messages, ({ session }) => session)].map(([id, own]) => ({
      client: 'opencode',
      id: `${basename(file)} ${id}`,
      conversations: readOpencode(own),
    }));
  } finally {
    database.close();
  }
}

function dataOf(row: SettingsObject): SettingsObject {
  return JSON.parse(String(row['data'])) as SettingsObject;
}
