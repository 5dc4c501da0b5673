/**
 * Defines the configuration: every option with its default and its allowed values. Files, variables, flags, errors and the table in
 * docs/configuration.md are derived from it, so an option is added only here.
 */
import { baseUrlWords, isBaseUrl } from '../../checks.ts';
import { defaultCacheMb, minCacheMb } from '../../caches.ts';
import { z } from 'zod';
import { switchable, described, fraction, tokens, whole } from './kinds.ts';
import { defaultFoldThreadBytes } from '../../gateway/fold-thread/fold-thread.ts';
import { items, preset, shrinks, strategies, subgoals, summaries, triggers } from './folding-options.ts';

/** A gateway with a smaller budget for caches has one engine and keeps less garbage, in megabytes. */
export const smallCacheMb = 128;

const serviceUrl = `${baseUrlWords} https://memory.internal/leporello`;

function upstream(otherwise: string, about: string) {
  const allowed = `${baseUrlWords} ${otherwise}`;
  const schema = z.string().refine(isBaseUrl, { error: allowed }).default(otherwise);
  return described(schema, { allowed, about });
}

/** A host name; not a URL, and nothing with a password in it. */
const hostName = z.string().regex(/^[^\s/@]+$/);

const redis = switchable(
  z.strictObject({
    host: described(hostName.default('127.0.0.1'), {
      allowed: 'a host name or an address, without scheme and port',
      about: 'Host of the server.',
    }),
    port: whole(1, 6379, 'Port of the server.', 65_535),
    username: described(z.string().min(1).optional(), {
      allowed: 'a name of at least one character',
      about: 'User of the server.',
      otherwise: "the server's default user",
    }),
    password: described(z.string().min(1).optional(), {
      allowed: 'at least one character',
      about: 'Password of the user.',
      secret: true,
      otherwise: 'none',
    }),
    database: whole(0, 0, 'Number of the database.'),
    tls: described(z.boolean().default(false), {
      allowed: 'true or false',
      about: 'true encrypts the connection.',
    }),
    timeoutMs: whole(
      1,
      400,
      'Milliseconds that a call may take; then its request is sent unfolded. Only effective below limits.storeDeadlineMs.',
      60_000,
    ),
  }),
  'host, port, username, password, database, tls and timeoutMs',
  'Stores originals and folds in a Redis or Valkey server, which several gateways can share; false stores them in the data folder.',
);

const http = switchable(
  z.strictObject({
    url: described(z.string().refine(isBaseUrl, { error: serviceUrl }).default('http://127.0.0.1:7070'), {
      allowed: serviceUrl,
      about: 'Base URL of the service.',
    }),
    token: described(z.string().min(1).optional(), {
      allowed: 'at least one character',
      about: 'Credential of the service, sent as `authorization: Bearer TOKEN`.',
      secret: true,
      otherwise: 'none',
    }),
    timeoutMs: whole(
      1,
      400,
      'Milliseconds that a call may take; then its request is sent unfolded. Only effective below limits.storeDeadlineMs.',
      60_000,
    ),
  }),
  'url, token and timeoutMs',
  'Stores originals and folds in a service of your own: http-store.md specifies its calls.',
);

const shadow = switchable(
  z.strictObject({
    share: fraction(
      0.1,
      'The share of requests with a new fold that are sent again; of later requests with folds, a tenth of it.',
    ),
    usdPerDay: described(z.number().gt(0).default(1), {
      allowed: 'a number above 0',
      about: 'USD that the repeated requests of a tenant may cost in a day, over all gateways on the store.',
    }),
    billShare: fraction(
      0.01,
      "What they may cost at most, as a part of what the tenant's requests have cost since the gateway started.",
    ),
    hold: described(z.enum(['if-harmful', 'unless-safe', 'never']).default('if-harmful'), {
      allowed: 'if-harmful, unless-safe or never',
      about:
        'When strategies make no new fold, unless a request would not fit. if-harmful: for a week after their folds were shown to do harm. unless-safe: until their folds are shown to be harmless. never: the shadow only measures.',
    }),
    logins: described(z.boolean().default(false), {
      allowed: 'true or false',
      about: 'Whether requests with a login, such as that of a subscription, are sent again, too.',
    }),
  }),
  'share, usdPerDay, billShare, hold and logins',
  'Sends a share of folded requests again, and compares what the model does next: see experiments.md; false sends none.',
);

