/** The gateway on a Node port: a raw server in front, a pool of connections behind, several times cheaper than fetch objects; and metrics. */
export { type FoldThread, foldThread, type FoldThreadOptions } from './fold-thread/fold-thread.ts';
export { type NodeServer, type NodeServerOptions, serveNode } from './http/node-server.ts';
export { prometheusMetrics } from './receipts/prometheus.ts';
export { type UndiciUpstream, undiciUpstream, type UndiciUpstreamOptions } from './http/undici-upstream.ts';
