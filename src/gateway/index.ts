/** The gateway's public face: put it together, and serve it as a fetch handler or in a Hono app. On a Node port: `leporello/gateway/node`. */
export { assembleGateway, type GatewayRims, type GatewaySettings } from './assemble.ts';
export { createFetchHandler, honoApp } from './http/fetch-handler.ts';
export { fetchUpstream } from './http/fetch-upstream.ts';
export type { GatewayRequest, GatewayResponse, Handler, Upstream } from './http/http.ts';
export type { GatewayLog } from './receipts/gateway-log.ts';
export type { GatewayMetrics } from './receipts/gateway-metrics.ts';
