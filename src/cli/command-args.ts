/** Defines the arguments of each command, as args.ts parses them. */
import type { Format, SettingArgs } from './flags.ts';
import type { HookedClient } from './hook/contracts.ts';
import type { AgentCliName } from './wrap/clients.ts';

/** A parsed command line. */
export type Args =
  | { readonly command: 'help'; readonly topic: CommandName | undefined }
  | { readonly command: 'version'; readonly json: boolean }
  | { readonly command: 'state' }
  | ServeArgs
  | WrapArgs
  | CompactArgs
  | RecallArgs
  | InspectArgs
  | ExperimentArgs
  | McpArgs
  | ReplayArgs
  | SavingsArgs
  | DoctorArgs
  | HookArgs
  | OffArgs
  | BenchAbArgs
  | DemoArgs;

export type ServeArgs = {
  readonly command: 'serve';
  readonly settings: SettingArgs;
  /** Whether the gateway ends with the last `leporello wrap` that uses it. */
  readonly forWraps: boolean;
  readonly json: boolean;
};

export type WrapArgs = {
  readonly command: 'wrap';
  readonly client: AgentCliName;
  /** Arguments for the client. */
  readonly rest: readonly string[];
  /** Whether only the environment and the arguments are printed. */
  readonly print: boolean;
  readonly settings: SettingArgs;
  readonly json: boolean;
};

export type CompactArgs = {
  readonly command: 'compact';
  /** A path, or `-` for standard input. */
  readonly file: string;
  readonly format: Format;
  readonly model: string | undefined;
  /** The window in tokens. */
  readonly window: number | undefined;
  readonly out: string | undefined;
  readonly settings: SettingArgs;
  readonly json: boolean;
};

export type RecallArgs = {
  readonly command: 'recall';
  readonly id: string;
  readonly part: { readonly query?: string; readonly lines?: string; readonly path?: string };
  readonly maxTokens: number | undefined;
  readonly raw: boolean;
  readonly settings: SettingArgs;
  readonly json: boolean;
};

export type InspectArgs = {
  readonly command: 'inspect';
  /** The id of a receipt; undefined for the newest ones. */
  readonly receipt: string | undefined;
  /** The number of newest receipts. */
  readonly last: number;
  /** The label of the tenant; undefined for the one that all requests belong to. */
  readonly tenant: string | undefined;
  readonly settings: SettingArgs;
  readonly json: boolean;
};

export type ExperimentArgs = {
  readonly command: 'experiment';
  /** The label of the tenant; undefined for the one that all requests belong to. */
  readonly tenant: string | undefined;
  readonly settings: SettingArgs;
  readonly json: boolean;
};

export type McpArgs = {
  readonly command: 'mcp';
  /** The port of an HTTP server; undefined for standard input and output. */
  readonly port: number | undefined;
  /** The label of the tenant; undefined for `local`. */
  readonly tenant: string | undefined;
  readonly settings: SettingArgs;
  readonly json: boolean;
};

export type ReplayArgs = {
  readonly command: 'replay';
  readonly files: readonly string[];
  readonly format: Format;
  /** The window in tokens. */
  readonly window: number | undefined;
  /** Tokens of the prefix of a recorded conversation. */
  readonly prefix: number | undefined;
  /** Maximum number of conversations of each source. */
  readonly limit: number | undefined;
  readonly source: string | undefined;
  /** Further engines, as `NAME=JSON`. */
  readonly engines: readonly string[];
  readonly html: string | undefined;
  readonly settings: SettingArgs;
  readonly json: boolean;
};

export type SavingsArgs = {
  readonly command: 'savings';
  /** How many days back; undefined means a week. */
  readonly days: number | undefined;
  /** Whether all conversations are replayed, however long it takes. */
  readonly all: boolean;
  readonly settings: SettingArgs;
  readonly json: boolean;
};

export type DoctorArgs = {
  readonly command: 'doctor';
  readonly settings: SettingArgs;
  readonly json: boolean;
};

export type HookArgs = {
  readonly command: 'hook';
  readonly client: HookedClient;
  /** Whether only the entry for the client's settings is printed. */
  readonly print: boolean;
  readonly settings: SettingArgs;
  readonly json: boolean;
};

export type OffArgs = {
  readonly command: 'off';
  /** Whether nothing is removed, only listed. */
  readonly dryRun: boolean;
  /** Whether the originals in the data folder are deleted too. */
  readonly originals: boolean;
  readonly settings: SettingArgs;
  readonly json: boolean;
};

export type BenchAbArgs = {
  readonly command: 'bench-ab';
  /** The file with one task on each line. */
  readonly tasks: string;
  /** The command to run, with its arguments. */
  readonly run: readonly string[];
  readonly seed: number | undefined;
  readonly maxUsd: number | undefined;
  readonly maxSteps: number | undefined;
  readonly timeoutSeconds: number | undefined;
  /** Whether a name is put before each prompt, so that the arms share no cache. */
  readonly addsNamespace: boolean;
  readonly settings: SettingArgs;
  readonly json: boolean;
};

export type DemoArgs = { readonly command: 'demo'; readonly json: boolean };

export const commandNames = [
  'serve',
  'wrap',
  'compact',
  'recall',
  'inspect',
  'experiment',
  'mcp',
  'replay',
  'savings',
  'doctor',
  'hook',
  'off',
  'bench-ab',
  'demo',
] as const;
export type CommandName = (typeof commandNames)[number];
