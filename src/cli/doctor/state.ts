/** Implements `leporello` without arguments: shows the state of the running gateway on a terminal, or else the general help. */
import { spelledSums } from '../wrap/wrap.ts';
import { loadConfig } from '../config/load-config.ts';
import { helpText } from '../help.ts';
import { type GatewayState, getJson, portUser, urlFor } from '../running-gateway.ts';
import type { WrapSums } from '../serve/wraps.ts';
import type { Terminal } from '../terminal.ts';
import { ago } from './gateway-checks.ts';
import { secretFindings } from './setup-checks.ts';

const deadlineMs = 30_000;

/** Runs the command. Resolves with the exit code. */
export async function state(terminal: Terminal): Promise<number> {
  await terminal.out((terminal.isTty.out ? await stateText(terminal) : undefined) ?? helpText(undefined));
  return 0;
}

/** Returns the text on the gateway of this user; undefined if none runs. */
async function stateText(terminal: Terminal): Promise<string | undefined> {
  const loaded = await loadConfig({ file: undefined, values: [] }, terminal).catch(() => undefined);
  if (loaded === undefined) return undefined;
  const { config, dataDir } = loaded;
  const { secret } = await secretFindings(dataDir, terminal.env, config.memory);
  const user = await portUser(config, secret, deadlineMs);
  if (user.kind !== 'leporello' || !user.isOurs) return undefined;
  const url = urlFor(config);
  const totals = await getJson(`${url}/_leporello/totals`, deadlineMs);
  const sums =
    totals.status === 'ok'
      ? spelledSums((totals.value as { readonly total: WrapSums }).total)
      : 'its totals need a credential';
  return spelledState(user.state, url, sums);
}

function spelledState(gateway: GatewayState, url: string, sums: string): string {
  const { leporello, since, mode, store, wraps, endsWithWraps } = gateway;
  const until = endsWithWraps ? '; it ends with the last of them' : '';
  return `Leporello ${leporello} runs on ${url} for ${ago(Date.now() - since)}${mode === 'observe' ? ', and only observes' : ''}
  requests  ${sums}
  store     ${store ?? 'only in memory'}
  wraps     ${wraps}${wraps > 0 ? until : ''}
  page      ${url}/

  leporello wrap claude   connects an agent for one run
  leporello doctor        checks the set-up
  leporello help          shows all commands
`;
}
