/**
 * The configuration: every option, its default and what it may be. The one place to add an option; files, variables, flags, errors
 * and the table in docs/configuration.md are read off it. Pure.
 */
import { z } from 'zod';
import { switchable, told, tokens, whole } from './kinds.ts';
import { defaultFoldThreadBytes } from '../../gateway/fold-thread/fold-thread.ts';
import { preset, shrinks, subgoals, summaries, triggers } from './folding-options.ts';

const baseUrl = 'an http or https URL without user, query and fragment, such as https://api.openai.com/v1';

function upstream(otherwise: string, about: string) {
  const schema = z.string().refine(isBaseUrl, { error: baseUrl }).default(otherwise);
  return told(schema, { allowed: baseUrl, about });
}

/** Credentials in a URL would be sent nowhere, and end in messages. */
function isBaseUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password, search, hash } = new URL(text);
  return /^https?:$/.test(protocol) && `${username}${password}${search}${hash}` === '';
}

/** What would be a URL, or begin with a password. */
const hostName = z.string().regex(/^[^\s/@]+$/);

const redis = switchable(
  z.strictObject({
    host: told(hostName.default('127.0.0.1'), {
      allowed: 'a host name or an address, without scheme and port',
      about: 'Where the server is.',
    }),
    port: whole(1, 6379, 'Its port.', 65_535),
    username: told(z.string().min(1).optional(), {
      allowed: 'a name of at least one character',
      about: 'User of the server.',
      otherwise: 'that of the server',
    }),
    password: told(z.string().min(1).optional(), {
      allowed: 'at least one character',
      about: 'Password of the user.',
      secret: true,
      otherwise: 'none',
    }),
    database: whole(0, 0, 'Number of the database.'),
    tls: told(z.boolean().default(false), {
      allowed: 'true or false',
      about: 'Whether the connection is encrypted.',
    }),
    timeoutMs: whole(
      1,
      400,
      'Milliseconds that a call may take; then its request goes on unfolded. Counts where it is less than limits.storeDeadlineMs.',
      60_000,
    ),
  }),
  'host, port, username, password, database, tls and timeoutMs',
  'Keeps originals and folds in a Redis or Valkey server, for several gateways with one memory; false for the data folder.',
);

const texts = z.array(z.string().min(1)).default([]);

const model = z.strictObject({
  window: tokens('Tokens of prompt and reply together.'),
  maxInput: tokens('Tokens of the longest prompt.'),
  maxOutput: tokens('Tokens of the longest reply.'),
  tokenizer: told(z.enum(['o200k_base', 'cl100k_base']).optional(), {
    allowed: 'o200k_base or cl100k_base',
    about: 'The vocabulary to count with.',
  }),
  cacheKeptMs: told(z.number().min(0).optional(), {
    allowed: 'a number of at least 0',
    about: 'Milliseconds for which a prompt stays cached that nobody asks for.',
  }),
});

const usd = z.number().min(0).optional();

const price = z.strictObject({
  input: usd,
  cacheRead: usd,
  cacheWrite: usd,
  cacheWriteLong: usd,
  output: usd,
});

