/**
 * The configuration: every option, its default and what it may be. The one place to add an option; files, variables, flags, errors
 * and the table in docs/configuration.md are read off it. Pure.
 */
import { z } from 'zod';
import { fraction, number, switchable, told, tokens, whole } from './kinds.ts';
import { defaultFoldThreadBytes } from '../../gateway/fold-thread/fold-thread.ts';
import { preset, subgoals, summaries } from './text-folds.ts';

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

/** What a target must stay below. */
function limitOf(input: unknown): number {
  const { trigger, buffer = 0 } = input as { readonly trigger: number; readonly buffer?: number };
  return trigger - buffer;
}

const windowFraction = switchable(
  z
    .strictObject({
      trigger: fraction(0.85, 'Fraction of the window above which it fires.'),
      target: fraction(0.5, 'Fraction of the window to fold down to; below the trigger.'),
    })
    .refine(({ trigger, target }) => target < trigger, {
      path: ['target'],
      error: ({ input }) => `below triggers.windowFraction.trigger, ${limitOf(input)}`,
    }),
  'trigger and target',
  'Folds when a request takes more than a fraction of the window; false turns it off.',
);

const tokenBudget = switchable(
  z
    .strictObject({
      trigger: whole(2, 110_000, 'Tokens that the count and the buffer may not exceed.'),
      target: whole(1, 40_000, 'Tokens to fold down to; below trigger minus buffer.'),
      buffer: whole(0, 1_000, 'Tokens by which the count may be too low.'),
    })
    .refine(({ trigger, target, buffer }) => target < trigger - buffer, {
      path: ['target'],
      error: ({ input }) => `below trigger minus buffer of triggers.tokenBudget, ${limitOf(input)}`,
    }),
  'trigger, target and buffer',
  'Folds when a request is dearer than a number of tokens, whatever the window; false turns it off.',
);

const mustFit = switchable(
  z.strictObject({
    target: told(z.number().gt(0).lt(1).optional(), {
      allowed: 'a number above 0 and below 1',
      about: 'Fraction of the window to fold down to.',
      otherwise: 'that of windowFraction, else 0.5',
    }),
  }),
  'target',
  'Folds when a request would not fit the window beside its reply; false turns it off.',
);

const messageCount = switchable(
  z.strictObject({
    target: whole(1, 20, 'Messages to fold down to.'),
    buffer: whole(1, 5, 'Messages above the target that are put up with.'),
  }),
  'target and buffer',
  'Folds when a request has more messages than target and buffer together; false turns it off.',
);

const coldCache = switchable(
  z.strictObject({
    idleMs: told(z.number().min(0).optional(), {
      allowed: 'a number of at least 0',
      about: 'Milliseconds without a request after which nothing is cached any more.',
      otherwise: "that of the model, or of the client's own marks",
    }),
    usedFor: whole(
      0,
      8,
      'Requests for which a tool result counts as used; arguments of calls do twice as long.',
    ),
    stepsUsedFor: whole(
      0,
      20,
      'Requests for which a whole step counts as used: a reply with its calls and results.',
    ),
    least: number(0, 2_000, 'Tokens that a fold must take out at least.'),
  }),
  'idleMs, usedFor, stepsUsedFor and least',
  'Folds what is old where a pause was so long that the provider has dropped the conversation from its cache; false turns it off.',
);

const cacheRent = switchable(
  z.strictObject({
    usedFor: whole(
      0,
      4,
      'Requests for which a tool result counts as used; arguments of calls do twice as long.',
    ),
    stepsUsedFor: told(z.int().min(0).optional(), {
      allowed: 'a whole number of at least 0',
      about: 'Requests for which a whole step counts as used: a reply with its calls and results.',
      otherwise: '14, and 12 where nothing is cached',
    }),
    least: number(0, 2_000, 'Tokens that a fold must take out at least.'),
    patience: number(0, 9, 'How many times its price a fold must have cost in being put off.'),
  }),
  'usedFor, stepsUsedFor, least and patience',
  'Folds what is old where reading it from the cache again and again has cost more than a fold does; false turns it off.',
);

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

const shrinks = switchable(
  z.strictObject({
    lossless: told(z.boolean().default(false), {
      allowed: 'true or false',
      about: 'Whether nothing may be left out, not even like rows and log lines of long results.',
    }),
    lineNumbers: told(z.enum(['every', 'every-fifth']).default('every'), {
      allowed: 'every or every-fifth',
      about: 'Which line numbers of a listed file stay.',
    }),
    repeats: told(z.boolean().default(true), {
      allowed: 'true or false',
      about: 'Whether lines that an earlier result shows already are only referred to.',
    }),
  }),
  'lossless, lineNumbers and repeats',
  'Lays tool results out smaller when they come, before they are first sent; false leaves them as they are.',
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
  triggers: z
    .strictObject({
      mustFit: told(mustFit.schema.prefault({}), mustFit.meta),
      windowFraction: told(windowFraction.schema.prefault({}), windowFraction.meta),
      tokenBudget: told(tokenBudget.schema.prefault({}), tokenBudget.meta),
      messageCount: told(messageCount.schema.default(false), messageCount.meta),
      coldCache: told(coldCache.schema.prefault({}), coldCache.meta),
      cacheRent: told(cacheRent.schema.prefault({}), cacheRent.meta),
    })
    .prefault({}),
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
