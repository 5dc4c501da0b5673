/**
 * The gateway's own paths: health, receipts, sums of them, memory. A caller sees what is of the tenant that a model call with the same head
 * would be of; the administrator's token, where one is set, sees all tenants.
 */
import type { EncryptedStore } from '../store/encrypted-store.ts';
import type { NamedTotals, ReceiptTotals, Totals } from '../receipts/totals.ts';
import { summaryOf } from '../receipts/compression.ts';
import { isFrom } from './routing/credentials.ts';
import type { GatewayRequest, GatewayResponse } from './http/http.ts';
import { jsonResponse } from './http/responses.ts';
import type { ReceiptLog } from './receipts/receipt-log.ts';
import type { Tenant, TenantRule } from './routing/tenant.ts';
import type { GatewayMetrics } from './receipts/reporting.ts';
import type { BackgroundSummarizer } from './background-summarizer.ts';

type AdminDeps = MetricsDeps & {
  readonly encryptedStore: Pick<EncryptedStore, 'recall' | 'recallAny'>;
  readonly receipts: ReceiptLog;
  readonly totals: ReceiptTotals;
  readonly tenants: TenantRule;
};

const mostListed = 500;

export async function answerOwn(
  deps: AdminDeps,
  request: GatewayRequest,
  route: { readonly path: string; readonly query: URLSearchParams },
): Promise<GatewayResponse> {
  if (request.method !== 'GET' && request.method !== 'HEAD')
    return jsonResponse(405, { error: 'Only GET is served here.' });
  const isAdmin = deps.adminToken !== undefined && isFrom(request, deps.adminToken);
  const [, room, id] = /^\/_leporello\/(receipts|totals|memory)(?:\/([^/]+))?$/.exec(route.path) ?? [];
  if (route.path === '/healthz') return jsonResponse(200, { status: 'ok' });
  if (route.path === '/readyz') return readiness(deps);
  if (route.path === '/metrics') return metricsPage(deps, isAdmin);
  const viewer = isAdmin ? { tenant: undefined } : viewerOf(deps.tenants.tenantOf(request));
  if ('problem' in viewer)
    return jsonResponse(403, { error: { type: 'permission_error', message: viewer.problem } });
  const { tenant } = viewer;
  const limit = Math.min(mostListed, Number(route.query.get('limit') ?? 50) || 50);
  if (room === 'receipts' && id === undefined) {
    return jsonResponse(200, { receipts: deps.receipts.list(tenant, limit) });
  }
  if (room === 'receipts' && id !== undefined) {
    const receipt = deps.receipts.get(tenant, id);
    return receipt ? jsonResponse(200, receipt) : notFound(`No receipt ${id} for this tenant.`);
  }
  if (room === 'totals' && id === undefined) return jsonResponse(200, sumsFor(deps.totals, tenant, limit));
  if (room === 'memory' && id !== undefined) return memory(deps, tenant, id);
  return notFound(
    'Known here: /healthz, /readyz, /metrics, /_leporello/receipts, /_leporello/receipts/ID, /_leporello/totals, /_leporello/memory/ID.',
  );
}

/** The tenant whose data a caller sees, or why it sees none. */
function viewerOf(tenant: Tenant): { readonly tenant: string } | { readonly problem: string } {
  if (tenant.label === undefined) return tenant;
  if (tenant.isVerified) return { tenant: tenant.label };
  return {
    problem:
      'This gateway reads the tenant from a token that it does not verify, so it shows nothing to the bearer of one: ask with the adminToken.',
  };
}

/** Sums since the gateway started. Who sees all tenants is told whose each row is. */
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

/** With what is read off sums of compressions, where there are any. */
function spelled({ compressions, ...totals }: Totals): object {
  return compressions.count === 0 ? totals : { ...totals, compressions: summaryOf(compressions) };
}

/** The original exactly as it stood in the request: JSON. */
async function memory(deps: AdminDeps, tenant: string | undefined, id: string): Promise<GatewayResponse> {
  try {
    const found =
      tenant === undefined
        ? await deps.encryptedStore.recallAny(id)
        : await deps.encryptedStore.recall(tenant, id);
    if (found.status === 'missing') return notFound(`No memory ${id} for this tenant.`);
    return { status: 200, headers: [['content-type', 'application/json']], body: found.original };
  } catch {
    return jsonResponse(503, { error: 'The store cannot be read at the moment.' });
  }
}

/** Ready means that the store answers: without it requests are folded only where they would not fit. */
async function readiness(deps: AdminDeps): Promise<GatewayResponse> {
  try {
    await deps.encryptedStore.recallAny('mem_0000000000000000');
    return jsonResponse(200, { status: 'ready' });
  } catch {
    return jsonResponse(503, {
      status: 'the store cannot be read; requests are folded only where they would not fit',
    });
  }
}

function notFound(message: string): GatewayResponse {
  return jsonResponse(404, { error: { type: 'not_found_error', message } });
}

export type MetricsDeps = {
  readonly metrics: GatewayMetrics | undefined;
  readonly openMetrics: boolean;
  readonly summaries: BackgroundSummarizer | undefined;
  readonly adminToken: string | undefined;
};

export async function metricsPage(
  { metrics, openMetrics, summaries, adminToken }: MetricsDeps,
  isAdmin: boolean,
): Promise<GatewayResponse> {
  if (!metrics) return problem(404, 'This gateway keeps no metrics: it was put together without any.');
  if (!isAdmin && adminToken !== undefined)
    return problem(401, 'Metrics are of all tenants: ask with the adminToken as credential.');
  if (!isAdmin && !openMetrics)
    return problem(
      403,
      'Metrics are of all tenants, and other machines can reach this address: set an adminToken and ask with it.',
    );
  const { contentType, text } = await metrics.page({ summariesRunning: summaries?.running() ?? 0 });
  return { status: 200, headers: [['content-type', contentType]], body: new TextEncoder().encode(text) };
}

function problem(status: number, message: string): GatewayResponse {
  return jsonResponse(status, { error: { type: 'metrics_error', message } });
}
