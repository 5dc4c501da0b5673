/**
 * Serves the gateway's own paths: health, metrics, receipts, totals and originals. A caller sees the data of the tenant that a model call
 * with the same headers would belong to; the admin token, when one is set, shows all tenants.
 */
import type { Caches } from '../caches.ts';
import type { FoldSettings } from '../library/default-engine.ts';
import type { PageClients } from '../page/setup.ts';
import type { Controls } from '../store/controls.ts';
import type { EncryptedStore } from '../store/encrypted-store.ts';
import {
  type NamedTotals,
  type ReceiptTotals,
  type Totals,
  breakEvenOf,
  summaryOf,
} from '../receipts/totals.ts';
import { isCompressionPath } from './routing/routes.ts';
import { hasCredential, type TenantRule, viewerOf } from './routing/tenant.ts';
import { type GatewayRequest, type GatewayResponse, jsonHeaders, jsonResponse } from './http/http.ts';
import type { GatewayExperiment } from './options.ts';
import type { ReceiptArchive } from './receipts/archive.ts';
import type { GatewayMetrics } from './receipts/metrics.ts';
import type { AnyReceipt, ReceiptLog } from './receipts/receipts.ts';
import type { BackgroundSummarizer } from './background-summarizer.ts';

type AdminDeps = MetricsDeps & {
  readonly encryptedStore: EncryptedStore;
  readonly foldSettings: FoldSettings;
  readonly caches: Caches;
  readonly maxBodyBytes: number;
  readonly receipts: ReceiptLog;
  readonly archive: ReceiptArchive | undefined;
  readonly experiment: GatewayExperiment | undefined;
  readonly controls: Controls | undefined;
  readonly pageClients: PageClients | undefined;
  readonly totals: ReceiptTotals;
  readonly tenants: TenantRule;
};

/** Receipts, or rows of totals, in one answer; and the newer receipts that a list may leave out: as many as are kept. */
const maxListed = 500;
const maxNewer = 2_000;

/** Answers a request to one of the gateway's own paths. */
export async function answerOwn(
  deps: AdminDeps,
  request: GatewayRequest,
  route: { readonly path: string; readonly query: URLSearchParams },
): Promise<GatewayResponse> {
  const { archive, controls } = deps;
  if (archive && controls && isPage(route.path)) {
    const { answerPage } = await import('./page/pages.ts');
    return answerPage({ ...deps, archive, controls }, request, route);
  }
  if (isCompressionPath(route.path)) {
    const { answerCompression } = await import('./compress.ts');
    return answerCompression(deps, request, route);
  }
  if (request.method !== 'GET' && request.method !== 'HEAD')
    return jsonResponse(405, { error: `${route.path} answers only GET and HEAD, not ${request.method}.` });
  const isAdmin = deps.adminToken !== undefined && hasCredential(request, deps.adminToken);
  const [, kind, id] =
    /^\/_leporello\/(receipts|totals|memory|experiment)(?:\/([^/]+))?$/.exec(route.path) ?? [];
  if (route.path === '/healthz') return jsonResponse(200, { status: 'ok' });
  if (route.path === '/readyz') return readiness(deps);
  if (route.path === '/metrics') return metricsPage(deps, isAdmin);
  const viewer = isAdmin ? { tenant: undefined } : viewerOf(deps.tenants.tenantOf(request));
  if ('problem' in viewer)
    return jsonResponse(403, { error: { type: 'permission_error', message: viewer.problem } });
  const { tenant } = viewer;
  const limit = Math.min(maxListed, Math.max(1, numberIn(route.query, 'limit', 50)));
  if (kind === 'receipts' && id === undefined) {
    const newer = Math.min(maxNewer, Math.max(0, numberIn(route.query, 'newer', 0)));
    return jsonResponse(200, await receiptPage(deps, tenant, { limit, newer }));
  }
  if (kind === 'receipts' && id !== undefined) {
    const receipt = deps.receipts.get(tenant, id) ?? (await storedReceipt(deps, tenant, id));
    return receipt ? jsonResponse(200, receipt) : notFound(`This tenant has no receipt ${id}.`);
  }
  if (kind === 'totals' && id === undefined) return jsonResponse(200, sumsFor(deps.totals, tenant, limit));
  if (kind === 'experiment' && id === undefined)
    return experimentReport(deps, tenant ?? route.query.get('tenant') ?? undefined);
  if (kind === 'memory' && id !== undefined) return memory(deps, tenant, id);
  return notFound(
    'There is nothing at this path. The gateway serves /healthz, /readyz, /metrics, /_leporello/receipts, /_leporello/receipts/ID, /_leporello/totals, /_leporello/experiment, /_leporello/memory/ID and pages at /_leporello/.',
  );
}

/** True for the paths of pages: everything under `/_leporello/` that is not data for programs. */
function isPage(path: string): boolean {
  return (
    path.startsWith('/_leporello/') &&
    !/^\/_leporello\/(?:receipts|totals|memory|experiment)(?:\/|$)/.test(path)
  );
}

function numberIn(query: URLSearchParams, name: string, usual: number): number {
  return Math.floor(Number(query.get(name) ?? usual) || usual);
}

/** Returns receipts, the newest first, without so many newer ones, and the path of the next older ones if there are any. */
async function receiptPage(
  deps: AdminDeps,
  tenant: string | undefined,
  { limit, newer }: { readonly limit: number; readonly newer: number },
): Promise<{ readonly receipts: readonly AnyReceipt[]; readonly older?: string }> {
  const end = newer + limit;
  const all = await receiptsOf(deps, tenant, end + 1);
  const receipts = all.slice(newer, end);
  if (all.length <= end || end > maxNewer) return { receipts };
  return { receipts, older: `/_leporello/receipts?limit=${limit}&newer=${end}` };
}

