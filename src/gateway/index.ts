/** Public entry `leporello/gateway`: assembles the gateway, and serves it as a fetch handler, on any runtime. */
export { assembleGateway, type GatewayDeps, type GatewaySettings } from './app.ts';
export { createFetchHandler, fetchUpstream } from './http/fetch.ts';
export type { GatewayRequest, GatewayResponse, Handler, Upstream } from './http/http.ts';
export type { GatewayLog } from './receipts/metrics.ts';
export type { GatewayMetrics } from './receipts/metrics.ts';