const experiment = switchable(
  z.strictObject({
    holdout: described(z.number().min(0).lt(1).optional(), {
      allowed: 'a number of at least 0 and below 1',
      otherwise: '0.2, or 0 with a shadow',
      about:
        'The share of conversations that form the control group: they are folded only if they would not fit. 0 for none.',
    }),
    control: described(z.enum(['unfolded', 'untouched']).default('unfolded'), {
      allowed: 'unfolded or untouched',
      about:
        'unfolded sends the control group with the recall tool and the shrinks that both groups have; untouched sends it as the client did, and no conversation gets the tool, a shrink or a cache mark before its first fold.',
    }),
    capUsd: described(z.number().gt(0).default(10), {
      allowed: 'a number above 0',
      about: 'USD of a conversation that count at most. A change begins a new experiment.',
    }),
    shadow: described(shadow.schema.default(false), shadow.meta),
  }),
  'holdout, control, capUsd and shadow',
  'Measures on live traffic what folding costs or saves, with a control group that is not folded, and with requests that are sent again: see experiments.md.',
);

const texts = z.array(z.string().min(1)).default([]);

const model = z.strictObject({
  windowTokens: tokens('Tokens of prompt and reply together.'),
  maxInputTokens: tokens('Tokens of the longest prompt.'),
  maxOutputTokens: tokens('Tokens of the longest reply.'),
  tokenizer: described(z.enum(['o200k_base', 'cl100k_base']).optional(), {
    allowed: 'o200k_base or cl100k_base',
    about: 'The tokenizer to count with.',
  }),
  cacheKeptMs: described(z.number().min(0).optional(), {
    allowed: 'a number of at least 0',
    about: 'Milliseconds that an unused prompt stays in the cache.',
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
  port: whole(0, 8787, 'Port of the gateway; 0 uses any free port.', 65_535),
  host: described(z.string().min(1).default('127.0.0.1'), {
    allowed: 'an address of this machine, such as 127.0.0.1 or 0.0.0.0',
    about: 'Address on which the gateway listens.',
  }),
  data: described(z.string().min(1).default('~/.leporello'), {
    allowed: 'a path',
    about:
      'Folder for originals, folds and the secret. A relative path in a configuration file is relative to that file.',
  }),
  openaiUrl: upstream('https://api.openai.com/v1', 'Upstream of the OpenAI formats.'),
  anthropicUrl: upstream('https://api.anthropic.com', 'Upstream of the Anthropic format.'),
  geminiUrl: upstream('https://generativelanguage.googleapis.com', 'Upstream of the Gemini format.'),
  mode: described(z.enum(['fold', 'observe']).default('fold'), {
    allowed: 'fold or observe',
    about: 'observe sends every request unchanged and reports what folding would have sent.',
  }),
  calibrate: described(z.boolean().default(true), {
    allowed: 'true or false',
    about: 'true corrects token counts with the usage that providers report.',
  }),
  cacheMarks: described(z.boolean().default(true), {
    allowed: 'true or false',
    about: 'true adds cache_control to Anthropic requests without it, if that is estimated to save money.',
  }),
  triggers,
  shrinks: described(shrinks.schema.prefault({}), shrinks.meta),
  strategies,
  summaries: described(summaries.schema.optional(), {
    ...summaries.meta,
    otherwise: 'off without the preset summaries',
  }),
  items: described(items.schema.optional(), { ...items.meta, otherwise: 'off' }),
  preset,
  subgoals: described(subgoals.schema.optional(), {
    ...subgoals.meta,
    otherwise: 'off without a preset',
  }),
  minResultBytes: whole(0, 1_000, 'Bytes below which a tool result is never folded.'),
  keepNewestMedia: whole(0, 4, 'How many of the newest images and documents are never folded.'),
  pins: z
    .strictObject({
      tools: described(texts, {
        allowed: 'a list of tool names',
        about: 'Tools whose results are never folded.',
      }),
      texts: described(texts, {
        allowed: 'a list of texts',
        about: 'Texts that protect the parts containing them from folding.',
      }),
      plan: described(z.boolean().default(true), {
        allowed: 'true or false',
        about: "Whether the agent's newest plan stays in view.",
      }),
      instructions: described(z.boolean().default(true), {
        allowed: 'true or false',
        about: 'Whether instruction files that a tool read (AGENTS.md, CLAUDE.md, SKILL.md) stay in view.',
      }),
    })
    .prefault({}),
  models: described(z.record(z.string(), model).default({}), {
    allowed:
      'an object by model name or glob, such as {"my-*": {"windowTokens": 32000, "tokenizer": "o200k_base"}}',
    about:
      'Properties of models, in addition to the catalog: windowTokens, maxInputTokens, maxOutputTokens, tokenizer, cacheKeptMs.',
  }),
  usdPerMillionTokens: described(z.record(z.string(), price).default({}), {
    allowed: 'an object by model name or glob, such as {"my-*": {"input": 1, "cacheRead": 0.1, "output": 5}}',
    about:
      'Prices of models, in addition to the catalog: input, cacheRead, cacheWrite, cacheWriteLong, output.',
  }),
  recall: z
    .strictObject({
      offer: described(z.enum(['always', 'with-fold', 'never']).default('always'), {
        allowed: 'always, with-fold or never',
        about:
          'When the tool read_memory is offered to the model: from the first request of a conversation (always), from its first fold (with-fold), or never.',
      }),
      maxRounds: whole(1, 5, 'Rounds of recalls in one request.', 100),
      maxTokens: whole(100, 8_000, 'Tokens of one recall at most.'),
      notes: described(z.boolean().default(false), {
        allowed: 'true or false',
        about:
          'true offers the tool save_context with read_memory: notes of the model that stay in view after folds.',
      }),
      repairEdits: described(z.boolean().default(true), {
        allowed: 'true or false',
        about: 'true adds folded lines to the result of an edit that failed without them.',
      }),
    })
    .prefault({}),
  limits: z
    .strictObject({
      maxBodyBytes: whole(
        1,
        64 * 1024 * 1024,
        'Bytes of a request body at most, compressed or not; a larger one is answered with 413.',
      ),
      prepareDeadlineMs: whole(
        1,
        2_000,
        'Milliseconds that a request waits for the store and a new fold; after that, known folds are repeated, and only a fold that it needs to fit is made.',
      ),
      storeDeadlineMs: whole(
        1,
        500,
        'Milliseconds that a call of the store may take; then the request continues without it.',
        60_000,
      ),
      foldThreadBytes: whole(
        0,
        defaultFoldThreadBytes,
        'Bytes of a request body from which it is folded in a separate thread, so that it does not delay other requests; 0 folds all requests in the main thread.',
      ),
      cacheMb: whole(
        minCacheMb,
        defaultCacheMb,
        `Megabytes of memory for caches, shared by the main thread and the two threads for large bodies. Once they are full, what was not used for the longest time is dropped. Below ${smallCacheMb}, the main thread has all, and folds large bodies too.`,
      ),
      drainMs: whole(
        0,
        30_000,
        'Milliseconds that requests in progress have to finish when the gateway is stopped.',
        86_400_000,
      ),
    })
    .prefault({}),
  memory: z
    .strictObject({
      ttlDays: described(z.number().gt(0).lte(36_500).default(30), {
        allowed: 'a number of days above 0 and at most 36500',
        about: 'Days that originals and folds are kept after their last use.',
      }),
      // Secret, because the object contains the password.
      redis: described(redis.schema.default(false), { ...redis.meta, secret: true }),
      http: described(http.schema.default(false), { ...http.meta, secret: true }),
    })
    .prefault({}),
  experiment: described(experiment.schema.default(false), experiment.meta),
  tenant: described(
    z
      .union([
        z.string().regex(/^[a-z0-9-]{1,64}$/),
        z.strictObject({ header: z.string().min(1).max(100) }),
        z.strictObject({ claim: z.string().min(1).max(100) }),
      ])
      .optional(),
    {
      allowed:
        'local, credential, a label of 1 to 64 characters of a-z, 0-9 and -, {"header": NAME} or {"claim": NAME}',
      about:
        'Decides which tenant a request belongs to, and so who shares originals and receipts: see tenants.md.',
      otherwise: '`local` on a loopback host, otherwise `credential`',
    },
  ),
  allowedHosts: described(z.array(z.string().min(1)).optional(), {
    allowed: 'a list of host names without ports',
    about: 'Host names that requests may be addressed to; protects the gateway from web pages.',
    otherwise: 'localhost, 127.0.0.1 and [::1] on a loopback host, otherwise any',
  }),
  adminToken: described(z.string().min(16).optional(), {
    allowed: 'at least 16 characters',
    about: 'Credential that shows the receipts and originals of all tenants.',
    secret: true,
    otherwise: 'none',
  }),
  tracing: described(z.boolean().default(false), {
    allowed: 'true or false',
    about:
      'true sends traces to the OpenTelemetry collector that the variables OTEL_EXPORTER_OTLP_* name: see tracing.md.',
  }),
  logLevel: described(z.enum(['debug', 'info', 'warn', 'error', 'silent']).default('info'), {
    allowed: 'debug, info, warn, error or silent',
    about: 'Lowest level of messages that are logged.',
  }),
});

export type Config = z.output<typeof configSchema>;
