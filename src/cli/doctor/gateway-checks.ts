/** Checks of `leporello doctor` on the gateway that runs on the configured port: whose it is, its last requests, and the models that it saw. */
import { providers } from '../../gateway/routing/routes.ts';
import { type KeptReceipt, isOfRequest } from '../../receipts/detail.ts';
import type { Receipt } from '../../receipts/receipt.ts';
import { FALLBACK_WINDOW, loadModelInfo } from '../../tokens/models.ts';
import type { Config } from '../config/schema.ts';
import { gatewaySettings } from '../config/to-settings.ts';
import { ownCommand, packageVersion } from '../home.ts';
import { type GatewayState, type PortUser, anotherPort, getJson, urlFor } from '../running-gateway.ts';
import type { DoctorDeps, Finding } from './setup-checks.ts';

/** The receipts that are looked at. */
const maxReceipts = 500;

/**
 * Returns the settings to check: this shell's, but the upstreams and the tenant of the gateway that runs for this user, which may have been started
 * elsewhere. Says so if the upstreams differ.
 */
export function settingsInUse(
  config: Config,
  user: PortUser,
): { readonly used: Config; readonly findings: readonly Finding[] } {
  if (user.kind !== 'leporello' || !user.isOurs) return { used: config, findings: [] };
  const { urls, tenant } = user.state;
  const upstreams = Object.fromEntries(providers.map((provider) => [`${provider}Url`, urls[provider]]));
  const different = Object.entries(upstreams).filter(([key, url]) => config[key as keyof Config] !== url);
  // A header or a claim is spelled as JSON, and matters to no check.
  const used = { ...config, ...upstreams, tenant: tenant === 'credential' ? tenant : 'local' };
  if (different.length === 0) return { used, findings: [] };
  const list = different.map(([key, url]) => `${key} ${url}`).join(', ');
  const says = `The running gateway was started with other settings than this shell has. The checks use its own: ${list}.`;
  const fix = `Nothing, if that is meant. To use the settings of this shell, stop the gateway and run ${ownCommand} serve here.`;
  return { used, findings: [{ check: 'configuration', level: 'ok', says, fix }] };
}

export async function gatewayFindings(
  config: Config,
  user: PortUser,
  { now, deadlineMs }: Pick<DoctorDeps, 'now' | 'deadlineMs'>,
  command: (words: string) => string,
): Promise<readonly Finding[]> {
  const { port } = config;
  const check = 'gateway';
  const url = urlFor(config);
  const another = `${ownCommand} serve --port ${anotherPort(port)}`;
  switch (user.kind) {
    case 'nobody': {
      const fix = `${command('serve')}, or ${command('wrap claude')}, which starts one.`;
      return [{ check, level: 'ok', says: `No gateway runs on ${url} now.`, fix }];
    }
    case 'another program': {
      const says = `Port ${port} is used by another program, not by Leporello.`;
      return [{ check, level: 'failure', says, fix: `Stop it, or use another port: ${another}` }];
    }
    case 'leporello': {
      if (!user.isOurs) {
        const says = `Port ${port} is used by a Leporello with another data folder (${user.state.store ?? 'in memory'}) or of another user.`;
        const fix = `Start both with the same LEPORELLO_DATA, or use another port: ${another}`;
        return [{ check, level: 'warning', says, fix }];
      }
      const receipts = await receiptsOf(url, deadlineMs);
      return [
        stateFinding(user.state, url, now()),
        ...(typeof receipts === 'string'
          ? [{ check, level: 'warning', says: receipts } as const]
          : [
              ...receiptFindings(receipts, now(), command('wrap claude')),
              ...(await modelFindings(receipts, config)),
            ]),
      ];
    }
  }
}

function stateFinding({ leporello, mode, since, store }: GatewayState, url: string, now: number): Finding {
  const check = 'gateway';
  const version = packageVersion();
  const says = `A gateway runs on ${url} for ${ago(now - since)} (version ${leporello}, store: ${store ?? 'only in memory'}).`;
  if (leporello !== version)
    return {
      check,
      level: 'warning',
      says,
      fix: `This command has version ${version}: start the gateway again.`,
    };
  if (store === undefined)
    return {
      check,
      level: 'warning',
      says,
      fix: 'Its log says why the data folder cannot be used; the other checks may, too.',
    };
  return mode === 'observe'
    ? {
        check,
        level: 'warning',
        says: `${says} It only observes: nothing is folded.`,
        fix: 'Start it without mode: observe (LEPORELLO_MODE) to fold.',
      }
    : { check, level: 'ok', says };
}

async function receiptsOf(url: string, deadlineMs: number): Promise<readonly Receipt[] | string> {
  const answer = await getJson(`${url}/_leporello/receipts?limit=${maxReceipts}`, deadlineMs);
  if (answer.status !== 'ok')
    return 'The receipts of the gateway are shown only with a credential (tenant), so its last requests are unknown here.';
  const { receipts } = answer.value as { readonly receipts: readonly KeptReceipt['receipt'][] };
  return receipts.filter(isOfRequest).toSorted((a, b) => b.at - a.at);
}

