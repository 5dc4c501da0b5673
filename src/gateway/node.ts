/** The gateway on a Node port: a raw server in front, a pool of connections behind. Several times cheaper than fetch objects. */
export { type NodeServer, type NodeServerOptions, serveNode } from './node-server.ts';
export { undiciUpstream, type UndiciUpstreamOptions } from './undici-upstream.ts';
