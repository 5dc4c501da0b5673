/** The gateway's public face: put it together, and serve it as a fetch handler or in a Hono app. On a Node port: `leporello/gateway/node`. */
export { assembleGateway, type GatewayDeps, type GatewaySettings } from './assemble.ts';
export { createFetchHandler, honoApp } from './http/fetch.ts';
export { fetchUpstream } from './http/fetch.ts';
export type { GatewayRequest, GatewayResponse, Handler, Upstream } from './http/http.ts';
export type { GatewayLog } from './receipts/reporting.ts';
export type { GatewayMetrics } from './receipts/reporting.ts';
