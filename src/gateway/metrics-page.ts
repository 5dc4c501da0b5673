/** `/metrics`: counts of all tenants together, so for the administrator, or for whoever may see all of them anyway. */
import type { GatewayMetrics } from './receipts/gateway-metrics.ts';
import type { GatewayResponse } from './http/http.ts';
import { jsonResponse } from './http/json-response.ts';
import type { SummaryDesk } from './background-summarizer.ts';

export type MetricsRim = {
  readonly metrics: GatewayMetrics | undefined;
  readonly openMetrics: boolean;
  readonly summaries: SummaryDesk | undefined;
  readonly adminToken: string | undefined;
};

export async function metricsPage(
  { metrics, openMetrics, summaries, adminToken }: MetricsRim,
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