/** Reports the last request, fold and failure. `receipts` are newest first. */
function receiptFindings(receipts: readonly Receipt[], now: number, wrap: string): readonly Finding[] {
  const check = 'requests';
  const [last] = receipts;
  if (last === undefined)
    return [{ check, level: 'ok', says: 'The gateway has had no request yet.', fix: wrap }];
  const folded = receipts.find(
    ({ outcome, steps }) => outcome.status === 'compacted' && steps.some(({ edits }) => edits > 0),
  );
  const fold =
    folded === undefined
      ? 'there was no fold yet'
      : `the last fold was ${ago(now - folded.at)} ago (${folded.tokensBefore} > ${folded.tokensAfter} tokens)`;
  const failed = receipts.find(({ outcome }) => outcome.status === 'failed');
  const refused = receipts.find(({ upstreamStatus = 0 }) => upstreamStatus >= 400);
  const unstable = receipts.find(({ unstableFrom }) => unstableFrom !== undefined);
  const unreached = receipts.find(
    ({ upstreamStatus, problem, cutOff }) =>
      upstreamStatus === undefined && problem !== undefined && cutOff === undefined,
  );
  return [
    { check, level: 'ok', says: `The last request was ${ago(now - last.at)} ago; ${fold}.` },
    ...(failed?.outcome.status === 'failed'
      ? [
          {
            check: 'failures',
            level: 'warning',
            says: `Leporello failed on a request ${ago(now - failed.at)} ago and sent it unmodified: ${failed.outcome.reason}`,
            fix: `${ownCommand} inspect ${failed.id} shows it. Please report it.`,
          } as const,
        ]
      : []),
    ...(refused === undefined
      ? []
      : [
          {
            check: 'failures',
            level: 'warning',
            says: `The provider answered a request ${ago(now - refused.at)} ago with status ${refused.upstreamStatus} (${refused.path}).`,
            fix: statusFix(refused.upstreamStatus ?? 0, refused.id),
          } as const,
        ]),
    ...(unreached === undefined
      ? []
      : [
          {
            check: 'failures',
            level: 'warning',
            says: `A request ${ago(now - unreached.at)} ago got no answer: ${unreached.problem}`,
            fix: 'See the checks of upstreams above.',
          } as const,
        ]),
    ...(unstable === undefined
      ? []
      : [
          {
            check: 'failures',
            level: 'warning',
            says: `A request ${ago(now - unstable.at)} ago was sent with a changed prefix, which loses the provider's cache.`,
            fix: `This is a bug: please report ${ownCommand} inspect ${unstable.id} --json.`,
          } as const,
        ]),
  ];
}

function statusFix(status: number, id: string): string {
  if (status === 401 || status === 403) return 'Check the API key or the login of the client.';
  if (status === 429) return "The provider's rate limit was reached: wait, or use another key.";
  if (status === 404) return 'Check the model name, and that the upstream serves this path.';
  return `${ownCommand} inspect ${id} shows what was sent.`;
}

/** Reports models for which the gateway assumed a window, or could compute no money, because neither the catalog nor its settings know them. */
async function modelFindings(receipts: readonly Receipt[], config: Config): Promise<readonly Finding[]> {
  const check = 'models';
  const { models: overrides = {} } = gatewaySettings(config);
  const names = [...new Set(receipts.flatMap(({ model }) => model ?? []))].toSorted();
  const unknown: string[] = [];
  for (const name of names) {
    const { window, maxInput } = await loadModelInfo(name, overrides);
    // The gateway's own settings are not known here, but its receipts have the window that it used.
    const used = receipts.find((receipt) => receipt.model === name && receipt.window !== undefined)?.window;
    const isAssumed = used === undefined || used === FALLBACK_WINDOW;
    if (window === undefined && maxInput === undefined && isAssumed) unknown.push(name);
  }
  const unpriced = names.filter((name) => {
    const own = receipts.filter(({ model, usage }) => model === name && usage !== undefined);
    return own.length > 0 && own.every(({ money }) => money === undefined);
  });
  return [
    ...unknown.map(
      (name): Finding => ({
        check,
        level: 'warning',
        says: `The catalog has no window of the model ${name}, so 128,000 tokens are assumed.`,
        fix: `LEPORELLO_MODELS=${example(name, { windowTokens: 128_000 })} with its real window.`,
      }),
    ),
    ...unpriced.map(
      (name): Finding => ({
        check,
        level: 'warning',
        says: `The catalog has no price of the model ${name}, so receipts show no money.`,
        fix: `LEPORELLO_USD_PER_MILLION_TOKENS=${example(name, { input: 1, output: 5 })} with its real prices.`,
      }),
    ),
    ...(names.length > 0 && unknown.length + unpriced.length === 0
      ? [
          {
            check,
            level: 'ok',
            says: `The windows and prices of all models seen are known: ${names.join(', ')}.`,
          } as const,
        ]
      : []),
  ];
}

function example(name: string, value: object): string {
  return `'${JSON.stringify({ [name]: value })}'`;
}

/** Spells a time span: `3 s`, `5 min`, `2 h`, `4 days`. */
export function ago(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1_000));
  if (seconds < 120) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 120) return `${minutes} min`;
  const hours = Math.round(minutes / 60);
  return hours < 48 ? `${hours} h` : `${Math.round(hours / 24)} days`;
}