/** Returns the newest receipts. A tenant also gets those of earlier processes, if they are kept; the administrator those of this process. */
async function receiptsOf(
  { receipts, archive }: AdminDeps,
  tenant: string | undefined,
  limit: number,
): Promise<readonly AnyReceipt[]> {
  const here = receipts.list(tenant, limit);
  if (here.length >= limit || tenant === undefined || !archive) return here;
  try {
    const known = new Set(here.map(({ id }) => id));
    const stored = (await archive.list(tenant, limit)).filter(({ id }) => !known.has(id));
    return [...here, ...stored.map(({ receipt }) => receipt)].slice(0, limit);
  } catch {
    // The store cannot be read at the moment.
    return here;
  }
}

async function storedReceipt(
  { archive }: AdminDeps,
  tenant: string | undefined,
  id: string,
): Promise<AnyReceipt | undefined> {
  if (tenant === undefined) return undefined;
  return (await archive?.get(tenant, id).catch(() => undefined))?.receipt;
}

/** Returns the totals since the gateway started. For the administrator each row names its tenant. */
function sumsFor(totals: ReceiptTotals, tenant: string | undefined, limit: number): unknown {
  const rows = (named: readonly NamedTotals[], kind: string) =>
    named.slice(0, limit).map((row) => ({
      ...(tenant === undefined ? { tenant: row.tenant } : {}),
      ...(kind === 'tenant' ? {} : { [kind]: row.name }),
      ...spelled(row.totals),
    }));
  return {
    total: spelled(totals.total(tenant)),
    ...(tenant === undefined ? { tenants: rows(totals.tenants(tenant), 'tenant') } : {}),
    models: rows(totals.models(tenant), 'model'),
    sessions: rows(totals.sessions(tenant), 'session'),
  };
}

/** Returns totals for display: compressions are summarized, or left out when there are none. */
function spelled(totals: Totals): object {
  const { compressions, ...others } = totals;
  const extraRequestsPer1000Tokens = breakEvenOf(totals);
  return {
    ...others,
    ...(extraRequestsPer1000Tokens !== undefined && { breakEven: { extraRequestsPer1000Tokens } }),
    ...(compressions.count > 0 && { compressions: summaryOf(compressions) }),
  };
}

/** Returns what the holdout found out for a tenant. */
async function experimentReport(
  { experiment }: AdminDeps,
  tenant: string | undefined,
): Promise<GatewayResponse> {
  if (!experiment)
    return notFound(
      'This gateway measures nothing: set experiment.holdout, such as 0.2, or experiment.shadow to start.',
    );
  if (tenant === undefined)
    return jsonResponse(400, { error: 'Each tenant has its own results: name one with ?tenant=LABEL.' });
  try {
    return jsonResponse(200, await experiment.report(tenant));
  } catch {
    return jsonResponse(503, { error: 'The store cannot be read at the moment. Try again later.' });
  }
}

/** Returns the original exactly as the request contained it, as JSON. */
async function memory(deps: AdminDeps, tenant: string | undefined, id: string): Promise<GatewayResponse> {
  try {
    const found =
      tenant === undefined
        ? await deps.encryptedStore.recallAny(id)
        : await deps.encryptedStore.recall(tenant, id);
    if (found.status === 'missing') return notFound(`This tenant has no original ${id}.`);
    return { status: 200, headers: jsonHeaders, body: found.original };
  } catch {
    return jsonResponse(503, { error: 'The store cannot be read at the moment. Try again later.' });
  }
}

/** Answers /readyz: ready means that the store answers. Without the store, requests are folded only when they would not fit the window. */
async function readiness(deps: AdminDeps): Promise<GatewayResponse> {
  try {
    await deps.encryptedStore.recallAny('mem_0000000000000000');
    return jsonResponse(200, { status: 'ready' });
  } catch {
    return jsonResponse(503, {
      status: 'the store cannot be read; requests are folded only when they would not fit the window',
    });
  }
}

function notFound(message: string): GatewayResponse {
  return jsonResponse(404, { error: { type: 'not_found_error', message } });
}

type MetricsDeps = {
  readonly metrics: GatewayMetrics | undefined;
  readonly openMetrics: boolean;
  readonly summaries: BackgroundSummarizer | undefined;
  readonly adminToken: string | undefined;
};

/** Answers /metrics. Metrics cover all tenants, so only the administrator sees them, or anyone when `openMetrics` is set. */
async function metricsPage(
  { metrics, openMetrics, summaries, adminToken }: MetricsDeps,
  isAdmin: boolean,
): Promise<GatewayResponse> {
  if (!metrics)
    return problem(404, 'This gateway keeps no metrics: pass metrics to assembleGateway to keep them.');
  if (!isAdmin && adminToken !== undefined)
    return problem(401, 'Metrics cover all tenants: send the adminToken as credential.');
  if (!isAdmin && !openMetrics)
    return problem(
      403,
      'Metrics cover all tenants, and other machines can reach this address: set an adminToken and send it as credential.',
    );
  const { contentType, text } = await metrics.page({ summariesRunning: summaries?.running() ?? 0 });
  return { status: 200, headers: [['content-type', contentType]], body: new TextEncoder().encode(text) };
}

function problem(status: number, message: string): GatewayResponse {
  return jsonResponse(status, { error: { type: 'metrics_error', message } });
}
