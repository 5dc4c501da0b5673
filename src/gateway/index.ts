/** Public entry `leporello/gateway`: assembles the gateway, and serves it as a fetch handler, on any runtime. */
export { assembleGateway, type EngineParts, type GatewayDeps, type GatewaySettings } from './app.ts';
export type { FoldSettings } from '../library/default-engine.ts';
export type { ExperimentSettings } from './experiments.ts';
export { createFetchHandler, fetchUpstream, type FetchUpstreamOptions } from './http/fetch.ts';
export type {
  GatewayRequest,
  GatewayResponse,
  Handler,
  HeaderList,
  Upstream,
  UpstreamRequest,
  UpstreamResponse,
} from './http/http.ts';
export type { GatewayTracing } from './options.ts';
export type { ReceiptArchive } from './receipts/archive.ts';
export type { GatewayLog, GatewayMetrics } from './receipts/metrics.ts';
export type { AnyReceipt } from './receipts/receipts.ts';
export type { UpstreamUrls } from './routing/routes.ts';
export type { TenantSetting } from './routing/tenant.ts';
export type { ShadowSettings } from './shadow.ts';
