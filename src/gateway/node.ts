/** Public entry `leporello/gateway/node`: an HTTP server, a connection pool, a thread for large bodies, and Prometheus metrics. */
export { type FoldThread, foldThread, type FoldThreadOptions } from './fold-thread/fold-thread.ts';
export { idleMoment, type NodeServer, type NodeServerOptions, serveNode } from './http/node-server.ts';
export { type ReceiptArchive, receiptArchive } from './receipts/archive.ts';
export { prometheusMetrics } from './receipts/prometheus.ts';
export { type UndiciUpstream, undiciUpstream, type UndiciUpstreamOptions } from './http/undici-upstream.ts';
