/** Public entry `leporello/gateway`: assembles the gateway, and serves it as a fetch handler or in a Hono app, on any runtime. */
export { assembleGateway, type GatewayDeps, type GatewaySettings } from './app.ts';
export { createFetchHandler, honoApp } from './http/fetch.ts';
export { fetchUpstream } from './http/fetch.ts';
export type { GatewayRequest, GatewayResponse, Handler, Upstream } from './http/http.ts';
export type { GatewayLog } from './receipts/receipts.ts';
export type { GatewayMetrics } from './receipts/receipts.ts';