export const configSchema = z.strictObject({
  port: whole(0, 8787, 'Port of the gateway; 0 takes any free one.', 65_535),
  host: told(z.string().min(1).default('127.0.0.1'), {
    allowed: 'an address of this machine, such as 127.0.0.1 or 0.0.0.0',
    about: 'Address the gateway listens on.',
  }),
  data: told(z.string().min(1).default('~/.leporello'), {
    allowed: 'a path',
    about: 'Folder for originals, folds and the secret. In a file, relative to the file.',
  }),
  openaiUrl: upstream('https://api.openai.com/v1', 'Upstream of the OpenAI formats.'),
  anthropicUrl: upstream('https://api.anthropic.com', 'Upstream of the Anthropic format.'),
  geminiUrl: upstream('https://generativelanguage.googleapis.com', 'Upstream of the Gemini format.'),
  mode: told(z.enum(['fold', 'observe']).default('fold'), {
    allowed: 'fold or observe',
    about: 'observe sends every request as it came and reports what folding would have sent.',
  }),
  calibrate: told(z.boolean().default(true), {
    allowed: 'true or false',
    about: 'Whether token counts are corrected by the usage that providers report.',
  }),
  cacheMarks: told(z.boolean().default(true), {
    allowed: 'true or false',
    about: 'Whether Anthropic requests without cache_control get it where it pays.',
  }),
  triggers,
  shrinks: told(shrinks.schema.prefault({}), shrinks.meta),
  summaries: told(summaries.schema.default(false), summaries.meta),
  preset,
  subgoals: told(subgoals.schema.optional(), {
    ...subgoals.meta,
    otherwise: 'off, unless there is a preset',
  }),
  compressionBytesThreshold: whole(0, 1_000, 'Tool results of fewer bytes are never folded.'),
  pins: z
    .strictObject({
      tools: told(texts, {
        allowed: 'a list of tool names',
        about: 'Results of these tools are never folded.',
      }),
      texts: told(texts, {
        allowed: 'a list of texts',
        about: 'Parts that hold one of these texts are never folded.',
      }),
    })
    .prefault({}),
  models: told(z.record(z.string(), model).default({}), {
    allowed:
      'an object by model name or glob, such as {"my-*": {"window": 32000, "tokenizer": "o200k_base"}}',
    about:
      'What is known of models beside the catalogue: window, maxInput, maxOutput (tokens), tokenizer, cacheKeptMs.',
  }),
  prices: told(z.record(z.string(), price).default({}), {
    allowed: 'an object by model name or glob, such as {"my-*": {"input": 1, "cacheRead": 0.1, "output": 5}}',
    about:
      'What tokens cost beside the catalogue, in USD for a million: input, cacheRead, cacheWrite, cacheWriteLong, output.',
  }),
  recall: z
    .strictObject({
      offer: told(z.enum(['always', 'with-fold', 'never']).default('always'), {
        allowed: 'always, with-fold or never',
        about:
          'When the model is offered the tool read_memory: from the first request of a conversation on (always), with the first fold (with-fold), or never.',
      }),
      maxRounds: whole(1, 5, 'Recalls in a row that one request may make.', 100),
      maxTokens: whole(100, 8_000, 'Tokens one recall may answer.'),
    })
    .prefault({}),
  limits: z
    .strictObject({
      maxBodyBytes: whole(1, 64 * 1024 * 1024, 'Larger request bodies are answered 413.'),
      prepareDeadlineMs: whole(
        1,
        2_000,
        'Milliseconds; folding that takes longer is given up for the request.',
      ),
      storeDeadlineMs: whole(
        1,
        500,
        'Milliseconds that one call of the memory may take; then it is given up for the request.',
        60_000,
      ),
      foldThreadBytes: whole(
        0,
        defaultFoldThreadBytes,
        'Request bodies of at least so many bytes are folded in a thread of their own, so that no client can hold up the others; 0 folds all in one thread.',
      ),
      drainMs: whole(
        0,
        30_000,
        'Milliseconds that requests under way have to finish once the gateway is stopped.',
        86_400_000,
      ),
    })
    .prefault({}),
  memory: z
    .strictObject({
      ttlDays: told(z.number().gt(0).lte(36_500).default(30), {
        allowed: 'a number of days above 0 and at most 36500',
        about: 'Days that originals and folds are kept after they were last used.',
      }),
      // As a whole it holds the password.
      redis: told(redis.schema.default(false), { ...redis.meta, secret: true }),
    })
    .prefault({}),
  tenant: told(
    z
      .union([
        z.string().regex(/^[a-z0-9-]{1,64}$/),
        z.strictObject({ header: z.string().min(1).max(100) }),
        z.strictObject({ claim: z.string().min(1).max(100) }),
      ])
      .optional(),
    {
      allowed: 'local, credential, a label of 1 to 64 of a-z, 0-9 and -, {"header": NAME} or {"claim": NAME}',
      about: 'Whose data a request is, so who shares memory with whom: see tenants.md.',
      otherwise: '`local` on a loopback host, else `credential`',
    },
  ),
  allowedHosts: told(z.array(z.string().min(1)).optional(), {
    allowed: 'a list of host names without ports',
    about: 'Hosts that requests may be addressed to; guards against web pages.',
    otherwise: 'localhost, 127.0.0.1 and [::1] on a loopback host, else any',
  }),
  adminToken: told(z.string().min(16).optional(), {
    allowed: 'at least 16 characters',
    about: 'Credential that sees the receipts and memories of all tenants.',
    secret: true,
    otherwise: 'none',
  }),
  logLevel: told(z.enum(['debug', 'info', 'warn', 'error', 'silent']).default('info'), {
    allowed: 'debug, info, warn, error or silent',
    about: 'What is logged.',
  }),
});

export type Config = z.output<typeof configSchema>;
